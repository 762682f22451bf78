//! Statements: pipelines, lists, groups, conditions, loops and functions.

use super::{Source, Stream, Walk};
use crate::shell::arithmetic;
use crate::shell::judged::{Harm, Redirect, Standing};
use crate::shell::state::State;
use crate::shell::value::Use;
use crate::shell::word::{Value, Word};
use shuck_ast::{self as ast, BinaryOp};

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
                doubts.into_iter().for_each(|doubt| self.doubt(doubt.harm, doubt.why));
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
                Some(BinaryOp::Or) => (either(kept, ran), Some(failed)),
                _ => (Some(ran), either(kept, failed)),
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
        let names: Vec<String> = arithmetic::assigned(text);
        for name in &names {
            // What is assigned first is a number when it is read.
            let first = text.trim_start_matches(['(', ' ']).strip_prefix(name.as_str());
            if first.is_some_and(|rest| rest.trim_start().starts_with('=')) {
                state.set(name, Value::Number);
            }
        }
        if let Some(name) = arithmetic::unsafe_name(text, state) {
            self.doubt(Harm::Runs, format!("`{name}` stands in arithmetic, which runs what is in it"));
        }
        names.iter().for_each(|name| self.bind(name, Value::Number, state));
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
        let mut inner = state.clone();
        unsettle(source, &[&each.body], &mut inner);
        names.iter().for_each(|name| self.bind(name, value.clone(), &mut inner));
        self.sequence(source, &each.body, standing, &mut inner, stdin);
        state.or(inner);
        names.iter().for_each(|name| state.forget(name));
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
        let mut inner = state.clone();
        unsettle(source, parts, &mut inner);
        for part in parts {
            self.sequence(source, part, standing, &mut inner, stdin);
        }
        state.or(inner);
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

fn either(one: Option<State>, other: State) -> Option<State> {
    match one {
        Some(mut one) => {
            one.or(other);
            Some(one)
        }
        None => Some(other),
    }
}

/// What a loop's body may have changed is not known when it begins again.
fn unsettle(source: &Source<'_>, parts: &[&ast::StmtSeq], state: &mut State) {
    for part in parts {
        let text = source.slice(part.span).unwrap_or_default();
        for name in assigned_somewhere(text) {
            state.forget(name);
        }
        if ["cd", "pushd", "popd"].iter().any(|word| text.contains(word)) {
            state.lose();
        }
        if ["eval", "source", ". "].iter().any(|word| text.contains(word)) {
            state.forget_all();
        }
    }
}

/// Words after which names of variables stand that are set.
const SETTERS: &[&str] = &[
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "for",
    "select",
    "declare",
    "local",
    "typeset",
    "export",
    "unset",
    "let",
    "printf",
];

/// Names that a text may set, anywhere in it.
fn assigned_somewhere(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || ";&|()`\"'${}".contains(c));
    let mut setting = false;
    words.filter_map(move |word| {
        if SETTERS.contains(&word) {
            setting = true;
            return None;
        }
        if matches!(word, "do" | "in" | "then" | "done") {
            setting = false;
        }
        let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(word.len());
        let (name, after) = word.split_at(end);
        let assigns = after.starts_with(['=', '['])
            || ["++", "--", ":="].iter().any(|op| after.starts_with(op))
            || (after.starts_with(['+', '-', '*', '/', '%', '&', '|', '^', '<', '>'])
                && after[1..].trim_start_matches(['<', '>']).starts_with('='));
        (!name.is_empty() && (assigns || setting)).then_some(name)
    })
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
