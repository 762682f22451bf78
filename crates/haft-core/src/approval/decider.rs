//! Who decides: the identity behind an answer to a question, and whether it has the right to give one.
//!
//! The right is a property of the identity and is stated in one place, [`DeciderIdentity::right`]. An agent's identity
//! never has it, at any door: an agent that could answer would approve its own calls. Two functions accept a decision,
//! [`crate::Pending::answer`] for a question that is answered at its own door and the store for one that waits in the
//! inbox, and both take a [`Decider`] and ask it first.

use crate::error::{CallError, ErrorKind};
use crate::preview::{cut, inert};
use serde::Serialize;
use std::fmt;

/// How much of a name that a program chose for itself is repeated.
const NAME_COLUMNS: usize = 64;

/// Who answers a question, and by which door.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DeciderIdentity {
    /// A person at the terminal that haft runs in: a prompt, the full-screen program.
    Terminal,
    /// A command of the user's, with or without a terminal: `haft approvals approve`.
    CommandLine {
        /// The user's name, as the environment has it.
        user: Option<String>,
    },
    /// The flag `--yes` of a command of the user's.
    YesFlag,
    /// The holder of the gateway's owner token, on the page or in a program.
    OwnerToken,
    /// The holder of a link, which is for one approval.
    Link {
        /// The approval's id.
        approval: String,
    },
    /// An MCP client that the user started, over stdin and stdout.
    LocalClient {
        /// What the client calls itself.
        client: Option<String>,
    },
    /// An MCP client over HTTP that holds the owner token.
    OwnerClient {
        /// What the client calls itself.
        client: Option<String>,
    },
    /// The user of a coding agent, whom the agent's program asks about its own call when haft's hook says so.
    ClientPrompt {
        /// The program's name.
        client: String,
    },
    /// The program that embeds haft as a library, for its own user.
    Embedder {
        /// What the program calls it.
        name: String,
    },
    /// An identity with the right to decide, on another machine or earlier: the store has accepted and kept its yes.
    Stored {
        /// Its name, as the store has it.
        by: String,
    },
    /// The holder of the gateway's token for agents.
    AgentToken,
    /// An MCP client over HTTP that holds the token for agents.
    AgentClient {
        /// What the client calls itself.
        client: Option<String>,
    },
    /// A program that an agent started, by a call of haft's or with a shell of its own.
    AgentProgram {
        /// By what it is known as one.
        sign: String,
    },
    /// A door at which nobody is asked.
    Unattended {
        /// Which door.
        door: &'static str,
    },
}

/// Whether an identity may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionRight {
    /// It may answer every question.
    MayDecide,
    /// It may answer the one question that it was made for, for this once.
    MayDecideOnce,
    /// It may answer none.
    MayNotDecide,
}

/// For how long an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionScope {
    /// For one call.
    Once,
    /// For calls to come, too.
    Lasting,
}

impl DeciderIdentity {
    /// The right to decide. Everything that accepts a decision goes by this.
    pub const fn right(&self) -> DecisionRight {
        match self {
            Self::Terminal
            | Self::CommandLine { .. }
            | Self::YesFlag
            | Self::OwnerToken
            | Self::LocalClient { .. }
            | Self::OwnerClient { .. }
            | Self::ClientPrompt { .. }
            | Self::Embedder { .. }
            | Self::Stored { .. } => DecisionRight::MayDecide,
            Self::Link { .. } => DecisionRight::MayDecideOnce,
            Self::AgentToken | Self::AgentClient { .. } | Self::AgentProgram { .. } | Self::Unattended { .. } => {
                DecisionRight::MayNotDecide
            }
        }
    }

    /// Whether it is an agent's.
    pub const fn is_agent(&self) -> bool {
        matches!(self, Self::AgentToken | Self::AgentClient { .. } | Self::AgentProgram { .. })
    }
}

fn client_name(client: Option<&str>) -> String {
    client.map_or_else(|| "an MCP client".to_owned(), |name| cut(&inert(name), NAME_COLUMNS))
}

impl fmt::Display for DeciderIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terminal => f.write_str("terminal"),
            Self::CommandLine { user: Some(user) } => write!(f, "cli ({})", cut(&inert(user), NAME_COLUMNS)),
            Self::CommandLine { user: None } => f.write_str("cli"),
            Self::YesFlag => f.write_str("--yes"),
            Self::OwnerToken => f.write_str("owner token"),
            Self::Link { .. } => f.write_str("link"),
            Self::LocalClient { client } => write!(f, "elicitation by {}", client_name(client.as_deref())),
            Self::OwnerClient { client } => {
                write!(f, "elicitation by {}, with the owner token", client_name(client.as_deref()))
            }
            Self::ClientPrompt { client } => write!(f, "the prompt of {}", client_name(Some(client))),
            Self::Embedder { name } => f.write_str(name),
            Self::Stored { by } => f.write_str(by),
            Self::AgentToken => f.write_str("agents' token"),
            Self::AgentClient { client } => write!(f, "{}, with the agents' token", client_name(client.as_deref())),
            Self::AgentProgram { sign } => write!(f, "a program that an agent started ({})", cut(&inert(sign), 80)),
            Self::Unattended { door } => f.write_str(door),
        }
    }
}

/// An identity that answers a question, with its right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decider {
    #[serde(flatten)]
    identity: DeciderIdentity,
    right: DecisionRight,
}

impl From<DeciderIdentity> for Decider {
    fn from(identity: DeciderIdentity) -> Self {
        Self { right: identity.right(), identity }
    }
}

impl Decider {
    /// The program that embeds haft as a library, under a name that it chooses. It answers for its own user.
    pub fn embedder(name: impl Into<String>) -> Self {
        DeciderIdentity::Embedder { name: name.into() }.into()
    }

    /// Who it is.
    pub const fn identity(&self) -> &DeciderIdentity {
        &self.identity
    }

    /// Whether it may decide anything at all.
    pub fn may_decide(&self) -> bool {
        self.right != DecisionRight::MayNotDecide
    }

    /// Whether it may answer this question, for so long.
    pub fn check(&self, question: &str, scope: DecisionScope) -> Result<(), DecisionRefused> {
        let allowed = match (self.right, &self.identity) {
            (DecisionRight::MayDecide, _) => true,
            (DecisionRight::MayDecideOnce, DeciderIdentity::Link { approval }) => {
                approval == question && scope == DecisionScope::Once
            }
            (DecisionRight::MayDecideOnce | DecisionRight::MayNotDecide, _) => false,
        };
        if allowed { Ok(()) } else { Err(DecisionRefused { decider: self.clone() }) }
    }
}

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.identity.fmt(f)
    }
}

/// An answer that does not count: its identity has no right to give it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this answer does not count: {}", reason(.decider))]
pub struct DecisionRefused {
    /// Who gave it.
    pub decider: Decider,
}

fn reason(decider: &Decider) -> String {
    match decider.right {
        DecisionRight::MayDecideOnce => "a link is for one approval: it says `once` or `reject`".to_owned(),
        DecisionRight::MayDecide => format!("no yes of {decider} is kept for this question"),
        DecisionRight::MayNotDecide if decider.identity.is_agent() => {
            format!("{decider} decides nothing; an agent does not approve calls")
        }
        DecisionRight::MayNotDecide => format!("{decider} decides nothing"),
    }
}

impl DecisionRefused {
    /// What a caller is told of it.
    pub fn into_error(self) -> CallError {
        CallError::new(ErrorKind::Denied, self.to_string()).hint(
            "a person decides: on the page of `haft serve`, at a terminal with `haft approvals`, or in `haft tui`",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row for each kind of identity. One without a row does not compile.
    macro_rules! rows {
        ($($pattern:pat => $identity:expr, $right:expr;)*) => {
            fn all() -> Vec<(DeciderIdentity, DecisionRight)> {
                let has_row = |identity: &DeciderIdentity| match identity { $($pattern => {})* };
                let rows = vec![$(($identity, $right)),*];
                for (identity, _) in &rows {
                    has_row(identity);
                }
                rows
            }
        };
    }

    fn x() -> String {
        "x".to_owned()
    }

    rows! {
        DeciderIdentity::Terminal => DeciderIdentity::Terminal, DecisionRight::MayDecide;
        DeciderIdentity::CommandLine { .. } => DeciderIdentity::CommandLine { user: None }, DecisionRight::MayDecide;
        DeciderIdentity::YesFlag => DeciderIdentity::YesFlag, DecisionRight::MayDecide;
        DeciderIdentity::OwnerToken => DeciderIdentity::OwnerToken, DecisionRight::MayDecide;
        DeciderIdentity::Link { .. } => DeciderIdentity::Link { approval: x() }, DecisionRight::MayDecideOnce;
        DeciderIdentity::LocalClient { .. } => DeciderIdentity::LocalClient { client: None }, DecisionRight::MayDecide;
        DeciderIdentity::OwnerClient { .. } => DeciderIdentity::OwnerClient { client: Some(x()) }, DecisionRight::MayDecide;
        DeciderIdentity::ClientPrompt { .. } => DeciderIdentity::ClientPrompt { client: x() }, DecisionRight::MayDecide;
        DeciderIdentity::Embedder { .. } => DeciderIdentity::Embedder { name: x() }, DecisionRight::MayDecide;
        DeciderIdentity::Stored { .. } => DeciderIdentity::Stored { by: x() }, DecisionRight::MayDecide;
        DeciderIdentity::AgentToken => DeciderIdentity::AgentToken, DecisionRight::MayNotDecide;
        DeciderIdentity::AgentClient { .. } => DeciderIdentity::AgentClient { client: Some(x()) }, DecisionRight::MayNotDecide;
        DeciderIdentity::AgentProgram { .. } => DeciderIdentity::AgentProgram { sign: x() }, DecisionRight::MayNotDecide;
        DeciderIdentity::Unattended { .. } => DeciderIdentity::Unattended { door: "nobody" }, DecisionRight::MayNotDecide;
    }

    #[test]
    fn right_follows_from_identity_for_every_question_and_scope() {
        for (identity, right) in all() {
            let decider = Decider::from(identity);
            for (question, scope) in
                [("x", DecisionScope::Once), ("x", DecisionScope::Lasting), ("y", DecisionScope::Once)]
            {
                let expected = match right {
                    DecisionRight::MayDecide => true,
                    DecisionRight::MayDecideOnce => (question, scope) == ("x", DecisionScope::Once),
                    DecisionRight::MayNotDecide => false,
                };
                assert_eq!(decider.check(question, scope).is_ok(), expected, "{decider:?} {question} {scope:?}");
            }
            assert!(!decider.identity().is_agent() || !decider.may_decide(), "{decider:?}");
        }
    }

    #[test]
    fn log_names_kind_and_right_whatever_a_client_calls_itself() {
        let agent = Decider::from(DeciderIdentity::AgentClient { client: Some("owner token".to_owned()) });
        let said = serde_json::to_value(&agent).unwrap();
        assert_eq!(
            said,
            serde_json::json!({"kind": "agent_client", "client": "owner token", "right": "may_not_decide"})
        );
        assert_eq!(agent.to_string(), "owner token, with the agents' token");
    }
}
