//! How long a stop may take.
//!
//! Windows kills a container's processes when the time in its registry is up. The shim has to be
//! done a little earlier, or nobody would ever read why a program was ended.

use core::fmt;
use core::time::Duration;

/// What Windows allows where its registry says nothing.
pub const WINDOWS_DEFAULT: Duration = Duration::from_secs(5);

/// The variable by which a pod or an image says how many seconds a stop may take.
pub const VARIABLE: &str = "WINCIMG_STOP_TIMEOUT";

/// The longest time an option takes: the waits of Windows count milliseconds in 32 bits.
pub const LONGEST: Duration = Duration::from_secs(2_000_000);

/// How long the shim takes for a stop, of the time that Windows allows: all but a tenth, which is
/// one second at least and five at most.
pub fn stop_time(allowed: Duration) -> Duration {
    let margin = (allowed / 10).clamp(Duration::from_secs(1), Duration::from_secs(5));
    allowed.saturating_sub(margin)
}

/// The time that Windows allows, from the two values that Windows reads: seconds of
/// `ProcessShutdownTimeoutSeconds` and the text, in milliseconds, of `WaitToKillServiceTimeout`.
///
/// Both clocks run, so the shorter one decides, and one that is absent runs for five seconds.
pub fn allowed(shutdown_seconds: Option<u32>, wait_to_kill: Option<&[u16]>) -> Duration {
    let shutdown = shutdown_seconds.map_or(WINDOWS_DEFAULT, |seconds| {
        Duration::from_secs(seconds.into())
    });
    let service = wait_to_kill
        .and_then(whole_number)
        .map_or(WINDOWS_DEFAULT, Duration::from_millis);
    shutdown.min(service).min(LONGEST)
}

/// Seconds as an option takes them: `30` or `2.5`, to the millisecond.
pub fn seconds(text: &[u16]) -> Option<Duration> {
    let mut halves = text.splitn(2, |&unit| unit == u16::from(b'.'));
    let whole = Duration::from_secs(whole_number(halves.next()?)?);
    let total = match halves.next() {
        None => whole,
        Some(decimals) if decimals.len() <= 3 => {
            let scale = [0, 100, 10, 1][decimals.len()];
            whole.checked_add(Duration::from_millis(whole_number(decimals)? * scale))?
        }
        Some(_) => return None,
    };
    (total <= LONGEST).then_some(total)
}

/// A time as messages say it: `30` or `2.5`, which `seconds` reads back.
#[derive(Debug, Clone, Copy)]
pub struct Seconds(pub Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.as_secs())?;
        match u64::from(self.0.subsec_millis()) {
            0 => Ok(()),
            millis if millis % 100 == 0 => write!(f, ".{}", millis / 100),
            millis if millis % 10 == 0 => write!(f, ".{:02}", millis / 10),
            millis => write!(f, ".{millis:03}"),
        }
    }
}

fn whole_number(digits: &[u16]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &unit| {
        let digit = char::from_u32(unit.into())?.to_digit(10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    fn wide(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    fn default(shutdown_seconds: Option<u32>, wait_to_kill: Option<&str>) -> u128 {
        let wait_to_kill = wait_to_kill.map(wide);
        let allowed = allowed(shutdown_seconds, wait_to_kill.as_deref());
        stop_time(allowed).as_millis()
    }

    #[test]
    fn the_shorter_of_the_two_times_counts_less_a_margin() {
        assert_eq!(default(Some(30), Some("30000")), 27_000);
        assert_eq!(default(Some(30), Some("20000")), 18_000);
        assert_eq!(default(Some(8), Some("20000")), 7_000);
        assert_eq!(default(Some(600), Some("600000")), 595_000);
    }

    #[test]
    fn a_missing_or_broken_time_is_five_seconds_as_in_windows() {
        assert_eq!(default(None, None), 4_000);
        assert_eq!(default(Some(30), None), 4_000);
        assert_eq!(default(None, Some("30000")), 4_000);
        assert_eq!(default(Some(30), Some("half a minute")), 4_000);
        assert_eq!(default(Some(30), Some("")), 4_000);
    }

    #[test]
    fn extreme_times_neither_overflow_nor_go_below_nothing() {
        assert_eq!(default(Some(0), Some("0")), 0);
        assert_eq!(default(Some(1), Some("900")), 0);
        assert_eq!(
            default(Some(u32::MAX), Some("99999999999999")),
            1_999_995_000
        );
        assert_eq!(default(Some(30), Some("99999999999999999999999")), 4_000);
    }

    #[test]
    fn seconds_may_have_decimals() {
        let millis = |text| seconds(&wide(text)).map(|time| time.as_millis());
        assert_eq!(millis("0"), Some(0));
        assert_eq!(millis("30"), Some(30_000));
        assert_eq!(millis("2.5"), Some(2_500));
        assert_eq!(millis("0.05"), Some(50));
        assert_eq!(millis("1.234"), Some(1_234));
    }

    #[test]
    fn a_time_is_said_as_it_is_read() {
        for text in ["0", "30", "2.5", "0.05", "1.234", "7.009"] {
            let time = seconds(&wide(text)).map(|time| Seconds(time).to_string());
            assert_eq!(time.as_deref(), Some(text));
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "", ".", "1.", ".5", "-1", "+1", "1,5", "30s", "1.2345", "1.2.3", "2000001",
        ] {
            assert_eq!(seconds(&wide(text)), None, "{text}");
        }
        assert_eq!(seconds(&wide("99999999999999999999")), None);
    }
}
