//! Pipelines under way: what was planned, where each step stands, and who works on it.

use crate::migrate::Step;

pub(crate) const TABLES: Step = Step::alike("");
