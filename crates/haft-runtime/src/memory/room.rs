//! Whose memory it is: everybody's, or that of one agent alone, which nobody else finds anything in.

use haft_core::memory::{BadNamespace, Namespace, Scope};
use std::sync::Arc;

/// Below this is what agents keep for themselves.
const OWN: &str = "agent-own";

/// A part of memory, with names of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Room {
    /// What all share.
    #[default]
    Everybodys,
    /// What one agent has to itself, by its id.
    Own(Arc<str>),
    /// All of it, for people.
    All,
}

impl Room {
    /// The room of one agent.
    pub(crate) fn own(id: &str) -> Self {
        Self::Own(id.into())
    }

    /// The namespace that somebody in here means.
    pub(crate) fn kept(&self, said: &str) -> Result<Namespace, BadNamespace> {
        let name = Namespace::new(said)?;
        match self {
            Self::Own(id) => Namespace::new(&format!("{OWN}/{id}/{said}")),
            Self::Everybodys if is_own(said) => {
                Err(BadNamespace { name: said.to_owned(), why: "what agents keep for themselves is there" })
            }
            Self::Everybodys | Self::All => Ok(name),
        }
    }

    /// The namespaces that somebody in here means.
    pub(crate) fn scope(&self, said: &str) -> Result<Scope, BadNamespace> {
        match said.strip_suffix("/*") {
            Some(above) => self.kept(above).map(Scope::Below),
            None => self.kept(said).map(Scope::One),
        }
    }

    /// What a namespace is called in here; none if it is elsewhere.
    pub(crate) fn called<'n>(&self, kept: &'n str) -> Option<&'n str> {
        match self {
            Self::Own(id) => kept.strip_prefix(OWN)?.strip_prefix('/')?.strip_prefix(&**id)?.strip_prefix('/'),
            Self::Everybodys => Some(kept).filter(|kept| !is_own(kept)),
            Self::All => Some(kept),
        }
    }
}

fn is_own(name: &str) -> bool {
    name.strip_prefix(OWN).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_share_no_names() {
        let rooms = [Room::Everybodys, Room::own("a"), Room::own("ab")];
        for said in ["user", "sessions/abc", "agent-owner", "a"] {
            let kept = rooms.clone().map(|room| room.kept(said).unwrap());
            for (at, name) in kept.iter().enumerate() {
                let called: Vec<_> = rooms.iter().map(|room| room.called(name.as_str())).collect();
                let expected: Vec<_> = (0..rooms.len()).map(|other| (other == at).then_some(said)).collect();
                assert_eq!(called, expected, "{name}");
            }
        }
        for said in ["agent-own", "agent-own/a/user", "../user", "", "agent-own/*"] {
            assert!(Room::Everybodys.kept(said).is_err() && Room::Everybodys.scope(said).is_err(), "{said}");
        }
        assert_eq!(Room::own("a").kept("agent-own/b/user").unwrap().as_str(), "agent-own/a/agent-own/b/user");
        assert_eq!(Room::All.called("agent-own/a/user"), Some("agent-own/a/user"));
        assert!(Room::own("a").scope("sessions/*").unwrap().covers("agent-own/a/sessions/x"));
    }
}
