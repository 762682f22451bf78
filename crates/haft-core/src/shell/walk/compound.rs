//! Statements: pipelines, lists, groups, conditions, loops and functions.

use super::{Source, Stream, Walk};
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
    pub(super) fn stmt(
        &mut self,
        source: &Source<'_>,
        stmt: &ast::Stmt,
        standing: &Standing,
        state: &mut State,
        stdin: &Stream,
    ) -> Stream {
        if !self.enter() {
            return Stream::Unknown;
        }
        let printed = self.one(source, stmt, standing, state, stdin);
        self.leave();
        printed
    }

    fn one(
        &mut self,
        source: &Source<'_>,
        stmt: &ast::Stmt,
        standing: &Standing,
        state: &mut State,
        stdin: &Stream,
    ) -> Stream {
        let background = matches!(stmt.terminator, Some(ast::StmtTerminator::Background(_)));
        let mut away;
        let state = if background {
            away = state.clone();
            &mut away
        } else {
            state
        };
        let standing = &Standing { background: standing.background || background, ..standing.clone() };
        match &stmt.command {
            ast::Command::Simple(_) | ast::Command::Builtin(_) | ast::Command::Decl(_) => {
                self.simple(source, stmt, standing, state, stdin)
            }
            command => {
                let (redirects, given) = self.redirects(source, &stmt.redirects, standing, state);
                let mut doubts = Vec::new();
                self.touch(&redirects, state, &mut doubts);
                for doubt in doubts {
                    self.doubt(doubt.harm, doubt.why);
                }
                let printed = self.compound(source, command, standing, state, given.as_ref().unwrap_or(stdin));
                if redirects.is_empty() { printed } else { Stream::Unknown }
            }
        }
    }

    pub(super) fn redirects(
        &mut self,
        source: &Source<'_>,
        redirects: &[ast::Redirect],
        standing: &Standing,
        state: &State,
    ) -> (Vec<Redirect>, Option<Stream>) {
        let (mut all, mut given) = (Vec::new(), None);
        for redirect in redirects {
            let (one, text) = self.redirect(source, redirect, standing, state);
            given = text.or(given);
            all.push(one);
        }
        (all, given)
    }

    fn compound(
        &mut self,
        source: &Source<'_>,
        command: &ast::Command,
        standing: &Standing,
        state: &mut State,
        stdin: &Stream,
    ) -> Stream {
        match command {
            ast::Command::Binary(binary) => match binary.op {
                BinaryOp::Pipe | BinaryOp::PipeAll => self.pipeline(source, binary, standing, state, stdin),
                BinaryOp::And | BinaryOp::Or => self.list(source, binary, standing, state, stdin),
            },
            ast::Command::Function(function) => self.function(source, function, standing),
            ast::Command::Compound(compound) => self.control(source, compound, standing, state, stdin),
            _ => {
                self.doubt(Harm::Unknown, "it holds something that bash does not know");
                Stream::Unknown
            }
        }
    }

    /// `a | b | c`: each in a shell of its own, each given what the one before prints.
    fn pipeline(
        &mut self,
        source: &Source<'_>,
        binary: &ast::BinaryCommand,
        standing: &Standing,
        state: &mut State,
        stdin: &Stream,
    ) -> Stream {
        let members = chain(binary, |op| matches!(op, BinaryOp::Pipe | BinaryOp::PipeAll));
        let mut stream = stdin.clone();
        for (number, (_, member)) in members.iter().enumerate() {
            let standing = Standing { pipeline: Some((number + 1, members.len())), ..standing.clone() };
            stream = self.stmt(source, member, &standing, &mut state.clone(), &stream);
        }
        stream
    }

    /// `a && b || c`. What is known is kept apart for when it went well so far and for when it did not.
    fn list(
        &mut self,
        source: &Source<'_>,
        binary: &ast::BinaryCommand,
        standing: &Standing,
        state: &mut State,
        stdin: &Stream,
    ) -> Stream {
        let members = chain(binary, |op| matches!(op, BinaryOp::And | BinaryOp::Or));
        let (mut well, mut wrong): (Option<State>, Option<State>) = (Some(state.clone()), None);
        for (op, member) in members {
            let (taken, kept) = match op {
                Some(BinaryOp::Or) => (&mut wrong, &mut well),
                _ => (&mut well, &mut wrong),
            };
            let mut ran = taken.take().unwrap_or_else(|| state.clone());
            let before = self.commands.len();
            self.stmt(source, member, standing, &mut ran, stdin);
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

    fn function(&mut self, source: &Source<'_>, function: &ast::FunctionDef, standing: &Standing) -> Stream {
        let names: Vec<String> = function.static_names().map(ToString::to_string).collect();
        if names.is_empty() {
            self.doubt(Harm::Unknown, "a function's name is not known");
        }
        self.functions.extend(names.iter().cloned());
        let mut through = standing.through.clone();
        through.push(format!("function {}", names.join(" ")));
        let standing = Standing { through, pipeline: None, background: standing.background };
        // Nothing is known of with what it will be called, nor where, if anything goes elsewhere.
        let mut state = self.elsewhere(source);
        self.stmt(source, &function.body, &standing, &mut state, &Stream::Unknown);
        Stream::Unknown
    }

    fn control(
        &mut self,
        source: &Source<'_>,
        compound: &ast::CompoundCommand,
        standing: &Standing,
        state: &mut State,
        stdin: &Stream,
    ) -> Stream {
        use ast::CompoundCommand as Compound;
        match compound {
            Compound::BraceGroup(body) => return self.sequence(source, body, standing, state, stdin),
            Compound::Subshell(body) => {
                return self.sequence(source, body, standing, &mut state.clone(), stdin);
            }
            Compound::If(branches) => self.branches(source, branches, standing, state, stdin),
            Compound::For(each) => self.each(source, each, standing, state, stdin),
            Compound::ArithmeticFor(each) => {
                let head = source.text.get(each.left_paren_span.start.offset()..each.right_paren_span.end.offset());
                self.compute(head.unwrap_or("unknown"), state);
                self.body(source, &[&each.body], standing, state, stdin);
            }
            Compound::While(each) => self.body(source, &[&each.condition, &each.body], standing, state, stdin),
            Compound::Until(each) => self.body(source, &[&each.condition, &each.body], standing, state, stdin),
            Compound::Case(case) => {
                self.words(source, &case.word, Use::Whole, standing, state);
                for pattern in case.cases.iter().flat_map(|item| &item.patterns) {
                    let text = source.slice(pattern.span).unwrap_or("$((unknown))");
                    if let Some(why) = arithmetic::danger(text, state) {
                        self.doubt(Harm::Runs, why);
                    }
                }
                let ways: Vec<&ast::StmtSeq> = case.cases.iter().map(|item| &item.body).collect();
                self.ways(source, &ways, standing, state, stdin);
            }
            Compound::Select(select) => {
                for word in &select.words {
                    self.words(source, word, Use::Argument, standing, state);
                }
                self.bind(&select.variable, Value::unknown(true), state);
                self.body(source, &[&select.body], standing, state, stdin);
            }
            Compound::Arithmetic(command) => {
                let text = command.expr_span.and_then(|span| source.slice(span)).unwrap_or_default();
                self.compute(text, state);
            }
            Compound::Time(time) => {
                if let Some(command) = &time.command {
                    return self.stmt(source, command, standing, state, stdin);
                }
            }
            Compound::Conditional(condition) => {
                let text = source.slice(condition.span).unwrap_or("unknown");
                if let Some(why) = arithmetic::condition(text, state).or_else(|| arithmetic::danger(text, state)) {
                    self.doubt(Harm::Runs, why);
                }
            }
            Compound::Coproc(coproc) => {
                let standing = Standing { background: true, ..standing.clone() };
                self.stmt(source, &coproc.body, &standing, &mut state.clone(), &Stream::Unknown);
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

    fn branches(
        &mut self,
        source: &Source<'_>,
        branches: &ast::IfCommand,
        standing: &Standing,
        state: &mut State,
        stdin: &Stream,
    ) {
        self.sequence(source, &branches.condition, standing, state, stdin);
        let mut ways = vec![&branches.then_branch];
        for (condition, then) in &branches.elif_branches {
            ways.push(condition);
            ways.push(then);
        }
        ways.extend(&branches.else_branch);
        self.ways(source, &ways, standing, state, stdin);
    }

    /// Several ways, of which any or none may be taken.
    fn ways(
        &mut self,
        source: &Source<'_>,
        ways: &[&ast::StmtSeq],
        standing: &Standing,
        state: &mut State,
        stdin: &Stream,
    ) {
        let before = state.clone();
        for way in ways {
            let mut taken = before.clone();
            self.sequence(source, way, standing, &mut taken, stdin);
            state.or(taken);
        }
    }

    fn each(
        &mut self,
        source: &Source<'_>,
        each: &ast::ForCommand,
        standing: &Standing,
        state: &mut State,
        stdin: &Stream,
    ) {
        let mut values = Vec::new();
        for word in each.words.iter().flatten() {
            values.extend(self.words(source, word, Use::Argument, standing, state));
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
        self.rounds(source, &[&each.body], standing, (state, &set), stdin);
        for name in &names {
            state.forget(name);
        }
    }

    /// The body of a loop, which may run any number of times.
    fn body(
        &mut self,
        source: &Source<'_>,
        parts: &[&ast::StmtSeq],
        standing: &Standing,
        state: &mut State,
        stdin: &Stream,
    ) {
        self.rounds(source, parts, standing, (state, &|_: &mut State| {}), stdin);
    }

    /// Walks the body of a loop until nothing that it changes is taken for known when it begins. What earlier
    /// rounds found is dropped: the last one sees all of it, and knows less.
    fn rounds(
        &mut self,
        source: &Source<'_>,
        parts: &[&ast::StmtSeq],
        standing: &Standing,
        (state, set): (&mut State, &dyn Fn(&mut State)),
        stdin: &Stream,
    ) {
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
                self.sequence(source, part, standing, &mut inner, stdin);
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
