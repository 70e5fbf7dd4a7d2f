//! When a failed request is worth another attempt, and how long to wait before it.

use std::fmt;
use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// How often and how patiently a request is repeated when it failed for a passing reason.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Attempts after the first one.
    pub retries: usize,
    /// The wait before the first repetition; it doubles with each.
    pub first_wait: Duration,
    /// No wait of our own is longer.
    pub longest_wait: Duration,
    /// A server that asks for more patience than this is given up.
    pub longest_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 5,
            first_wait: Duration::from_millis(200),
            longest_wait: Duration::from_secs(20),
            longest_retry_after: Duration::from_mins(5),
        }
    }
}

impl RetryPolicy {
    pub(super) fn waits(&self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_min_delay(self.first_wait)
            .with_max_delay(self.longest_wait)
            .with_max_times(self.retries)
            .with_jitter()
            .build()
    }

    /// The wait before the next attempt: ours or, if it asks for a longer one, the server's.
    pub(super) fn wait(&self, own: Option<Duration>, asked: Option<Duration>) -> Option<Duration> {
        let own = own?;
        match asked {
            Some(asked) if asked > self.longest_retry_after => None,
            Some(asked) => Some(asked.max(own)),
            None => Some(own),
        }
    }

    /// Repeats an operation while its errors are passing ones.
    pub(super) async fn run<T, E: fmt::Display>(
        &self,
        mut operation: impl AsyncFnMut() -> Result<T, E>,
        is_transient: impl Fn(&E) -> bool,
        retry_after: impl Fn(&E) -> Option<Duration>,
    ) -> Result<T, E> {
        let mut waits = self.waits();
        loop {
            let error = match operation().await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let wait = is_transient(&error)
                .then(|| self.wait(waits.next(), retry_after(&error)))
                .flatten();
            let Some(wait) = wait else {
                return Err(error);
            };
            tracing::debug!(%error, ?wait, "trying again");
            tokio::time::sleep(wait).await;
        }
    }
}

/// `Retry-After` in either of its spellings: seconds, or the date after which to come back.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()?;
    let left = SystemTime::from(date).duration_since(now);
    Some(left.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use std::time::UNIX_EPOCH;

    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        retries: 2,
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_millis(2),
        longest_retry_after: Duration::from_secs(5),
    };

    async fn run(errors: &[bool]) -> (usize, Result<(), String>) {
        let mut attempts = 0;
        let result = POLICY
            .run(
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

    #[test]
    fn the_servers_wish_is_obeyed_up_to_a_limit() {
        let own = Some(Duration::from_secs(1));
        let wait = |asked| POLICY.wait(own, Some(Duration::from_secs(asked)));
        assert_eq!(wait(0), own);
        assert_eq!(wait(4), Some(Duration::from_secs(4)));
        assert_eq!(wait(6), None);
        assert_eq!(POLICY.wait(None, Some(Duration::ZERO)), None);
    }

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let read = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            retry_after(&headers, now)
        };
        assert_eq!(read("120"), Some(Duration::from_mins(2)));
        assert_eq!(
            read("Sun, 06 Nov 1994 08:50:07 GMT"),
            Some(Duration::from_secs(30))
        );
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
    }
}
