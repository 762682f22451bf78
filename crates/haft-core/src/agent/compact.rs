//! Making shorter what is sent, when a model's window is full. What is kept elsewhere stays whole.
//!
//! First what tools gave long ago is left out, which costs nothing and loses what can be had again. If that is not enough, the
//! older part is told in a model's own words, and the newer part stays as it is. Pairs of calls and results stay together.

use super::pairs::mend;
use super::talk::{Block, Message, Role};
use crate::tokens::estimate;

/// A result longer than this is left out when it is old, in characters.
const LONG: usize = 400;
/// What a picture costs, about, in tokens.
const PICTURE: usize = 1500;
/// What stands in for what was left out.
const LEFT_OUT: &str = "[left out to save room: it can be had again by calling the tool again]";

/// About how many tokens messages are.
pub fn weigh(messages: &[Message]) -> usize {
    messages.iter().flat_map(|message| &message.blocks).map(weight).sum::<usize>() + messages.len() * 4
}

fn weight(block: &Block) -> usize {
    match block {
        Block::Text { text } | Block::Thinking { text, .. } => estimate(text),
        Block::Use { name, input, .. } => estimate(name) + estimate(&input.to_string()),
        Block::Result { text, images, .. } => estimate(text) + images.len() * PICTURE,
        Block::Image(_) => PICTURE,
        Block::Foreign { value, .. } => estimate(&value.to_string()),
    }
}

/// Leaves out what tools gave, but for the newest messages that come to about `keep` tokens.
pub fn trimmed(history: &[Message], keep: usize) -> Vec<Message> {
    let newer = newer(history, keep);
    let cut = |block: &Block| match block {
        Block::Result { id, text, images, failed, awaits } if text.len() > LONG || !images.is_empty() => {
            let head = &text[..text.floor_char_boundary(LONG / 4)];
            Block::Result {
                id: id.clone(),
                text: format!("{head}…\n{LEFT_OUT}"),
                images: Vec::new(),
                failed: *failed,
                awaits: awaits.clone(),
            }
        }
        Block::Image(_) => Block::Text { text: LEFT_OUT.to_owned() },
        other => other.clone(),
    };
    let old = history[..newer].iter().map(|message| Message {
        role: message.role,
        // Thoughts are of no use once the turn is over that they were for.
        blocks: message.blocks.iter().filter(|block| !matches!(block, Block::Thinking { .. })).map(cut).collect(),
    });
    mend(old.chain(history[newer..].iter().cloned()).collect())
}

/// Where the newer part begins that comes to about `keep` tokens. It begins with somebody's own words where it can, and never
/// with the results of calls that are in the older part.
pub fn newer(history: &[Message], keep: usize) -> usize {
    let mut left = keep;
    let mut at = history.len();
    while at > 0 {
        let weight = weigh(&history[at - 1..at]);
        if weight > left {
            break;
        }
        left -= weight;
        at -= 1;
    }
    let begins = |message: &Message| message.role == Role::User && message.results().next().is_none();
    let answers = |message: &Message| message.role == Role::Assistant;
    let found = history[at..].iter().position(begins).or_else(|| history[at..].iter().position(answers));
    found.map_or(history.len(), |more| at + more)
}

/// What a model is asked to tell the older part in its own words.
pub const SUMMARISE: &str = "The conversation is too long to be sent whole. Write down what somebody who goes on from here \
    without having seen it needs to know: what was asked for, in the person's own words where they matter; what was decided and \
    why; what was done, with the exact names of files, commands and ids; what was found out; what failed; what is still to be \
    done, and what comes next. Leave out nothing that was asked for. Write nothing else, and call no tool.";

/// A history whose older part is told in these words.
pub fn summarised(summary: &str, newer: &[Message]) -> Vec<Message> {
    let told = format!(
        "[What was said earlier was left out to save room. This is what the model itself wrote down of it; it is not the person's word.]\n\n{}\n\n[What follows is as it was said.]",
        summary.trim()
    );
    let mut history = vec![Message::user(told)];
    if newer.first().is_some_and(|first| first.role == Role::User) {
        let words = "I know what was said before, and go on.".to_owned();
        history.push(Message { role: Role::Assistant, blocks: vec![Block::Text { text: words }] });
    }
    history.extend(newer.iter().cloned());
    mend(history)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::pairs::check;
    use proptest::prelude::*;
    use serde_json::json;

    fn call(id: usize, gave: usize) -> [Message; 2] {
        let id = format!("c{id}");
        let asked =
            Block::Use { id: id.clone(), name: "file_read".to_owned(), input: json!({"path": "a"}), mark: None };
        let told = Block::result(id, "word ".repeat(gave), false);
        [Message { role: Role::Assistant, blocks: vec![asked] }, Message { role: Role::User, blocks: vec![told] }]
    }

    fn history(gave: &[usize]) -> Vec<Message> {
        let calls = gave.iter().enumerate().flat_map(|(id, gave)| call(id, *gave));
        [Message::user("Mend the parser, and keep its tests.")].into_iter().chain(calls).collect()
    }

    #[test]
    fn what_tools_gave_long_ago_is_left_out_and_words_stay() {
        let whole = history(&[5000, 5000, 10]);
        let short = trimmed(&whole, 200);
        assert!(weigh(&short) < 500 && weigh(&whole) > 10_000, "{}", weigh(&short));
        assert_eq!(short[0].text(), "Mend the parser, and keep its tests.");
        assert!(matches!(&short[2].blocks[0], Block::Result { text, .. } if text.contains("left out")));
        assert!(matches!(&short[6].blocks[0], Block::Result { text, .. } if text.starts_with("word word")));
    }

    proptest! {
        #[test]
        fn whatever_is_cut_can_be_sent(gave in prop::collection::vec(0_usize..2000, 0..20), keep in 0_usize..20_000, say in any::<bool>()) {
            let mut whole = history(&gave);
            if say {
                whole.push(Message { role: Role::Assistant, blocks: vec![Block::Text { text: "Done.".to_owned() }] });
                whole.push(Message::user("And now the lexer."));
            }
            prop_assert_eq!(check(&whole), Ok(()));
            let short = trimmed(&whole, keep);
            prop_assert_eq!(check(&short), Ok(()));
            prop_assert!(weigh(&short) <= weigh(&whole) + gave.len() * 40);
            let from = newer(&whole, keep);
            let told = summarised("It was about a parser.", &whole[from..]);
            prop_assert_eq!(check(&told), Ok(()));
            prop_assert!(weigh(&told) <= keep + 200);
        }
    }
}
