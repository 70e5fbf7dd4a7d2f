//! The foundation of most other crates; independent of containers and Windows.
//!
//! ```
//! use wincimg_common::digest::sha256;
//! use wincimg_common::untrusted::UntrustedText;
//!
//! assert!(sha256(b"").to_string().starts_with("sha256:e3b0c442"));
//! // Untrusted text is printed without control characters.
//! println!("{}", UntrustedText("a label with \u{1b}[31mcolour"));
//! ```

pub mod diagnose;
pub mod digest;
#[cfg(feature = "document")]
pub mod document;
pub mod excerpt;
pub mod files;
pub mod json;
pub mod process_group;
pub mod progress;
pub mod shell;
pub mod sorted;
pub mod untrusted;
pub mod wildcards;
pub mod x509;
#[cfg(feature = "xml")]
pub mod xml;

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Implements `name()` of an enum, from `rename_all` and `rename` in its `#[serde(…)]`, or in
/// `#[named(…)]` if it has none. One without fields also gets `ALL`, `from_name()`, and for errors
/// `NAMES`.
///
/// ```
/// use wincimg_common::Named;
///
/// #[derive(Debug, Clone, Copy, PartialEq, Named)]
/// #[named(rename_all = "kebab-case")]
/// enum Shelf {
///     Left,
///     TopRight,
///     #[named(rename = "floor")]
///     Below,
/// }
///
/// assert_eq!(Shelf::ALL.map(Shelf::name), ["left", "top-right", "floor"]);
/// assert_eq!(Shelf::from_name("top-right"), Some(Shelf::TopRight));
/// assert_eq!(Shelf::NAMES, "left, top-right or floor");
/// ```
pub use wincimg_derive::Named;
/// Implements serde's `Serialize` with the text of `Display`.
pub use wincimg_derive::SerializeDisplay;

/// Locks a mutex, even if a thread panicked while holding it: the shared data are consistent
/// between any two statements.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if a host, an IPv6 address with its brackets or without, is this machine.
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|it: IpAddr| it.is_loopback())
}
