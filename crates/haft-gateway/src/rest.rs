//! The REST twins of what the other doors offer: plain requests, plain answers.

pub(crate) mod approvals;
pub(crate) mod calls;
pub(crate) mod log;
pub(crate) mod status;
pub(crate) mod tools;
pub(crate) mod work;

use crate::problem::Problem;
use haft_core::CallId;

/// The call that an address names.
pub(crate) fn call_id(text: &str) -> Result<CallId, Problem> {
    CallId::parse(text).ok_or_else(|| Problem::not_found("that is not the id of a call"))
}
