//! The changes of a call as they stand now: what an undo has taken back does not, and what an undo of that undo has redone does
//! again, step by step. A partial undo takes back only some steps, so that the steps of one call may stand in several.

use super::Vault;
use super::extent::cannot_be_undone;
use super::invert::{self, CHANGED, StepInverse, StuckStep, alike};
use haft_core::change::Change;
use haft_core::{CallError, CallId};
use haft_store::{UndoCall, UndoStep};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A call that changed files, and its steps.
#[derive(Debug, Clone)]
pub(crate) struct ChangedFiles {
    pub(crate) call: UndoCall,
    pub(crate) steps: Vec<UndoStep>,
}

/// A call that is named, and the calls in which its changes stand: itself, and those that redid them.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) named: ChangedFiles,
    /// Those that were not taken back as a whole, the latest first.
    pub(crate) calls: Vec<ChangedFiles>,
}

impl Standing {
    /// A call whose changes nobody has redone.
    #[cfg(test)]
    pub(crate) fn of_one((call, steps): (UndoCall, Vec<UndoStep>)) -> Self {
        let named = ChangedFiles { call, steps };
        Self { calls: vec![named.clone()], named }
    }
}

/// What takes a call back.
#[derive(Debug, Default)]
pub(crate) struct Inverse {
    /// The changes, for the steps that can be taken back.
    pub(crate) changes: Vec<Change>,
    /// The steps that cannot.
    pub(crate) stuck: Vec<StuckStep>,
    /// What happens to each call in which the changes stand.
    pub(crate) parts: Vec<InversePart>,
}

/// What happens to a call when changes are taken back that stand in it.
#[derive(Debug)]
pub(crate) struct InversePart {
    pub(crate) call: CallId,
    /// Its steps that are taken back, and those that were never made or are taken back already.
    pub(crate) steps: Vec<UndoStep>,
    /// Whether a change takes something of it back.
    pub(crate) has_changes: bool,
    /// Whether nothing of it stands any more then.
    pub(crate) is_whole: bool,
    /// The directories that it made.
    pub(crate) dirs: Vec<PathBuf>,
}

impl Vault {
    /// What takes a call back: the changes, for what still stands as it was left, and what of it cannot be taken back.
    pub(crate) fn inverse(&self, standing: &Standing) -> Inverse {
        let candidates = standing.calls.iter().map(|files| Candidate::new(files, &self.of(&files.call.call_id)));
        let mut candidates: Vec<Candidate<'_>> = candidates.collect();
        let mut inverse = Inverse::default();
        for step in standing.named.steps.iter().rev() {
            inverse.take_back(step, &mut candidates);
        }
        inverse.parts = candidates.into_iter().map(Candidate::part).collect();
        inverse
    }
}

impl Inverse {
    /// Takes one step back, in the latest call in which it stands.
    fn take_back<'s>(&mut self, step: &'s UndoStep, candidates: &mut [Candidate<'s>]) {
        let mut found: Vec<(&mut Candidate<'s>, usize, StepInverse)> = Vec::new();
        for candidate in candidates {
            if let Some((number, inverse)) = candidate.take(step) {
                found.push((candidate, number, inverse));
            }
        }
        let standing = found.iter().position(|(.., inverse)| matches!(inverse, StepInverse::Change(_)));
        let is_back = standing.is_some() || found.iter().any(|(.., inverse)| matches!(inverse, StepInverse::Nothing));
        for (at, (candidate, number, inverse)) in found.into_iter().enumerate() {
            candidate.left -= usize::from(is_back);
            match inverse {
                StepInverse::Change(change) if standing == Some(at) => {
                    self.changes.push(change);
                    candidate.done.push(number);
                    candidate.has_changes = true;
                }
                StepInverse::Nothing => candidate.done.push(number),
                // Where it stands in another call, its image is there.
                StepInverse::Stuck(stuck) if !is_back && at == 0 => self.stuck.push(stuck),
                StepInverse::Change(_) | StepInverse::Stuck(_) => {}
            }
        }
    }

    /// The changes, if they take back all of the call; else why not.
    pub(crate) fn whole(self, call: &UndoCall, shown: &dyn Fn(&Path) -> String) -> Result<Vec<Change>, CallError> {
        let Some(why) = self.why_not(shown) else { return Ok(self.changes) };
        let id = &call.call_id;
        let hint = match self.changes.len() {
            0 => format!("`haft changes {id}` shows what the call did"),
            1 => format!(
                "`haft undo {id} --partial` restores the other file; `haft changes {id}` shows what the call did"
            ),
            more => format!(
                "`haft undo {id} --partial` restores the other {more} files; `haft changes {id}` shows what the call did"
            ),
        };
        let gap = call.gap.as_ref().map(|gap| format!(" ({gap})")).unwrap_or_default();
        Err(CallError::conflict(format!("{}{why}{gap}", cannot_be_undone(id))).hint(hint))
    }

    /// Why the call cannot be taken back as a whole.
    fn why_not(&self, shown: &dyn Fn(&Path) -> String) -> Option<String> {
        let changed: Vec<String> =
            self.stuck.iter().filter(|stuck| stuck.why == CHANGED).map(|stuck| shown(&stuck.path)).collect();
        let mut reasons = Vec::new();
        if !changed.is_empty() {
            reasons.push(format!("{CHANGED}: {}", changed.join(", ")));
        }
        let lost = self.stuck.iter().filter(|stuck| stuck.why != CHANGED);
        reasons.extend(lost.map(|stuck| format!("{}: {}", shown(&stuck.path), stuck.why)));
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// A call in which changes may stand, while the inverse is put together.
struct Candidate<'s> {
    files: &'s ChangedFiles,
    /// What takes its steps back, as far as that is not used yet.
    inverses: Vec<Option<StepInverse>>,
    /// Its steps by path and target.
    numbers: BTreeMap<(&'s Path, Option<&'s Path>), Vec<usize>>,
    /// The steps that are taken back.
    done: Vec<usize>,
    has_changes: bool,
    /// How many of its steps still stand then.
    left: usize,
}

impl<'s> Candidate<'s> {
    fn new(files: &'s ChangedFiles, images: &Path) -> Self {
        let steps = &files.steps;
        let mut numbers: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (number, step) in steps.iter().enumerate() {
            numbers.entry((step.path.as_path(), step.target.as_deref())).or_default().push(number);
        }
        let inverses = invert::all(steps, images).into_iter().map(Some).collect();
        Self { files, inverses, numbers, done: Vec::new(), has_changes: false, left: steps.len() }
    }

    /// Its last step that is this one and was not used yet.
    fn take(&mut self, step: &'s UndoStep) -> Option<(usize, StepInverse)> {
        let numbers = self.numbers.get_mut(&(step.path.as_path(), step.target.as_deref()))?;
        let number = numbers.pop_if(|number| alike(&self.files.steps[*number].before, &step.before))?;
        Some((number, self.inverses[number].take()?))
    }

    fn part(self) -> InversePart {
        let ChangedFiles { call, steps } = self.files;
        InversePart {
            call: call.call_id.clone(),
            steps: self.done.iter().map(|number| steps[*number].clone()).collect(),
            has_changes: self.has_changes,
            is_whole: self.left == 0,
            dirs: call.dirs.clone(),
        }
    }
}
