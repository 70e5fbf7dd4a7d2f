//! The attempts that one operation has, over all of its requests.

use std::time::Duration;

use backon::ExponentialBackoff;
use tokio::time::Instant;

use super::{Inner, RegistryError};
use crate::net::{RetryPolicy, pause};

/// Progress worth starting the count of attempts again: less would let a connection that breaks
/// at every byte go on for ever.
const PROGRESS: u64 = 64 * 1024;

/// The attempts that one operation has left.
pub(super) struct Attempts {
    policy: RetryPolicy,
    waits: ExponentialBackoff,
    made: usize,
    moved: u64,
    deadline: Option<Instant>,
}

impl Attempts {
    pub(super) fn new(policy: RetryPolicy, deadline: Option<Instant>) -> Self {
        Self {
            policy,
            waits: policy.waits(),
            made: 1,
            moved: 0,
            deadline,
        }
    }

    /// Notes bytes that are safe on the other side.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.moved = self.moved.saturating_add(bytes);
    }

    /// Waits until the next attempt may be made, or hands the error back where there is none left.
    pub(super) async fn pause(
        &mut self,
        inner: &Inner,
        error: RegistryError,
    ) -> Result<(), RegistryError> {
        let reason = error.to_string();
        let wait = self.wait(error)?;
        pause(&reason, wait, inner.progress.as_ref()).await;
        Ok(())
    }

    fn wait(&mut self, error: RegistryError) -> Result<Duration, RegistryError> {
        if !error.is_transient() {
            return Err(error);
        }
        if self.moved >= PROGRESS {
            self.moved = 0;
            self.waits = self.policy.waits();
        }
        let wait = self.policy.wait(self.waits.next(), error.retry_after());
        let Some(wait) = wait else {
            return Err(self.give_up(error));
        };
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() + wait >= deadline)
        {
            return Err(self.give_up(error));
        }
        tracing::debug!(%error, attempt = self.made, ?wait, "trying again");
        self.made += 1;
        Ok(wait)
    }

    fn give_up(&self, error: RegistryError) -> RegistryError {
        if self.made == 1 {
            return error;
        }
        RegistryError::GaveUp {
            attempts: self.made,
            source: Box::new(error),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use reqwest::StatusCode;

    use super::*;

    fn failure(status: StatusCode, retry_after: Option<u64>) -> RegistryError {
        RegistryError::Status {
            host: "host".into(),
            what: "read".into(),
            status,
            detail: String::new(),
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    fn attempts(retries: usize) -> Attempts {
        let policy = RetryPolicy {
            retries,
            ..RetryPolicy::default()
        };
        Attempts::new(policy, None)
    }

    #[test]
    fn waits_grow_and_end() {
        let mut attempts = attempts(3);
        let mut waits = Vec::new();
        let error = loop {
            match attempts.wait(failure(StatusCode::BAD_GATEWAY, None)) {
                Ok(wait) => waits.push(wait),
                Err(error) => break error,
            }
        };
        assert_eq!(waits.len(), 3);
        assert!(waits[0] >= Duration::from_millis(200) && waits[0] <= Duration::from_millis(400));
        assert!(waits[2] >= Duration::from_millis(800));
        assert_eq!(error.to_string(), "gave up after 4 attempts");
        assert_eq!(error.status(), Some(StatusCode::BAD_GATEWAY));
    }

    #[test]
    fn a_wrong_request_is_not_repeated() {
        for status in [
            StatusCode::BAD_REQUEST,
            StatusCode::NOT_FOUND,
            StatusCode::NOT_IMPLEMENTED,
        ] {
            let error = attempts(3).wait(failure(status, None)).unwrap_err();
            assert!(matches!(error, RegistryError::Status { .. }));
        }
    }

    #[test]
    fn the_registrys_wish_is_obeyed_up_to_a_limit() {
        let too_many = StatusCode::TOO_MANY_REQUESTS;
        let wait = attempts(3).wait(failure(too_many, Some(42))).unwrap();
        assert_eq!(wait, Duration::from_secs(42));
        assert!(attempts(3).wait(failure(too_many, Some(3600))).is_err());
    }

    #[test]
    fn bytes_that_moved_start_the_count_again() {
        let mut attempts = attempts(1);
        for _ in 0..10 {
            attempts.advance(PROGRESS);
            attempts
                .wait(failure(StatusCode::BAD_GATEWAY, None))
                .unwrap();
        }
        assert!(
            attempts
                .wait(failure(StatusCode::BAD_GATEWAY, None))
                .is_err()
        );
    }

    #[tokio::test]
    async fn no_wait_goes_past_the_time_limit() {
        let policy = RetryPolicy {
            first_wait: Duration::from_secs(5),
            ..RetryPolicy::default()
        };
        let mut attempts = Attempts::new(policy, Some(Instant::now() + Duration::from_secs(1)));
        assert!(
            attempts
                .wait(failure(StatusCode::BAD_GATEWAY, None))
                .is_err()
        );
    }
}
