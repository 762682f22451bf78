//! Whether a history can be sent: every call has its result, right after the message that made it, and nothing else claims to
//! be one. Providers refuse what is not so, and a session that ends half-way must not be lost for it.

use super::talk::{Block, Message, Role};
use std::collections::BTreeSet;

/// What is wrong with a history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A call without a result.
    #[error("message {at}: the call {id} has no result")]
    Dangling {
        /// In which message.
        at: usize,
        /// Which call.
        id: String,
    },
    /// A result without a call.
    #[error("message {at}: a result of {id}, which was not called just before")]
    Orphan {
        /// In which message.
        at: usize,
        /// Which call.
        id: String,
    },
    /// Two calls or two results of one name.
    #[error("message {at}: {id} is there twice")]
    Twice {
        /// In which message.
        at: usize,
        /// Which call.
        id: String,
    },
    /// Nobody has said anything to answer.
    #[error("message {at}: it is {}", if *.empty { "empty" } else { "not the other side's turn" })]
    Turn {
        /// Which message.
        at: usize,
        /// It says nothing.
        empty: bool,
    },
}

/// The first thing that is wrong, if something is.
pub fn check(history: &[Message]) -> Result<(), Fault> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut open_at = 0;
    let mut ever: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in history.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| history[before].role);
        if message.blocks.is_empty() || before.map_or(message.role != Role::User, |before| before == message.role) {
            return Err(Fault::Turn { at, empty: message.blocks.is_empty() });
        }
        for id in message.results() {
            if !open.remove(id) {
                return Err(Fault::Orphan { at, id: id.to_owned() });
            }
        }
        if let Some(id) = open.first() {
            return Err(Fault::Dangling { at: open_at, id: (*id).to_owned() });
        }
        for (id, ..) in message.uses() {
            if !ever.insert(id) {
                return Err(Fault::Twice { at, id: id.to_owned() });
            }
            open.insert(id);
            open_at = at;
        }
    }
    open.first().map_or(Ok(()), |id| Err(Fault::Dangling { at: open_at, id: (*id).to_owned() }))
}

/// What a call is told of that never came to its end.
pub const CUT_OFF: &str =
    "This call was cut off before it ended. What it did until then is in the log; look before you repeat it.";

/// Makes any history one that can be sent, by as little as will do: calls without results get one that says so, results without
/// calls go, empty messages go, and neighbours of one side become one message.
pub fn mend(history: Vec<Message>) -> Vec<Message> {
    let mut mended: Vec<Message> = Vec::with_capacity(history.len());
    let mut ever: BTreeSet<String> = BTreeSet::new();
    for mut message in history {
        let open: Vec<String> = match mended.last() {
            Some(last) if last.role == Role::Assistant => last.uses().map(|(id, ..)| id.to_owned()).collect(),
            _ => Vec::new(),
        };
        let known: BTreeSet<&str> = open.iter().map(String::as_str).collect();
        let mut told = BTreeSet::new();
        message.blocks.retain(|block| match block {
            Block::Result { id, .. } => known.contains(id.as_str()) && told.insert(id.clone()),
            Block::Use { id, .. } => ever.insert(id.clone()),
            _ => true,
        });
        if message.role == Role::User {
            let missing = open.iter().filter(|id| !told.contains(*id)).map(|id| cut_off(id));
            // Results come first: whatever a person adds, they are what was waited for.
            let (mut blocks, rest): (Vec<Block>, Vec<Block>) =
                message.blocks.into_iter().partition(|block| matches!(block, Block::Result { .. }));
            blocks.extend(missing);
            blocks.extend(rest);
            message.blocks = blocks;
        } else if !open.is_empty() {
            let blocks = open.iter().map(|id| cut_off(id)).collect();
            mended.push(Message { role: Role::User, blocks });
        }
        join(&mut mended, message);
    }
    let open: Vec<Block> = match mended.last() {
        Some(last) if last.role == Role::Assistant => last.uses().map(|(id, ..)| cut_off(id)).collect(),
        _ => Vec::new(),
    };
    join(&mut mended, Message { role: Role::User, blocks: open });
    mended
}

fn cut_off(id: &str) -> Block {
    Block::result(id, CUT_OFF, true)
}

/// Adds a message; to the last one if that is of the same side.
fn join(history: &mut Vec<Message>, message: Message) {
    if message.blocks.is_empty() {
        return;
    }
    match history.last_mut() {
        Some(last) if last.role == message.role => last.blocks.extend(message.blocks),
        // A conversation begins with somebody who wants something.
        None if message.role == Role::Assistant => {
            history.push(Message::user("(the beginning is not kept)"));
            history.push(message);
        }
        _ => history.push(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn a_use(id: &str) -> Block {
        Block::Use { id: id.to_owned(), name: "file_read".to_owned(), input: json!({}), mark: None }
    }

    fn a_result(id: &str) -> Block {
        Block::result(id, "ok", false)
    }

    fn said(role: Role, blocks: Vec<Block>) -> Message {
        Message { role, blocks }
    }

    #[test]
    fn what_providers_refuse_is_found_before_they_do() {
        let good = [
            Message::user("go"),
            said(Role::Assistant, vec![a_use("a"), a_use("b")]),
            said(Role::User, vec![a_result("b"), a_result("a")]),
            said(Role::Assistant, vec![Block::Text { text: "done".into() }]),
        ];
        assert_eq!(check(&good), Ok(()));
        assert_eq!(check(&good[..2]), Err(Fault::Dangling { at: 1, id: "a".into() }));
        assert_eq!(check(&good[2..]), Err(Fault::Orphan { at: 0, id: "b".into() }));
        assert_eq!(check(&good[1..]), Err(Fault::Turn { at: 0, empty: false }));
        assert_eq!(check(&[Message { role: Role::User, blocks: vec![] }]), Err(Fault::Turn { at: 0, empty: true }));
        assert_eq!(mend(good.to_vec()), good, "what is right stays as it is");
    }

    fn any_block() -> impl Strategy<Value = Block> {
        prop_oneof![
            "[a-c]".prop_map(|id| a_use(&id)),
            "[a-c]".prop_map(|id| a_result(&id)),
            "[x-z]{1,3}".prop_map(|text| Block::Text { text }),
        ]
    }

    fn any_message() -> impl Strategy<Value = Message> {
        (prop_oneof![Just(Role::User), Just(Role::Assistant)], proptest::collection::vec(any_block(), 0..4)).prop_map(
            |(role, mut blocks)| {
                // A model does not tell results, and a person makes no calls.
                blocks.retain(|block| match block {
                    Block::Use { .. } => role == Role::Assistant,
                    Block::Result { .. } => role == Role::User,
                    _ => true,
                });
                Message { role, blocks }
            },
        )
    }

    proptest! {
        #[test]
        fn whatever_was_cut_off_can_be_sent_again(history in proptest::collection::vec(any_message(), 0..8)) {
            let mended = mend(history.clone());
            prop_assert_eq!(check(&mended), Ok(()));
            prop_assert_eq!(mend(mended.clone()), mended.clone(), "and once is enough");
            let words = |history: &[Message]| history.iter().flat_map(|message| message.blocks.clone())
                .filter(|block| matches!(block, Block::Text { .. })).count();
            prop_assert!(words(&mended) >= words(&history), "no word is lost");
        }
    }
}
