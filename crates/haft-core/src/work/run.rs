//! Which steps of a pipeline come next: told what has ended, it tells what may begin. It knows no time and does nothing.

use super::graph::{Graph, OnFailure};

/// Where a step stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// It waits for others.
    #[default]
    Waiting,
    /// It may begin.
    Ready,
    /// It was begun.
    Running,
    /// It ended well.
    Done,
    /// It failed for good.
    Failed,
    /// It was not wanted, or nothing more was to begin.
    Skipped,
}

impl State {
    /// Whether nothing more comes of it.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Skipped)
    }
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Well.
    Done,
    /// Badly.
    Failed,
    /// It was not wanted: its condition does not hold.
    Unwanted,
}

/// What an end means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The others go on.
    On,
    /// It is tried again, as this attempt; the first was 1.
    Again(u32),
    /// The others go on, and somebody is told.
    Tell,
    /// Nothing else begins.
    Stop,
}

/// A pipeline under way.
#[derive(Debug, Clone)]
pub struct Run<'g> {
    graph: &'g Graph,
    states: Vec<State>,
    /// How many of those that a step waits for are not over.
    missing: Vec<usize>,
    attempts: Vec<u32>,
    fresh: Vec<usize>,
    left: usize,
    stopped: bool,
}

impl<'g> Run<'g> {
    /// One that has not begun.
    pub fn new(graph: &'g Graph) -> Self {
        Self::resumed(graph, vec![State::Waiting; graph.nodes().len()])
    }

    /// One that stood so when it was left. Whoever resumes it has decided what became of steps that were running: none
    /// is begun a second time by this.
    pub fn resumed(graph: &'g Graph, states: Vec<State>) -> Self {
        let over = |at: &usize| states[*at].is_over();
        let missing: Vec<usize> =
            (0..states.len()).map(|at| graph.needs(at).iter().filter(|need| !over(need)).count()).collect();
        let left = states.iter().filter(|state| !state.is_over()).count();
        let nodes = graph.nodes();
        let stopped =
            (0..states.len()).any(|at| states[at] == State::Failed && nodes[at].on_failure == OnFailure::Stop);
        let attempts = vec![0; states.len()];
        let mut run = Self { graph, states, missing, attempts, fresh: Vec::new(), left, stopped };
        for at in 0..run.states.len() {
            if run.states[at] == State::Ready {
                run.states[at] = State::Waiting;
            }
            run.look(at);
        }
        run.close();
        run
    }

    /// The steps that may begin since this was asked last, in the order they are written in.
    pub fn ready(&mut self) -> Vec<usize> {
        let mut ready = std::mem::take(&mut self.fresh);
        ready.retain(|at| self.states[*at] == State::Ready);
        ready.sort_unstable();
        ready
    }

    /// Notes that a step was begun. Says whether it might be.
    pub fn begin(&mut self, step: usize) -> bool {
        let may = self.states[step] == State::Ready && !self.stopped;
        if may {
            self.states[step] = State::Running;
            self.attempts[step] += 1;
        }
        may
    }

    /// Notes how a step ended, and says what that means.
    pub fn end(&mut self, step: usize, ended: Ended) -> Then {
        if self.states[step].is_over() {
            return Then::On;
        }
        let node = &self.graph.nodes()[step];
        if ended == Ended::Failed && self.attempts[step] <= node.retries && !self.stopped {
            self.states[step] = State::Ready;
            return Then::Again(self.attempts[step] + 1);
        }
        self.settle(
            step,
            match ended {
                Ended::Done => State::Done,
                Ended::Failed => State::Failed,
                Ended::Unwanted => State::Skipped,
            },
        );
        match (ended, node.on_failure) {
            (Ended::Failed, OnFailure::Stop) => {
                self.stopped = true;
                self.close();
                Then::Stop
            }
            (Ended::Failed, OnFailure::Notify) => Then::Tell,
            _ => Then::On,
        }
    }

    /// Lets nothing else begin.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.close();
    }

    /// Whether nothing more comes.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Where each step stands.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// The same pipeline once more, with only what failed or was skipped to be done; and what depends on that.
    #[must_use]
    pub fn again(&self) -> Self {
        let mut states = self.states.clone();
        for state in &mut states {
            if *state != State::Done {
                *state = State::Waiting;
            }
        }
        Self::resumed(self.graph, states)
    }

    fn settle(&mut self, step: usize, state: State) {
        self.states[step] = state;
        self.left -= 1;
        for next in self.graph.feeds(step) {
            self.missing[*next] -= 1;
            self.look(*next);
        }
    }

    fn look(&mut self, step: usize) {
        if self.states[step] == State::Waiting && self.missing[step] == 0 && !self.stopped {
            self.states[step] = State::Ready;
            self.fresh.push(step);
        }
    }

    /// Skips what will not begin any more.
    fn close(&mut self) {
        if !self.stopped {
            return;
        }
        for state in &mut self.states {
            if matches!(state, State::Waiting | State::Ready) {
                *state = State::Skipped;
                self.left -= 1;
            }
        }
        self.fresh.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::Node;
    use super::*;
    use proptest::prelude::*;

    fn graph(steps: &[(&str, &[&str], OnFailure, u32)]) -> Graph {
        let node = |(id, needs, on_failure, retries): &(&str, &[&str], OnFailure, u32)| Node {
            id: (*id).into(),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            on_failure: *on_failure,
            retries: *retries,
        };
        Graph::new(steps.iter().map(node).collect()).unwrap()
    }

    #[test]
    fn a_step_begins_when_its_own_inputs_are_there() {
        // `slow` is one phase earlier than `b`, and `b` does not wait for it.
        let stop = OnFailure::Stop;
        let graph = graph(&[
            ("a", &[], stop, 0),
            ("slow", &[], stop, 0),
            ("b", &["a"], stop, 0),
            ("c", &["b", "slow"], stop, 0),
        ]);
        let mut run = Run::new(&graph);
        assert_eq!(run.ready(), [0, 1]);
        assert!(run.begin(0) && run.begin(1) && !run.begin(2) && !run.begin(0));
        assert_eq!(run.end(0, Ended::Done), Then::On);
        assert_eq!(run.ready(), [2]);
        run.begin(2);
        run.end(2, Ended::Done);
        assert_eq!(run.ready(), Vec::<usize>::new());
        run.end(1, Ended::Done);
        assert_eq!(run.ready(), [3]);
        run.begin(3);
        run.end(3, Ended::Done);
        assert!(run.is_over());
    }

    #[test]
    fn a_failure_stops_goes_on_or_is_told() {
        for (rule, then, after) in [
            (OnFailure::Stop, Then::Stop, State::Skipped),
            (OnFailure::Continue, Then::On, State::Ready),
            (OnFailure::Notify, Then::Tell, State::Ready),
        ] {
            let graph = graph(&[("a", &[], rule, 1), ("b", &["a"], OnFailure::Stop, 0)]);
            let mut run = Run::new(&graph);
            run.begin(0);
            assert_eq!(run.end(0, Ended::Failed), Then::Again(2));
            assert!(run.begin(0));
            assert_eq!(run.end(0, Ended::Failed), then);
            assert_eq!(run.states()[1], after);
            assert_eq!(run.is_over(), rule == OnFailure::Stop);
            assert_eq!(run.end(0, Ended::Done), Then::On, "what is over stays as it is");
            assert_eq!(run.states()[0], State::Failed);
        }
    }

    #[test]
    fn again_is_only_what_failed_or_was_skipped() {
        let stop = OnFailure::Stop;
        let graph = graph(&[("a", &[], stop, 0), ("b", &["a"], stop, 0), ("c", &["b"], stop, 0), ("d", &[], stop, 0)]);
        let mut run = Run::new(&graph);
        for step in [0, 1] {
            run.ready();
            run.begin(step);
            run.end(step, if step == 1 { Ended::Failed } else { Ended::Done });
        }
        assert_eq!(run.states(), [State::Done, State::Failed, State::Skipped, State::Skipped]);
        let mut again = run.again();
        assert_eq!(again.ready(), [1, 3]);
    }

    /// What a step needs, its rule, and its retries.
    type Drawn = (Vec<usize>, u8, u32);

    /// Graphs of steps that need only earlier ones, an order of ends, and how each ends.
    fn stories() -> impl Strategy<Value = (Vec<Drawn>, Vec<(u16, u8)>)> {
        let steps = prop::collection::vec((prop::collection::vec(0_usize..40, 0..4), 0_u8..3, 0_u32..3), 1..40);
        (steps, prop::collection::vec((any::<u16>(), 0_u8..4), 400))
    }

    proptest! {
        #[test]
        fn every_step_ends_and_none_begins_too_early((steps, ends) in stories()) {
            let nodes = steps.iter().enumerate().map(|(at, (needs, rule, retries))| Node {
                id: format!("s{at}"),
                needs: needs.iter().filter(|_| at > 0).map(|need| format!("s{}", need % at.max(1))).collect(),
                on_failure: [OnFailure::Stop, OnFailure::Continue, OnFailure::Notify][usize::from(*rule)],
                retries: *retries,
            });
            let graph = Graph::new(nodes.collect()).unwrap();
            let mut run = Run::new(&graph);
            let (mut running, mut begun): (Vec<usize>, Vec<u32>) = (Vec::new(), vec![0; steps.len()]);
            let mut stopped = false;
            for (pick, how) in ends {
                for at in run.ready() {
                    prop_assert!(graph.needs(at).iter().all(|need| run.states()[*need].is_over()));
                    prop_assert!(!stopped);
                    prop_assert!(run.begin(at));
                    begun[at] += 1;
                    running.push(at);
                }
                if running.is_empty() {
                    break;
                }
                let at = running.swap_remove(usize::from(pick) % running.len());
                match run.end(at, [Ended::Done, Ended::Failed, Ended::Unwanted, Ended::Done][usize::from(how)]) {
                    Then::Again(attempt) => {
                        prop_assert_eq!(attempt, begun[at] + 1);
                        prop_assert!(run.begin(at));
                        begun[at] += 1;
                        running.push(at);
                    }
                    Then::Stop => stopped = true,
                    Then::On | Then::Tell => {}
                }
                let before: Vec<State> = run.states().to_vec();
                // Whoever comes back to it finds the same.
                let mut other = Run::resumed(&graph, before);
                prop_assert_eq!(other.is_over(), run.is_over());
                other.ready();
            }
            if running.is_empty() {
                prop_assert!(run.is_over());
                prop_assert!(run.states().iter().all(|state| state.is_over()));
            }
            prop_assert!((0..steps.len()).all(|at| begun[at] <= graph.nodes()[at].retries + 1));
        }
    }
}
