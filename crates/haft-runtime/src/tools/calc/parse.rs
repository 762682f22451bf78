//! From words to steps: the expression in the order in which it is worked out, each operation after what
//! it works on. So working it out is a loop and needs no stack of calls, however long the expression.

use super::Fault;
use super::functions::{CONSTANTS, FUNCTIONS, Function};
use super::lex::{Token, Word, words};
use super::value::Value;
use haft_core::preview::inert;
use haft_core::suggest::did_you_mean;

/// How deep parentheses, powers and signs may be nested.
const DEPTH_MAX: usize = 200;

/// One step of the work. Operations take their operands from the end of what is there.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Put a number down.
    Number(Value),
    /// Two numbers become one.
    Infix(&'static str),
    /// Change the sign.
    Negate,
    /// Multiply up.
    Factorial,
    /// So many numbers become one.
    Call(&'static Function, usize),
}

/// How strongly signs hold on to what stands left and right of them; a sign that is stronger on the left
/// than on the right groups from the right.
const INFIX: &[(&str, u8, u8)] =
    &[("+", 1, 2), ("-", 1, 2), ("*", 3, 4), ("/", 3, 4), ("//", 3, 4), ("%", 3, 4), ("^", 8, 7)];
/// Weaker than a power, stronger than a product: -2^2 is -4.
const PREFIX: u8 = 5;
const FACTORIAL: u8 = 9;

/// The steps of an expression.
pub(super) fn steps(expression: &str) -> Result<Vec<Step>, Fault> {
    let mut parser = Parser { words: words(expression)?, at: 0, depth: 0, steps: Vec::new() };
    if parser.peek() == &Token::End {
        return Err(parser.fault("the expression is empty"));
    }
    parser.expression(0)?;
    match parser.peek() {
        Token::End => Ok(parser.steps),
        Token::Sign(")") => Err(parser.fault("this parenthesis was never opened")),
        Token::Sign(",") => Err(parser.fault("a comma only separates a function's arguments; write 1000, not 1,000")),
        _ => Err(parser.fault("an operator is missing here")),
    }
}

struct Parser {
    words: Vec<Word>,
    at: usize,
    depth: usize,
    steps: Vec<Step>,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.words.get(self.at).map_or(&Token::End, |word| &word.token)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn skip(&mut self, sign: &'static str) -> bool {
        let found = self.peek() == &Token::Sign(sign);
        self.at += usize::from(found);
        found
    }

    /// A fault at the next word.
    fn fault(&self, why: impl Into<String>) -> Fault {
        let word = self.words.get(self.at).or(self.words.last());
        Fault::syntax(word.map_or(0, |word| word.column), why)
    }

    /// Everything up to a sign that holds more weakly than `floor`.
    fn expression(&mut self, floor: u8) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault(format!("more than {DEPTH_MAX} levels of nesting")));
        }
        self.operand()?;
        while let Token::Sign(sign) = *self.peek() {
            if sign == "!" && FACTORIAL >= floor {
                self.at += 1;
                self.steps.push(Step::Factorial);
                continue;
            }
            let Some((_, _, right)) = INFIX.iter().find(|(known, left, _)| *known == sign && *left >= floor) else {
                break;
            };
            self.at += 1;
            self.expression(*right)?;
            self.steps.push(Step::Infix(sign));
        }
        self.depth -= 1;
        Ok(())
    }

    fn operand(&mut self) -> Result<(), Fault> {
        let at = self.at;
        match self.next() {
            Token::Number(value) => self.steps.push(Step::Number(value)),
            Token::Sign("-") => {
                self.expression(PREFIX)?;
                self.steps.push(Step::Negate);
            }
            Token::Sign("+") => self.expression(PREFIX)?,
            Token::Sign("(") => {
                self.expression(0)?;
                self.close()?;
            }
            Token::Name(name) => self.name(&name, at)?,
            other => {
                self.at = at;
                let what =
                    if other == Token::End { "the expression ends too early" } else { "a number is missing here" };
                return Err(self.fault(what));
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fault> {
        if self.skip(")") {
            return Ok(());
        }
        Err(self.fault(if self.peek() == &Token::End {
            "a `)` is missing"
        } else {
            "an operator or a `)` is missing here"
        }))
    }

    fn name(&mut self, name: &str, at: usize) -> Result<(), Fault> {
        if let Some((_, value)) = CONSTANTS.iter().find(|(known, _)| *known == name) {
            self.steps.push(Step::Number(Value::Real(*value)));
            return Ok(());
        }
        let Some(function) = Function::find(name) else {
            self.at = at;
            return Err(self.fault(unknown(name)));
        };
        if !self.skip("(") {
            return Err(self.fault(format!("`{name}` is a function: its arguments go in parentheses")));
        }
        let count = self.arguments()?;
        if !function.takes.contains(&count) {
            self.at = at;
            return Err(self.fault(format!("`{name}` takes {}, not {count}", plural(&function.arity()))));
        }
        self.steps.push(Step::Call(function, count));
        Ok(())
    }

    /// A function's arguments after the opening parenthesis, and how many there are.
    fn arguments(&mut self) -> Result<usize, Fault> {
        if self.skip(")") {
            return Ok(0);
        }
        let mut count = 0;
        loop {
            self.expression(0)?;
            count += 1;
            if !self.skip(",") {
                break;
            }
        }
        self.close()?;
        Ok(count)
    }
}

fn plural(count: &str) -> String {
    format!("{count} argument{}", if count == "1" { "" } else { "s" })
}

fn unknown(name: &str) -> String {
    let known = FUNCTIONS.iter().map(|function| function.name).chain(CONSTANTS.iter().map(|(name, _)| *name));
    let guess = did_you_mean(name, known).map(|guess| format!("; {guess}")).unwrap_or_default();
    format!("`{}` is neither a function nor a constant{guess}", inert(name))
}
