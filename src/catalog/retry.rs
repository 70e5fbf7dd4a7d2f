//! Operations that are repeated while their errors are passing ones.

use std::fmt;
use std::time::Duration;

use crate::net::{RetryPolicy, pause};
use crate::progress::Progress;

/// Repeats an operation while its errors are passing ones.
pub(super) async fn run<T, E: fmt::Display>(
    policy: &RetryPolicy,
    progress: &dyn Progress,
    mut operation: impl AsyncFnMut() -> Result<T, E>,
    is_transient: impl Fn(&E) -> bool,
    retry_after: impl Fn(&E) -> Option<Duration>,
) -> Result<T, E> {
    let mut waits = policy.waits();
    loop {
        let error = match operation().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let wait = is_transient(&error)
            .then(|| policy.wait(waits.next(), retry_after(&error)))
            .flatten();
        let Some(wait) = wait else {
            return Err(error);
        };
        pause(&error.to_string(), wait, progress).await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use std::time::Duration;

    use super::*;
    use crate::progress::Silent;

    const POLICY: RetryPolicy = RetryPolicy {
        retries: 2,
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_millis(2),
        longest_retry_after: Duration::from_secs(5),
    };

    async fn run(errors: &[bool]) -> (usize, Result<(), String>) {
        let mut attempts = 0;
        let result = super::run(
            &POLICY,
            &Silent,
            async || {
                attempts += 1;
                match errors.get(attempts - 1) {
                    Some(passing) => Err(format!("{passing}")),
                    None => Ok(()),
                }
            },
            |error: &String| error == "true",
            |_| None,
        )
        .await;
        (attempts, result)
    }

    #[tokio::test]
    async fn passing_errors_are_tried_again_until_the_attempts_are_used_up() {
        assert_eq!(run(&[true]).await, (2, Ok(())));
        assert_eq!(run(&[true; 9]).await, (3, Err("true".to_owned())));
        assert_eq!(run(&[false]).await, (1, Err("false".to_owned())));
    }
}
