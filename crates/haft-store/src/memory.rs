//! What agents know: documents of words, cut into pieces that can be found.

use crate::migrate::Step;

pub(crate) const TABLES: Step = Step::alike("");
