//! When a failed request is worth another attempt, and how long to wait before it.

use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::progress::Progress;

/// How often and how patiently a request is repeated when it failed for a passing reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts after the first one; bytes that moved in between start the count again.
    pub retries: usize,
    /// The wait before the first repetition; it doubles with each, and jitter adds up to as much.
    pub first_wait: Duration,
    /// No wait of our own is longer than this.
    pub longest_wait: Duration,
    /// A server that asks for more patience than this (`Retry-After`) is given up.
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

/// A wait that a person who watches would wonder about.
const WORTH_A_WORD: Duration = Duration::from_secs(2);

/// Waits for the next attempt, and says why where that takes long.
pub async fn pause(reason: &str, wait: Duration, progress: &dyn Progress) {
    tracing::debug!(reason, ?wait, "trying again");
    if let Some(word) = word_about(reason, wait) {
        progress.note(&word);
    }
    tokio::time::sleep(wait).await;
}

fn word_about(reason: &str, wait: Duration) -> Option<String> {
    let seconds = wait.as_secs();
    (wait >= WORTH_A_WORD).then(|| format!("{reason}; trying again in {seconds} s"))
}

impl RetryPolicy {
    /// The waits between attempts, each longer than the one before.
    pub fn waits(&self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_min_delay(self.first_wait)
            .with_max_delay(self.longest_wait)
            .with_max_times(self.retries)
            .with_jitter()
            .build()
    }

    /// The wait before the next attempt: ours or, if it asks for a longer one, the server's; none
    /// where there is no attempt left or the server asks for too much patience.
    pub fn wait(&self, own: Option<Duration>, asked: Option<Duration>) -> Option<Duration> {
        let own = own?;
        match asked {
            Some(asked) if asked > self.longest_retry_after => None,
            Some(asked) => Some(asked.max(own)),
            None => Some(own),
        }
    }
}

/// `Retry-After` in either of its spellings: seconds, or the date after which to come back.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
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
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn only_a_long_wait_is_worth_a_word() {
        let word = |milliseconds| word_about("no answer", Duration::from_millis(milliseconds));
        assert_eq!(word(1_999), None);
        assert_eq!(word(2_100).unwrap(), "no answer; trying again in 2 s");
    }

    #[test]
    fn the_servers_wish_is_obeyed_up_to_a_limit() {
        let policy = RetryPolicy {
            longest_retry_after: Duration::from_secs(5),
            ..RetryPolicy::default()
        };
        let own = Some(Duration::from_secs(1));
        let wait = |asked| policy.wait(own, Some(Duration::from_secs(asked)));
        assert_eq!(wait(0), own);
        assert_eq!(wait(4), Some(Duration::from_secs(4)));
        assert_eq!(wait(6), None);
        assert_eq!(policy.wait(None, Some(Duration::ZERO)), None);
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
        assert_eq!(
            read("Sun, 06 Nov 1994 08:50:07 GMT"),
            Some(Duration::from_secs(30))
        );
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
    }
}
