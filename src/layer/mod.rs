//! The writer of Windows layers.
