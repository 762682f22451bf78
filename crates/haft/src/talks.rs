//! Finding a conversation by what somebody calls it: its whole name, or a beginning that only one has.

use crate::app::App;
use haft_core::preview::inert;
use haft_core::{CallError, SessionId, suggest};

/// How many conversations are looked through for one that is named.
const TALKS: i64 = 1000;
/// What names begin with that nobody need type.
const LEADS: [&str; 3] = ["", "chat-", "run-"];
/// How many are named if several begin so.
const NAMED: usize = 5;

/// The conversation of this project to go on with: the one that is named so or whose name alone begins so; the latest if
/// nothing is said.
pub(crate) async fn resumed(app: &App, named: &str) -> Result<SessionId, CallError> {
    let root = app.haft.workspace().stored_root();
    let talks = app.store().talks(&root, None, TALKS).await.map_err(|error| {
        let hint = error.hint();
        CallError::internal(error.to_string()).hint(hint)
    })?;
    let all: Vec<&str> = talks.iter().map(|talk| talk.session.as_str()).collect();
    let found = match named {
        "" => all.first().copied().ok_or_else(|| {
            CallError::not_found("there is no conversation in this project to go on with")
                .hint("leave --resume out to begin one; `haft session list` shows those of other projects too")
        })?,
        named => meant(named, &all, "conversation", "haft session list")?,
    };
    SessionId::new(found).ok_or_else(|| CallError::internal(format!("`{}` is no name of a session", inert(found))))
}

/// Which one is meant: the one with that name, or the only one whose name begins so. `list` is the command that lists them.
pub(crate) fn meant<'n>(named: &str, all: &[&'n str], what: &str, list: &str) -> Result<&'n str, CallError> {
    let exact = |name: &&&str| LEADS.iter().any(|lead| **name == format!("{lead}{named}"));
    let begins = |name: &&&str| LEADS.iter().any(|lead| name.starts_with(&format!("{lead}{named}")));
    if let Some(name) = all.iter().find(|name| **name == named).or_else(|| all.iter().find(exact)) {
        return Ok(name);
    }
    let fitting: Vec<&str> = all.iter().filter(begins).copied().collect();
    match fitting.as_slice() {
        [only] if !named.is_empty() => Ok(only),
        several if several.len() > 1 => {
            let some: Vec<String> = several.iter().take(NAMED).map(|name| inert(name)).collect();
            let more = if several.len() > NAMED { ", …" } else { "" };
            let count = several.len();
            Err(CallError::not_found(format!(
                "`{}` is the beginning of more than one {what}: of {count}",
                inert(named)
            ))
            .hint(format!("say more of its name: {}{more}", some.join(", "))))
        }
        _ => {
            let near = suggest::did_you_mean(named, all.iter().copied());
            Err(CallError::not_found(format!("there is no {what} `{}`", inert(named)))
                .hint(near.unwrap_or_else(|| format!("`{list}` shows those there are"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_that_only_one_has_is_enough() {
        let all = ["run-0a1b", "run-0a2c", "chat-77", "run", "default"];
        let found = |named: &str| meant(named, &all, "session", "haft session list").map_err(|error| error.message);
        assert_eq!(found("run-0a1b"), Ok("run-0a1b"));
        assert_eq!(found("0a1"), Ok("run-0a1b"));
        assert_eq!(found("7"), Ok("chat-77"));
        assert_eq!(found("run"), Ok("run"), "a whole name goes before a beginning");
        assert_eq!(found("0a"), Err("`0a` is the beginning of more than one session: of 2".to_owned()));
        assert_eq!(found("nobody"), Err("there is no session `nobody`".to_owned()));
    }
}
