//! Pictures and sounds: how they are checked, delivered, looked at and listened to.

/// What media tools go by.
#[derive(Debug, Clone, Default)]
pub struct MediaSettings {}
