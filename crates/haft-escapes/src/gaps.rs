//! What is known to get out, and why that is borne for now. A gap that has closed is reported too, so
//! that this list cannot outlive its reasons.

/// Each act that may get out, and the reason.
pub(crate) const KNOWN: &[(&str, &str)] = &[(
    "limits.cpu_unreaped",
    "without a CPU cgroup, the time of children whose parent ignores SIGCHLD is credited to nobody; wall time bounds it",
)];

pub(crate) fn reason(name: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(known, _)| *known == name).map(|(_, reason)| *reason)
}
