//! What every other crate of wincimg rests on, and what knows nothing of containers or Windows.
//!
//! ```
//! use wincimg_common::digest::sha256;
//! use wincimg_common::untrusted::Untrusted;
//!
//! assert!(sha256(b"").to_string().starts_with("sha256:e3b0c442"));
//! // What a stranger wrote reaches a terminal without its control characters.
//! println!("{}", Untrusted("a label with \u{1b}[31mcolour"));
//! ```

pub mod diagnose;
pub mod digest;
pub mod excerpt;
pub mod files;
pub mod progress;
pub mod untrusted;
pub mod x509;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, whatever became of a thread that held it: what is shared here is sound between any
/// two statements.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
