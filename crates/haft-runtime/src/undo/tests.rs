//! Keeping, applying and taking back, at the level of files.
