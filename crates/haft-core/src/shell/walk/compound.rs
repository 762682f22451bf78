//! Statements: pipelines, lists, groups, conditions, loops and functions.

use super::{Around, Stream, Walk};
use crate::shell::arithmetic;
use crate::shell::judged::{Harm, Redirect, Standing};
use crate::shell::state::State;
use crate::shell::value::Use;
use crate::shell::word::{Value, Word};
use shuck_ast::{self as ast, BinaryOp};

/// How often the body of a loop is walked before nothing is taken for known in it.
const ROUNDS_MAX: usize = 4;
/// And how often all of them together.
const ALL_ROUNDS_MAX: usize = 64;

impl Walk<'_> {
    pub(super) fn stmt(&mut self, stmt: &ast::Stmt, around: Around<'_>, state: &mut State) -> Stream {
        if !self.enter(0) {
            return Stream::Unknown;
        }
        let printed = self.one(stmt, around, state);
        self.leave();
        printed
    }

    fn one(&mut self, stmt: &ast::Stmt, around: Around<'_>, state: &mut State) -> Stream {
        let background = matches!(stmt.terminator, Some(ast::StmtTerminator::Background(_)));
        let mut away;
        let state = if background {
            away = state.clone();
            &mut away
        } else {
            state
        };
        let standing = around.standing.in_background(background);
        let around = Around { standing: &standing, ..around };
        match &stmt.command {
            ast::Command::Simple(_) | ast::Command::Builtin(_) | ast::Command::Decl(_) => {
                self.simple(stmt, around, state)
            }
            command => {
                let (redirects, given) = self.redirects(&stmt.redirects, around, state);
                let mut doubts = Vec::new();
                self.touch(&redirects, state, &mut doubts);
                for doubt in doubts {
                    self.doubt(doubt.harm, doubt.why);
                }
                let around = Around { stdin: given.as_ref().unwrap_or(around.stdin), ..around };
                let printed = self.compound(command, around, state);
                if redirects.is_empty() { printed } else { Stream::Unknown }
            }
        }
    }

    pub(super) fn redirects(
        &mut self,
        redirects: &[ast::Redirect],
        around: Around<'_>,
        state: &State,
    ) -> (Vec<Redirect>, Option<Stream>) {
        let (mut all, mut given) = (Vec::new(), None);
        for redirect in redirects {
            let (one, text) = self.redirect(redirect, around, state);
            given = text.or(given);
            all.push(one);
        }
        (all, given)
    }

    fn compound(&mut self, command: &ast::Command, around: Around<'_>, state: &mut State) -> Stream {
        match command {
            ast::Command::Binary(binary) => match binary.op {
                BinaryOp::Pipe | BinaryOp::PipeAll => self.pipeline(binary, around, state),
                BinaryOp::And | BinaryOp::Or => self.list(binary, around, state),
            },
            ast::Command::Function(function) => self.function(function, around),
            ast::Command::Compound(compound) => self.control(compound, around, state),
            _ => {
                self.doubt(Harm::Unknown, "it holds something that bash does not know");
                Stream::Unknown
            }
        }
    }

    /// `a | b | c`: each in a shell of its own, each given what the one before prints.
    fn pipeline(&mut self, binary: &ast::BinaryCommand, around: Around<'_>, state: &mut State) -> Stream {
        let members = chain(binary, |op| matches!(op, BinaryOp::Pipe | BinaryOp::PipeAll));
        let mut stream = around.stdin.clone();
        for (number, (_, member)) in members.iter().enumerate() {
            let standing = Standing { pipeline: Some((number + 1, members.len())), ..around.standing.clone() };
            let around = Around { standing: &standing, stdin: &stream, ..around };
            stream = self.stmt(member, around, &mut state.clone());
        }
        stream
    }

    /// `a && b || c`. What is known is kept apart for when it went well so far and for when it did not.
    fn list(&mut self, binary: &ast::BinaryCommand, around: Around<'_>, state: &mut State) -> Stream {
        let members = chain(binary, |op| matches!(op, BinaryOp::And | BinaryOp::Or));
        let (mut well, mut wrong): (Option<State>, Option<State>) = (Some(state.clone()), None);
        for (op, member) in members {
            let (taken, kept) = match op {
                Some(BinaryOp::Or) => (&mut wrong, &mut well),
                _ => (&mut well, &mut wrong),
            };
            let mut ran = taken.take().unwrap_or_else(|| state.clone());
            let before = self.commands.len();
            self.stmt(member, around, &mut ran);
            // Whoever leaves does not go on.
            let leaves = |one: &crate::shell::Command| matches!(one.name.as_deref(), Some("exit" | "return"));
            let left = matches!(self.commands.get(before..), Some([one]) if leaves(one));
            let mut failed = ran.clone();
            ran.went_well();
            failed.went_wrong();
            let kept = kept.take();
            (well, wrong) = match op {
                _ if left => (kept, None),
                Some(BinaryOp::Or) => (Some(either(kept, ran)), Some(failed)),
                _ => (Some(ran), Some(either(kept, failed))),
            };
        }
        *state = match (well, wrong) {
            (Some(mut well), Some(wrong)) => {
                well.or(wrong);
                well
            }
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => state.clone(),
        };
        Stream::Unknown
    }

    fn function(&mut self, function: &ast::FunctionDef, around: Around<'_>) -> Stream {
        let names: Vec<String> = function.static_names().map(ToString::to_string).collect();
        if names.is_empty() {
            self.doubt(Harm::Unknown, "a function's name is not known");
        }
        self.functions.extend(names.iter().cloned());
        let standing = around.standing.through(format!("function {}", names.join(" ")));
        // Nothing is known of with what it will be called, nor where, if anything goes elsewhere.
        let mut state = self.elsewhere(around.source);
        let around = Around { standing: &standing, stdin: &Stream::Unknown, ..around };
        self.stmt(&function.body, around, &mut state);
        Stream::Unknown
    }

    fn control(&mut self, compound: &ast::CompoundCommand, around: Around<'_>, state: &mut State) -> Stream {
        use ast::CompoundCommand as Compound;
        match compound {
            Compound::BraceGroup(body) => return self.sequence(body, around, state),
            Compound::Subshell(body) => {
                return self.sequence(body, around, &mut state.clone());
            }
            Compound::If(branches) => self.branches(branches, around, state),
            Compound::For(each) => self.each(each, around, state),
            Compound::ArithmeticFor(each) => {
                let head =
                    around.source.text.get(each.left_paren_span.start.offset()..each.right_paren_span.end.offset());
                self.compute(head.unwrap_or("unknown"), state);
                self.body(&[&each.body], around, state);
            }
            Compound::While(each) => self.body(&[&each.condition, &each.body], around, state),
            Compound::Until(each) => self.body(&[&each.condition, &each.body], around, state),
            Compound::Case(case) => {
                self.words(&case.word, Use::Whole, around, state);
                for pattern in case.cases.iter().flat_map(|item| &item.patterns) {
                    let text = around.source.slice(pattern.span).unwrap_or("$((unknown))");
                    if let Some(why) = arithmetic::danger(text, state) {
                        self.doubt(Harm::Runs, why);
                    }
                }
                let ways: Vec<&ast::StmtSeq> = case.cases.iter().map(|item| &item.body).collect();
                self.ways(&ways, around, state);
            }
            Compound::Select(select) => {
                for word in &select.words {
                    self.words(word, Use::Argument, around, state);
                }
                self.bind(&select.variable, Value::unknown(true), state);
                self.body(&[&select.body], around, state);
            }
            Compound::Arithmetic(command) => {
                let text = command.expr_span.and_then(|span| around.source.slice(span)).unwrap_or_default();
                self.compute(text, state);
            }
            Compound::Time(time) => {
                if let Some(command) = &time.command {
                    return self.stmt(command, around, state);
                }
            }
            Compound::Conditional(condition) => {
                let text = around.source.slice(condition.span).unwrap_or("unknown");
                if let Some(why) = arithmetic::condition(text, state).or_else(|| arithmetic::danger(text, state)) {
                    self.doubt(Harm::Runs, why);
                }
            }
            Compound::Coproc(coproc) => {
                let standing = around.standing.in_background(true);
                let around = Around { standing: &standing, stdin: &Stream::Unknown, ..around };
                self.stmt(&coproc.body, around, &mut state.clone());
                self.bind(&coproc.name, Value::unknown(true), state);
            }
            Compound::Repeat(_) | Compound::Foreach(_) | Compound::Always(_) => {
                self.doubt(Harm::Unknown, "it holds something that bash does not know");
            }
        }
        Stream::Unknown
    }

    /// `(( … ))`: its variables are numbers afterwards.
    pub(in crate::shell) fn compute(&mut self, text: &str, state: &mut State) {
        for part in text.split([';', ',']) {
            // What is set to a number is one from then on.
            if let Some(name) = arithmetic::set_to_number(part) {
                self.bind(name, Value::Number, state);
                continue;
            }
            if let Some(name) = arithmetic::unsafe_name(part, state) {
                self.doubt(Harm::Runs, format!("`{name}` stands in arithmetic, which runs what is in it"));
            }
            for name in arithmetic::assigned(part) {
                self.bind(&name, Value::Number, state);
            }
        }
    }

    fn branches(&mut self, branches: &ast::IfCommand, around: Around<'_>, state: &mut State) {
        self.sequence(&branches.condition, around, state);
        let mut ways = vec![&branches.then_branch];
        for (condition, then) in &branches.elif_branches {
            ways.push(condition);
            ways.push(then);
        }
        ways.extend(&branches.else_branch);
        self.ways(&ways, around, state);
    }

    /// Several ways, of which any or none may be taken.
    fn ways(&mut self, ways: &[&ast::StmtSeq], around: Around<'_>, state: &mut State) {
        let before = state.clone();
        for way in ways {
            let mut taken = before.clone();
            self.sequence(way, around, &mut taken);
            state.or(taken);
        }
    }

    fn each(&mut self, each: &ast::ForCommand, around: Around<'_>, state: &mut State) {
        let mut values = Vec::new();
        for word in each.words.iter().flatten() {
            values.extend(self.words(word, Use::Argument, around, state));
        }
        let value = if each.words.is_some() { among(&values) } else { Value::unknown(true) };
        let names: Vec<String> =
            each.targets.iter().filter_map(|target| Some(target.name.as_ref()?.to_string())).collect();
        if names.len() != 1 || each.targets.len() != 1 {
            self.doubt(Harm::Unknown, "a loop's variable is not known");
        }
        for name in &names {
            self.bind(name, value.clone(), state);
        }
        let set = |state: &mut State| names.iter().for_each(|name| state.set(name, value.clone()));
        self.rounds(&[&each.body], around, (state, &set));
        for name in &names {
            state.forget(name);
        }
    }

    /// The body of a loop, which may run any number of times.
    fn body(&mut self, parts: &[&ast::StmtSeq], around: Around<'_>, state: &mut State) {
        self.rounds(parts, around, (state, &|_: &mut State| {}));
    }

    /// Walks the body of a loop until nothing that it changes is taken for known when it begins. What earlier
    /// rounds found is dropped: the last one sees all of it, and knows less.
    fn rounds(&mut self, parts: &[&ast::StmtSeq], around: Around<'_>, (state, set): (&mut State, &dyn Fn(&mut State))) {
        for round in 0..ROUNDS_MAX {
            self.rounds += 1;
            // Loops in loops would multiply.
            let last = round + 1 == ROUNDS_MAX || self.rounds > ALL_ROUNDS_MAX;
            if last {
                state.forget_all();
            }
            let mark = self.mark();
            let mut inner = state.clone();
            set(&mut inner);
            for part in parts {
                self.sequence(part, around, &mut inner);
            }
            let mut either = state.clone();
            either.or(inner);
            let settled = either == *state;
            *state = either;
            if settled || last {
                return;
            }
            self.drop_since(&mark);
        }
    }
}

/// The members of a left-leaning chain, each with the operator before it.
fn chain(binary: &ast::BinaryCommand, same: impl Fn(BinaryOp) -> bool) -> Vec<(Option<BinaryOp>, &ast::Stmt)> {
    let mut members = vec![(Some(binary.op), &*binary.right)];
    let mut left = &*binary.left;
    while let ast::Command::Binary(inner) = &left.command
        && same(inner.op)
        && left.redirects.is_empty()
        && left.terminator.is_none()
    {
        members.push((Some(inner.op), &*inner.right));
        left = &inner.left;
    }
    members.push((None, left));
    members.reverse();
    members
}

fn either(one: Option<State>, other: State) -> State {
    match one {
        Some(mut one) => {
            one.or(other);
            one
        }
        None => other,
    }
}

/// One of several words.
fn among(words: &[Word]) -> Value {
    match words {
        [] => Value::Known(String::new()),
        [one] => one.value.clone(),
        words => {
            if words.iter().all(|word| word.literal().is_some_and(|text| text.parse::<i64>().is_ok())) {
                return Value::Number;
            }
            joined(words).unwrap_or_else(|| Value::unknown(true))
        }
    }
}

/// Several names as one pattern.
fn joined(words: &[Word]) -> Option<Value> {
    const SEVERAL: usize = 64;
    let mut patterns = Vec::new();
    for word in words.iter().take(SEVERAL + 1) {
        match &word.value {
            Value::Known(text) if !text.is_empty() && !text.contains(['\\', '{', '}', ',', '*', '?', '[', ' ']) => {
                patterns.push(text.clone());
            }
            Value::Glob(pattern) if !pattern.contains(['{', '}', ',', '\\']) => patterns.push(pattern.clone()),
            _ => return None,
        }
    }
    (words.len() <= SEVERAL).then(|| Value::Glob(format!("{{{}}}", patterns.join(","))))
}
