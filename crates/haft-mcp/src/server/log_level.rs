//! The levels of the log, as the protocol and as haft name them.

#![expect(deprecated, reason = "logging goes, but clients of all but the newest version have it")]

use haft_runtime::events::LogLevel;
use rmcp::model::LoggingLevel;

/// The levels of the log by their rank.
const LEVELS: [LogLevel; 8] = [
    LogLevel::Debug,
    LogLevel::Info,
    LogLevel::Notice,
    LogLevel::Warning,
    LogLevel::Error,
    LogLevel::Critical,
    LogLevel::Alert,
    LogLevel::Emergency,
];

/// The order of log levels.
pub(super) fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

/// The level of a rank; none for the rank of silence.
pub(super) fn level_of_rank(rank: u8) -> Option<LogLevel> {
    LEVELS.get(usize::from(rank)).copied()
}
