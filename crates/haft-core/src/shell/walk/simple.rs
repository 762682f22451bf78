//! Simple commands: their words, their variables, and what they do.

use super::{Around, Stream, Walk};
use crate::shell::arithmetic;
use crate::shell::deed::Call;
use crate::shell::judged::{Doubt, Flow, Harm, Redirect};
use crate::shell::state::State;
use crate::shell::value::Use;
use crate::shell::word::{Value, Word};
use shuck_ast as ast;

impl Walk<'_> {
    pub(super) fn simple(&mut self, stmt: &ast::Stmt, around: Around<'_>, state: &mut State) -> Stream {
        let mut argv = Vec::new();
        let assignments = match &stmt.command {
            ast::Command::Simple(simple) => {
                let named = around.source.slice(simple.name.span).is_some_and(|text| !text.is_empty());
                if named {
                    around.source.named.borrow_mut().push(simple.name.span.start.offset());
                }
                for word in named.then_some(&simple.name).into_iter().chain(&simple.args) {
                    around.source.args.borrow_mut().push((word.span.start.offset(), word.span.end.offset()));
                    argv.extend(self.words(word, Use::Argument, around, state));
                }
                &simple.assignments
            }
            ast::Command::Decl(clause) => {
                around.source.named.borrow_mut().push(clause.variant_span.start.offset());
                argv.push(Word::known(clause.variant.to_string()));
                for operand in &clause.operands {
                    argv.extend(self.declared(operand, around, state));
                }
                &clause.assignments
            }
            ast::Command::Builtin(builtin) => {
                let (name, first, rest, assignments) = leaving(builtin);
                around.source.named.borrow_mut().push(stmt_name(stmt, around.source.text, name));
                argv.push(Word::known(name));
                for word in first.iter().chain(rest) {
                    argv.extend(self.words(word, Use::Argument, around, state));
                }
                assignments
            }
            _ => return Stream::Unknown,
        };
        let assignments = self.assignments(assignments, around, state);
        let (redirects, given) = self.redirects(&stmt.redirects, around, state);
        if argv.is_empty() {
            return self.bare(&assignments, &redirects, state);
        }
        // What a file holds is not known, whatever comes through the pipe.
        let file = |one: &Redirect| {
            one.fd.is_none_or(|fd| fd == 0) && matches!(one.flow, Flow::Reads | Flow::Both | Flow::Joins)
        };
        let stdin =
            if redirects.iter().any(file) { Stream::Unknown } else { given.unwrap_or_else(|| around.stdin.clone()) };
        self.consider(Call { argv, assignments, redirects, standing: around.standing.clone(), stdin }, state)
    }

    /// A command without a program: it sets variables, or opens files.
    fn bare(&mut self, assignments: &[(String, Word)], redirects: &[Redirect], state: &mut State) -> Stream {
        let mut doubts: Vec<Doubt> = Vec::new();
        self.touch(redirects, state, &mut doubts);
        for (name, word) in assignments {
            self.bind(name, word.value.clone(), state);
        }
        for doubt in doubts {
            self.doubt(doubt.harm, doubt.why);
        }
        Stream::Unknown
    }

    /// The variables that are set, and to what.
    fn assignments(
        &mut self,
        assignments: &[ast::Assignment],
        around: Around<'_>,
        state: &State,
    ) -> Vec<(String, Word)> {
        let mut all: Vec<(String, Word)> = Vec::new();
        for assignment in assignments {
            let mut word = self.assigned(&assignment.value, around, state);
            if assignment.append || assignment.target.subscript.is_some() {
                word.value = Value::unknown(true);
            }
            self.subscript(&assignment.target, around, state);
            all.push((assignment.target.name.to_string(), word));
        }
        all
    }

    fn assigned(&mut self, value: &ast::AssignmentValue, around: Around<'_>, state: &State) -> Word {
        match value {
            ast::AssignmentValue::Scalar(word) => {
                let mut words = self.words(word, Use::Whole, around, state);
                if words.len() == 1 { words.remove(0) } else { Word::unknown("?") }
            }
            ast::AssignmentValue::Compound(array) => {
                for element in &array.elements {
                    let (key, value) = match element {
                        ast::ArrayElem::Sequential(value) => (None, value),
                        ast::ArrayElem::Keyed { key, value } | ast::ArrayElem::KeyedAppend { key, value } => {
                            (Some(key), value)
                        }
                    };
                    if let Some(name) =
                        key.and_then(|key| arithmetic::unsafe_name(key.syntax_text(around.source.text), state))
                    {
                        let why = format!("`{name}` stands in a subscript, which runs what is in it");
                        self.doubt(Harm::Runs, why);
                    }
                    self.words(&value.word, Use::Argument, around, state);
                }
                Word::unknown(around.source.slice(array.span).unwrap_or("( )"))
            }
        }
    }

    /// The subscript of a variable that is set.
    fn subscript(&mut self, target: &ast::VarRef, around: Around<'_>, state: &State) {
        let Some(subscript) = &target.subscript else { return };
        let text = subscript.syntax_text(around.source.text);
        if text.contains(['$', '`']) || arithmetic::unsafe_name(text, state).is_some() {
            let why = format!("`{}` stands in a subscript, which runs what is in it", crate::shell::cut(text));
            self.doubt(Harm::Runs, why);
        }
    }

    /// An operand of `declare` and its like.
    fn declared(&mut self, operand: &ast::DeclOperand, around: Around<'_>, state: &State) -> Vec<Word> {
        match operand {
            ast::DeclOperand::Flag(word) | ast::DeclOperand::Dynamic(word) => {
                self.words(word, Use::Argument, around, state)
            }
            ast::DeclOperand::Name(name) => {
                self.subscript(name, around, state);
                vec![Word::known(around.source.slice(name.span).unwrap_or("?"))]
            }
            ast::DeclOperand::Assignment(assignment) => {
                self.subscript(&assignment.target, around, state);
                let word = self.assigned(&assignment.value, around, state);
                let name = assignment.target.name.to_string();
                let value = match word.value {
                    Value::Known(text) if !assignment.append && assignment.target.subscript.is_none() => {
                        Value::Known(format!("{name}={text}"))
                    }
                    _ => Value::Partial { start: format!("{name}="), splits: false },
                };
                vec![Word { text: around.source.slice(assignment.span).unwrap_or("?").to_owned(), value }]
            }
        }
    }
}

/// Where the name of such a command stands: after its assignments and redirections.
fn stmt_name(stmt: &ast::Stmt, text: &str, name: &str) -> usize {
    let (from, to) = (stmt.span.start.offset(), stmt.span.end.offset());
    let found = text.get(from..to).and_then(|text| text.find(name));
    found.map_or(from, |at| from + at)
}

type Leaving<'b> = (&'static str, &'b Option<ast::Word>, &'b [ast::Word], &'b Box<[ast::Assignment]>);

/// `break`, `continue`, `return` and `exit`, as words.
fn leaving(builtin: &ast::BuiltinCommand) -> Leaving<'_> {
    use ast::BuiltinCommand as Builtin;
    match builtin {
        Builtin::Break(this) => ("break", &this.depth, &this.extra_args, &this.assignments),
        Builtin::Continue(this) => ("continue", &this.depth, &this.extra_args, &this.assignments),
        Builtin::Return(this) => ("return", &this.code, &this.extra_args, &this.assignments),
        Builtin::Exit(this) => ("exit", &this.code, &this.extra_args, &this.assignments),
    }
}
