//! The second look at a shell command: what stands in it according to nothing but quoting, brackets and
//! reserved words.
//!
//! It shares no code and no idea with the parser, so that the two do not err together: a command
//! substitution, a redirection or the name of a command that one of them sees and the other does not is a
//! reason to ask. It builds no tree, expands nothing and does not say what a command means.
//!
//! It follows bash (5.2, without `extglob` unless a pattern is unmistakable). Where versions or options of
//! bash differ, it reports more rather than less, or [`Look::trouble`]. Time is linear in the text, nesting
//! costs no stack of the machine, and nothing is allocated but what is found.
//!
//! Two things are read on their own after the text around them, as bash does: the inside of backticks
//! (whose end is found without regard to quotes, and whose backslashes are removed first) and the body of
//! a here-document. Each is a [`Job`].

mod frame;
mod heredoc;
mod nested;
mod operator;
mod scan;
mod text;
mod word;

use frame::Kind;
use scan::Scan;
use text::Text;

/// Nesting beyond this is not followed: no person and no program writes it.
const DEEPEST: usize = 4096;

/// How many times over the text may be read: here-documents inside here-documents are read once for each
/// that they stand in.
const PASSES: usize = 16;

/// What stands in a command according to nothing but quoting and brackets. All offsets are bytes in the
/// text that was looked at, in ascending order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// The deepest nesting of substitutions, groups, compound commands, expansions, quotes and brackets.
    pub(crate) depth: usize,
    /// The deepest nesting of `{`, as if nothing were quoted and no word ended: the parser looks for the end of
    /// each that a word leaves open through all that follows, so that its time is this times the length.
    pub(crate) braces: usize,
    /// Where a command substitution (`$(`, a backtick pair, `${ cmd; }`, `${| cmd; }`) or a process
    /// substitution (`<(`, `>(`) opens.
    pub(crate) substitutions: Vec<usize>,
    /// The operators after which a command may begin: `;` `&` `|` `&&` `||` `|&` `;;` `;&` `;;&` newline,
    /// `(` and `{` of a group, the `)` after a `case` pattern, and all of `substitutions`.
    pub(crate) separators: Vec<usize>,
    /// Redirection operators, past a descriptor before them, be it a number or `{name}`.
    pub(crate) redirects: Vec<usize>,
    /// The first word of every simple command that is not an assignment or a redirection: its name.
    pub(crate) commands: Vec<usize>,
    /// From where to where each word goes: of commands, reserved words, redirections, arrays and `[[ … ]]`.
    /// Of those in backticks whose backslashes are removed first, the ends are where the source goes on.
    pub(crate) words: Vec<(usize, usize)>,
    /// What bash would not accept or this lexer does not understand: where, and why. What was found before
    /// stands, but what comes after may be missing.
    pub(crate) trouble: Option<(usize, &'static str)>,
}

/// A stretch of text that is to be read on its own.
struct Job<'a> {
    text: Text<'a>,
    start: usize,
    end: usize,
    /// [`Kind::Top`] for commands, [`Kind::Body`] for a here-document.
    kind: Kind,
    /// How deep in the whole text it stands.
    depth: usize,
}

/// Looks at `text` as bash would read it from `bash -c`.
pub(crate) fn look(text: &str) -> Look {
    let mut look = Look { braces: braces(text), ..Look::default() };
    if let Some(at) = text.bytes().position(|byte| byte == 0) {
        look.trouble = Some((at, "a NUL byte"));
        return look;
    }
    let mut jobs =
        vec![Job { text: Text::Source(text.as_bytes()), start: 0, end: text.len(), kind: Kind::Top, depth: 0 }];
    let mut fuel = PASSES * text.len();
    while let Some(job) = jobs.pop() {
        let Some(rest) = fuel.checked_sub(job.end - job.start) else {
            look.trouble.get_or_insert((job.text.place(job.start), "here-documents nested too deeply"));
            break;
        };
        fuel = rest;
        Scan::new(&job, &mut look, &mut jobs).run();
    }
    for found in [&mut look.substitutions, &mut look.separators, &mut look.redirects, &mut look.commands] {
        found.sort_unstable();
    }
    look.words.sort_unstable();
    look
}

fn braces(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'{' => open += 1,
            b'}' => open = open.saturating_sub(1),
            _ => continue,
        }
        most = most.max(open);
    }
    most
}

#[cfg(test)]
mod tests;
