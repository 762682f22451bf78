//! What can be typed after a slash.

use haft_core::suggest;

/// What somebody wants of the terminal itself, not of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// To know the keys.
    Help,
    /// Another model.
    Model(String),
    /// To know which there are.
    Models,
    /// A new conversation.
    Clear,
    /// Another conversation; without a name, to know which there are.
    Resume(Option<String>),
    /// To take back what the last call changed.
    Undo,
    /// To know what was used.
    Cost,
    /// To leave.
    Quit,
}

/// The commands: the word, what follows it, what it is for.
pub(crate) const COMMANDS: &[(&str, &str, &str)] = &[
    ("/help", "", "the keys and these commands"),
    ("/model", "NAME", "ask another model from now on"),
    ("/models", "", "the models there are"),
    ("/clear", "", "begin a new conversation"),
    ("/resume", "[SESSION]", "go on with another conversation"),
    ("/undo", "", "take back the last change that can be taken back"),
    ("/cost", "", "what was used so far"),
    ("/quit", "", "leave"),
];

/// The command that was typed. None if it is something to say; an error if it is a command that nobody knows.
pub(crate) fn read(text: &str) -> Option<Result<Command, String>> {
    let mut words = text.split_whitespace();
    let word = words.next()?;
    // A path is no command.
    if !word.starts_with('/') || word[1..].contains('/') || text.contains('\n') {
        return None;
    }
    let rest = words.collect::<Vec<_>>().join(" ");
    let given = (!rest.is_empty()).then_some(rest);
    Some(match (word, given) {
        ("/help", _) => Ok(Command::Help),
        ("/model", Some(name)) => Ok(Command::Model(name)),
        ("/models" | "/model", _) => Ok(Command::Models),
        ("/clear" | "/new", _) => Ok(Command::Clear),
        ("/resume", session) => Ok(Command::Resume(session)),
        ("/undo", _) => Ok(Command::Undo),
        ("/cost", _) => Ok(Command::Cost),
        ("/quit" | "/exit", _) => Ok(Command::Quit),
        _ => Err(unknown(word)),
    })
}

fn unknown(word: &str) -> String {
    let near = suggest::did_you_mean(word, COMMANDS.iter().map(|(name, ..)| *name));
    let hint = near.unwrap_or_else(|| "/help lists the commands".to_owned());
    format!("there is no command {word}: {hint}. To say it to the model, begin with a space")
}

/// What a word that is not finished can become.
pub(crate) fn completions(text: &str) -> Vec<&'static str> {
    let fits = |name: &&str| text.starts_with('/') && name.starts_with(text) && *name != text;
    COMMANDS.iter().map(|(name, ..)| *name).filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_words() {
        assert_eq!(read("/model a/b"), Some(Ok(Command::Model("a/b".into()))));
        assert_eq!(read("/resume"), Some(Ok(Command::Resume(None))));
        assert_eq!(read("what is /etc/hosts?"), None);
        assert_eq!(read("/etc/hosts is wrong"), None);
        assert!(read("/qiut").unwrap().unwrap_err().contains("/quit"));
        assert_eq!(completions("/mo"), ["/model", "/models"]);
    }
}
