//! Retries of failed requests, and the waits between them.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use tokio::time::Instant;
use wincimg_common::progress::Progress;

use super::exchange::header_text;

/// Retry policy for transient failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Retries after the first attempt; progress in between resets the count.
    pub retries: usize,
    /// Wait before the first retry; doubles with each, plus random jitter of up to as much.
    pub first_wait: Duration,
    /// Maximum wait, unless the server asks for a longer one.
    pub longest_wait: Duration,
    /// Maximum `Retry-After`; a server that asks for more is given up.
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
    /// The waits between attempts, each longer than the last.
    fn waits(&self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_min_delay(self.first_wait)
            .with_max_delay(self.longest_wait)
            .with_max_times(self.retries)
            .with_jitter()
            .build()
    }
}

/// An error that may be transient.
pub trait Transient: Error + Sized {
    /// Returns true if the same request may succeed soon.
    fn is_transient(&self) -> bool;

    /// Returns true if one retry is enough, for example because the port is closed.
    fn is_settled(&self) -> bool {
        false
    }

    /// The wait that the server asked for.
    fn retry_after(&self) -> Option<Duration>;

    /// Wraps the error as the last one of several attempts.
    #[must_use]
    fn after(self, attempts: usize) -> Self {
        let _ = attempts;
        self
    }
}

/// Progress in bytes that resets the count of attempts; with less, a connection that breaks at
/// every byte would be retried for ever.
const MIN_PROGRESS: u64 = 64 * 1024;
/// Waits from this length on are reported.
const MIN_REPORTED_WAIT: Duration = Duration::from_secs(2);
/// Waits in seconds above this length are not named: the server hardly means them.
const ONE_DAY: u64 = 24 * 60 * 60;

/// The remaining attempts of an operation, over all its requests.
pub struct RetryBudget {
    policy: RetryPolicy,
    waits: ExponentialBackoff,
    made: usize,
    moved: u64,
    deadline: Option<Instant>,
    progress: Arc<dyn Progress>,
}

impl RetryBudget {
    pub(super) fn new(
        policy: RetryPolicy,
        deadline: Option<Instant>,
        progress: Arc<dyn Progress>,
    ) -> Self {
        Self {
            policy,
            waits: policy.waits(),
            made: 1,
            moved: 0,
            deadline,
            progress,
        }
    }

    /// Records progress in bytes.
    pub fn advance(&mut self, bytes: u64) {
        self.moved = self.moved.saturating_add(bytes);
    }

    /// Waits for the next attempt, or returns the error if none is left.
    pub async fn backoff<E: Transient>(&mut self, error: E) -> Result<(), E> {
        let reason = with_its_cause(&error);
        let first = self.made == 1;
        let wait = self.wait(error)?;
        tracing::debug!(reason, attempt = self.made, ?wait, "trying again");
        if first || wait >= MIN_REPORTED_WAIT {
            self.progress.note(&word_about(&reason, wait));
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }

    fn wait<E: Transient>(&mut self, error: E) -> Result<Duration, E> {
        if !error.is_transient() {
            return Err(error);
        }
        if error.is_settled() && self.made > 1 {
            return Err(error.after(self.made));
        }
        if self.moved >= MIN_PROGRESS {
            self.moved = 0;
            self.waits = self.policy.waits();
        }
        match self.next_wait(error.retry_after()) {
            Some(wait) => {
                self.made += 1;
                Ok(wait)
            }
            None if self.made == 1 => Err(error),
            None => Err(error.after(self.made)),
        }
    }

    /// Returns the next wait: our own or the server's if longer; `None` if no attempt is left, the
    /// server asks for too long a wait, or the time limit comes first.
    fn next_wait(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let own = self.waits.next()?;
        let asked = asked.unwrap_or_default();
        if asked > self.policy.longest_retry_after {
            return None;
        }
        let wait = asked.max(own);
        let in_time = self.deadline.is_none_or(|deadline| {
            let next = Instant::now().checked_add(wait);
            next.is_some_and(|next| next < deadline)
        });
        in_time.then_some(wait)
    }
}

fn word_about(reason: &str, wait: Duration) -> String {
    match wait.as_secs() {
        0 => format!("{reason}; trying again"),
        seconds => format!("{reason}; trying again in {seconds} s"),
    }
}

/// Formats an error with its root cause only.
fn with_its_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.to_string() {
        same if same == error.to_string() => same,
        cause => format!("{error}: {cause}"),
    }
}

/// Says when to try again, as the server asks.
pub fn wait_hint(wait: Option<Duration>) -> String {
    match wait.map(|wait| wait.as_secs()) {
        Some(seconds @ 0..=120) => format!("try again in {seconds} s"),
        Some(seconds) if seconds <= ONE_DAY => {
            format!("try again in {} minutes", seconds.div_ceil(60))
        }
        _ => "try again later".to_owned(),
    }
}

/// Parses `Retry-After`, in seconds or as a date.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = header_text(headers, RETRY_AFTER)?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()?;
    Some(
        SystemTime::from(date)
            .duration_since(now)
            .unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use std::fmt::Display;
    use std::sync::Mutex;
    use std::time::UNIX_EPOCH;

    use wincimg_common::progress::Silent;

    use super::*;

    /// A transient error, with the server's wait in seconds and the number of attempts.
    #[derive(Debug, PartialEq, thiserror::Error)]
    #[error("failed")]
    struct Failure {
        passing: bool,
        settled: bool,
        asked: Option<u64>,
        attempts: usize,
    }

    impl Transient for Failure {
        fn is_transient(&self) -> bool {
            self.passing
        }

        fn is_settled(&self) -> bool {
            self.settled
        }

        fn retry_after(&self) -> Option<Duration> {
            self.asked.map(Duration::from_secs)
        }

        fn after(self, attempts: usize) -> Self {
            Self { attempts, ..self }
        }
    }

    fn failure(asked: Option<u64>) -> Failure {
        Failure {
            passing: true,
            settled: false,
            asked,
            attempts: 1,
        }
    }

    fn retries(retries: usize) -> RetryBudget {
        let policy = RetryPolicy {
            retries,
            ..RetryPolicy::default()
        };
        RetryBudget::new(policy, None, Arc::new(Silent))
    }

    /// Attempts with a default policy and a time limit.
    fn within(seconds: u64, first_wait: Duration) -> RetryBudget {
        let policy = RetryPolicy {
            first_wait,
            ..RetryPolicy::default()
        };
        let deadline = Instant::now() + Duration::from_secs(seconds);
        RetryBudget::new(policy, Some(deadline), Arc::new(Silent))
    }

    #[test]
    fn waits_grow_and_end() {
        let mut attempts = retries(3);
        let mut waits = Vec::new();
        let error = loop {
            match attempts.wait(failure(None)) {
                Ok(wait) => waits.push(wait),
                Err(error) => break error,
            }
        };
        assert_eq!(waits.len(), 3);
        assert!(waits[0] >= Duration::from_millis(200) && waits[0] <= Duration::from_millis(400));
        assert!(waits[2] >= Duration::from_millis(800));
        assert_eq!(error.attempts, 4);
    }

    #[test]
    fn what_does_not_pass_is_not_repeated() {
        let lasting = Failure {
            passing: false,
            ..failure(None)
        };
        assert_eq!(retries(3).wait(lasting).unwrap_err().attempts, 1);
    }

    #[test]
    fn the_servers_wish_is_obeyed_up_to_a_limit() {
        let wait = |asked| retries(3).wait(failure(Some(asked)));
        assert!(wait(0).unwrap() >= Duration::from_millis(200));
        assert_eq!(wait(42), Ok(Duration::from_secs(42)));
        assert_eq!(wait(300), Ok(Duration::from_mins(5)));
        assert!(wait(301).is_err());
        assert!(retries(0).wait(failure(Some(0))).is_err());
    }

    #[test]
    fn bytes_that_moved_start_the_count_again() {
        let mut attempts = retries(1);
        for _ in 0..10 {
            attempts.advance(MIN_PROGRESS);
            attempts.wait(failure(None)).unwrap();
        }
        assert!(attempts.wait(failure(None)).is_err());
    }

    #[tokio::test]
    async fn no_wait_goes_past_the_time_limit() {
        let mut attempts = within(1, Duration::from_secs(5));
        assert!(attempts.wait(failure(None)).is_err());
        for endless in [i64::MAX.unsigned_abs(), u64::MAX] {
            let mut attempts = within(10, RetryPolicy::default().first_wait);
            assert!(attempts.wait(failure(Some(endless))).is_err());
        }
    }

    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Progress for Notes {
        fn note(&self, message: &dyn Display) {
            self.0.lock().unwrap().push(message.to_string());
        }

        fn warn(&self, _message: &dyn Display) {}
    }

    #[tokio::test]
    async fn the_first_wait_is_reported() {
        let notes = Arc::new(Notes::default());
        let policy = RetryPolicy {
            first_wait: Duration::from_millis(1),
            ..RetryPolicy::default()
        };
        let mut attempts = RetryBudget::new(policy, None, notes.clone());
        for _ in 0..3 {
            attempts.backoff(failure(None)).await.unwrap();
        }
        assert_eq!(*notes.0.lock().unwrap(), ["failed; trying again"]);
        let long = word_about("failed", Duration::from_millis(2_100));
        assert_eq!(long, "failed; trying again in 2 s");
    }

    #[test]
    fn what_a_second_attempt_settles_has_no_third() {
        let mut attempts = retries(5);
        let settled = || Failure {
            settled: true,
            ..failure(None)
        };
        assert!(attempts.wait(settled()).unwrap() < Duration::from_millis(500));
        assert_eq!(attempts.wait(settled()).unwrap_err().attempts, 2);
    }

    #[test]
    fn a_wait_is_named_up_to_a_day() {
        let hint = |seconds| wait_hint(Some(Duration::from_secs(seconds)));
        assert_eq!(hint(30), "try again in 30 s");
        assert_eq!(hint(121), "try again in 3 minutes");
        assert_eq!(hint(24 * 60 * 60), "try again in 1440 minutes");
        assert_eq!(hint(u64::MAX), "try again later");
    }

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(read("120"), Some(Duration::from_mins(2)));
        let half_a_minute = read("Sun, 06 Nov 1994 08:50:07 GMT");
        assert_eq!(half_a_minute, Some(Duration::from_secs(30)));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
    }
}
