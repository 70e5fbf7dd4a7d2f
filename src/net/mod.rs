//! What every HTTP client of the project shares: whom to trust, when to try again, and what of a URL
//! may be shown.

mod clients;
mod insecure;
mod retry;
mod urls;

pub use clients::{ClientError, Clients, Redirects, Trust};
pub use insecure::{InsecureHosts, NotAHost};
pub use retry::{RetryPolicy, pause, retry_after};
pub use urls::{host_of, shown};
