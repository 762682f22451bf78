//! The walk held against the second look: what only one of the two sees is followed, or doubted.

use super::{Source, Walk};
use crate::shell::judged::{Harm, Standing};
use crate::shell::second;

/// How many substitutions are followed that only the second look finds.
const ALSO_MAX: usize = 64;

impl Walk<'_> {
    /// Follows what the second look finds and the walk has not, and doubts where the two disagree.
    pub(super) fn look_again(&mut self, source: &Source<'_>, look: &second::Look, standing: &Standing) {
        if let Some((_, why)) = look.trouble {
            self.doubt(Harm::Unknown, format!("it is not clear how it is to be read: {why}"));
        }
        let mut followed = source.followed.borrow().clone();
        followed.sort_unstable();
        // They do not overlap: what stands in a substitution is a text of its own.
        let inside = |at: usize, spans: &[(usize, usize)]| {
            let next = spans.partition_point(|(from, _)| *from <= at);
            spans.get(next.wrapping_sub(1)).is_some_and(|(_, to)| at < *to)
        };
        let mut also: Vec<(usize, usize)> = Vec::new();
        for &from in &look.substitutions {
            if inside(from, &followed) || inside(from, &also) {
                continue;
            }
            let Some(to) = closing(source.text, from).filter(|_| also.len() < ALSO_MAX) else {
                self.doubt(Harm::Unknown, "a substitution in it is not understood");
                break;
            };
            also.push((from, to));
            let Some(text) = source.text.get(from..to) else { continue };
            self.substitution(text, standing, &mut self.elsewhere(source));
        }
        let mut named = source.named.borrow().clone();
        named.sort_unstable();
        let missed = |at: &&usize| named.binary_search(at).is_err() && !inside(**at, &followed) && !inside(**at, &also);
        if let Some(at) = look.commands.iter().find(missed) {
            let rest = source.text.get(*at..).unwrap_or_default();
            self.doubt(Harm::Unknown, format!("it can be read in two ways, at `{}`", crate::shell::cut(rest)));
        }
        let mut opened = source.opened.borrow().clone();
        opened.sort_unstable();
        let known = |at: usize| inside(at, &followed) || inside(at, &also);
        let missed = |at: &&usize| opened.binary_search(at).is_err() && !known(**at);
        if look.redirects.iter().any(|at| missed(&at)) {
            self.doubt(Harm::Unknown, "it can be read in two ways: a redirection is seen only at a second look");
        }
        let joined = |span: &&(usize, usize)| look.words.binary_search(span).is_err() && !known(span.0);
        if source.args.borrow().iter().any(|span| joined(&span)) {
            self.doubt(Harm::Unknown, "it can be read in two ways: its words are not where they seem to be");
        }
        let mut words = source.words.borrow().clone();
        words.sort_unstable();
        let within = |at: usize| {
            let next = words.partition_point(|(from, _)| *from <= at);
            words.get(next.wrapping_sub(1)).is_some_and(|(_, to)| at < *to)
        };
        if look.separators.iter().any(|at| within(*at) && !inside(*at, &followed) && !inside(*at, &also)) {
            self.doubt(Harm::Unknown, "it can be read in two ways");
        }
    }
}

/// Where a substitution ends: at the first bracket up to which it is whole.
fn closing(text: &str, from: usize) -> Option<usize> {
    const TRIES: usize = 32;
    const LENGTH_MAX: usize = 16 << 10;
    let rest = text.get(from..).filter(|_| text.len() <= LENGTH_MAX)?;
    let end = if rest.starts_with('`') { '`' } else { ')' };
    let ends = rest.match_indices(end).skip_while(|(at, _)| *at == 0).take(TRIES);
    let mut ends = ends.map(|(at, _)| at + 1);
    let whole = |to: &usize| rest.get(..*to).is_some_and(|part| second::look(part).trouble.is_none());
    ends.find(whole).map(|to| from + to)
}
