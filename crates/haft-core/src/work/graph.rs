//! The steps of a pipeline and what each waits for.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// The most steps that one pipeline may have.
pub const STEPS_MAX: usize = 10_000;
/// How many steps of a cycle are named.
const NAMED: usize = 12;

/// What becomes of the others when a step fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Nothing else begins.
    #[default]
    Stop,
    /// Whatever waits for it goes on, with an empty result.
    Continue,
    /// The same, and somebody is told.
    Notify,
}

/// A step, as far as the order is concerned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub id: String,
    /// The steps whose results it takes.
    pub needs: Vec<String>,
    /// What its failure means.
    pub on_failure: OnFailure,
    /// How often it is tried again.
    pub retries: u32,
}

/// Why steps are no pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// There are none, or too many.
    Count(usize),
    /// Two have one name.
    Twice(String),
    /// One waits for itself.
    Itself(String),
    /// One waits for something that is not there.
    Unknown {
        /// Which.
        step: String,
        /// For what.
        needs: String,
    },
    /// They wait for one another.
    Cycle(Vec<String>),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(0) => write!(f, "there are no steps"),
            Self::Count(count) => write!(f, "there are {count} steps, and a pipeline has at most {STEPS_MAX}"),
            Self::Twice(id) => write!(f, "two steps are called `{id}`"),
            Self::Itself(id) => write!(f, "the step `{id}` waits for itself"),
            Self::Unknown { step, needs } => write!(f, "the step `{step}` waits for `{needs}`, and there is none"),
            Self::Cycle(ids) => {
                let (shown, more) = (&ids[..ids.len().min(NAMED)], ids.len().saturating_sub(NAMED));
                write!(f, "Dependency cycle detected: {}", shown.join(" → "))?;
                if more > 0 { write!(f, " → … ({more} more)") } else { Ok(()) }
            }
        }
    }
}

/// Steps that can be run: every name is one step's, and nothing waits for itself, however far around.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    nodes: Vec<Node>,
    needs: Vec<Vec<usize>>,
    feeds: Vec<Vec<usize>>,
}

impl Graph {
    /// From steps in any order. Everything that is wrong is told at once.
    pub fn new(nodes: Vec<Node>) -> Result<Self, Vec<Wrong>> {
        if nodes.is_empty() || nodes.len() > STEPS_MAX {
            return Err(vec![Wrong::Count(nodes.len())]);
        }
        let (mut at, mut wrong) = (HashMap::new(), Vec::new());
        for (number, node) in nodes.iter().enumerate() {
            if at.insert(node.id.as_str(), number).is_some() {
                wrong.push(Wrong::Twice(node.id.clone()));
            }
        }
        let (mut needs, mut feeds) = (vec![Vec::new(); nodes.len()], vec![Vec::new(); nodes.len()]);
        for (number, node) in nodes.iter().enumerate() {
            for name in &node.needs {
                match at.get(name.as_str()) {
                    Some(needed) if *needed == number => wrong.push(Wrong::Itself(node.id.clone())),
                    Some(needed) if needs[number].contains(needed) => {}
                    Some(needed) => {
                        needs[number].push(*needed);
                        feeds[*needed].push(number);
                    }
                    None => wrong.push(Wrong::Unknown { step: node.id.clone(), needs: name.clone() }),
                }
            }
        }
        let graph = Self { nodes, needs, feeds };
        wrong.extend(graph.cycle().map(|ids| Wrong::Cycle(ids.iter().map(|at| graph.nodes[*at].id.clone()).collect())));
        if wrong.is_empty() { Ok(graph) } else { Err(wrong) }
    }

    /// The steps.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What a step waits for.
    pub fn needs(&self, step: usize) -> &[usize] {
        &self.needs[step]
    }

    /// What waits for a step.
    pub fn feeds(&self, step: usize) -> &[usize] {
        &self.feeds[step]
    }

    /// A way around, if there is one, with its beginning once more at its end.
    fn cycle(&self) -> Option<Vec<usize>> {
        let mut missing: Vec<usize> = self.needs.iter().map(Vec::len).collect();
        let mut ready: Vec<usize> = (0..missing.len()).filter(|at| missing[*at] == 0).collect();
        while let Some(at) = ready.pop() {
            for next in &self.feeds[at] {
                missing[*next] -= 1;
                if missing[*next] == 0 {
                    ready.push(*next);
                }
            }
        }
        // What is left waits for something that is left: going back from anywhere comes around.
        let mut at = missing.iter().position(|count| *count > 0)?;
        let (mut path, mut seen) = (Vec::new(), HashMap::new());
        while !seen.contains_key(&at) {
            seen.insert(at, path.len());
            path.push(at);
            at = self.needs[at].iter().copied().find(|need| missing[*need] > 0)?;
        }
        let mut around = path.split_off(seen[&at]);
        around.push(at);
        around.reverse();
        Some(around)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn node(id: &str, needs: &[&str]) -> Node {
        Node { id: id.into(), needs: needs.iter().map(|need| (*need).to_owned()).collect(), ..Node::default() }
    }

    fn wrong(nodes: Vec<Node>) -> Vec<String> {
        Graph::new(nodes).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn whatever_is_wrong_is_told_at_once() {
        let said = wrong(vec![node("a", &["b"]), node("a", &["a"]), node("c", &["d"])]);
        assert_eq!(
            said,
            [
                "two steps are called `a`",
                "the step `a` waits for `b`, and there is none",
                "the step `a` waits for itself",
                "the step `c` waits for `d`, and there is none"
            ]
        );
        assert_eq!(wrong(Vec::new()), ["there are no steps"]);
        let many = (0..=STEPS_MAX).map(|number| node(&number.to_string(), &[])).collect();
        assert_eq!(wrong(many), ["there are 10001 steps, and a pipeline has at most 10000"]);
    }

    #[test]
    fn a_cycle_is_shown_as_the_way_it_goes() {
        let nodes = vec![node("a", &["c"]), node("b", &["a"]), node("c", &["b"]), node("d", &["c"]), node("e", &[])];
        let said = wrong(nodes).remove(0);
        let ids: Vec<&str> = said.strip_prefix("Dependency cycle detected: ").unwrap().split(" → ").collect();
        assert_eq!((ids.len(), ids.first()), (4, ids.last()));
        assert!(["a → b → c → a", "b → c → a → b", "c → a → b → c"].iter().any(|way| said.ends_with(way)), "{said}");
        let long: Vec<Node> =
            (0..5000).map(|n| node(&n.to_string(), &[((n + 1) % 5000).to_string().as_str()])).collect();
        assert!(wrong(long)[0].ends_with("more)"));
    }
}
