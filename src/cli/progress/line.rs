//! Progress of one task as text: its name, and sentences for a log.

use std::time::Duration;

use indicatif::{BinaryBytes, HumanDuration};

use crate::report::shorten;

/// Minimum length of a name's beginning that is kept before its last part.
const SHORTEST_START: usize = 4;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProgressFigures {
    pub(super) at: u64,
    pub(super) of: Option<u64>,
    /// Bytes per second.
    pub(super) rate: u64,
    pub(super) spent: Duration,
}

impl ProgressFigures {
    /// Remaining time at this rate.
    fn left(&self) -> Option<Duration> {
        let rest = self.of?.saturating_sub(self.at);
        Some(Duration::from_secs(rest.checked_div(self.rate)?))
    }
}

/// The sentence about a running task, for a log; `quiet_for` is the time without progress.
pub(super) fn progress_text(label: &str, figures: &ProgressFigures, quiet_for: Duration) -> String {
    let at = BinaryBytes(figures.at);
    let place = match figures.of {
        None if figures.at == 0 => return format!("{label}: {} so far", short(figures.spent)),
        None => at.to_string(),
        Some(of) => format!("{at} of {}", BinaryBytes(of)),
    };
    if figures.rate == 0 {
        return format!("{label}: {place}, no progress for {}", short(quiet_for));
    }
    let rate = BinaryBytes(figures.rate);
    let left = figures.left().map(|left| format!(", {} left", short(left)));
    format!("{label}: {place}, {rate}/s{}", left.unwrap_or_default())
}

/// The sentence about a finished task, for a log.
pub(super) fn finished(label: &str, outcome: &str, figures: &ProgressFigures) -> String {
    let is_long = figures.spent >= Duration::from_secs(1);
    let printed = |is_worth_it: bool, text: String| if is_worth_it { text } else { String::new() };
    let bytes = printed(figures.at > 0, format!(", {}", BinaryBytes(figures.at)));
    let time = printed(is_long, format!(" in {}", short(figures.spent)));
    let rate = printed(
        is_long && figures.rate > 0,
        format!(", {}/s", BinaryBytes(figures.rate)),
    );
    format!("{label}: {outcome}{bytes}{time}{rate}")
}

/// A name with a maximum length that keeps its distinguishing parts: the last part of a repository,
/// its tag, the first digits of a digest.
pub(super) fn name(label: &str, most: usize) -> String {
    let words: Vec<&str> = label.split(' ').map(short_digest).collect();
    let label = words.join(" ");
    let length = label.chars().count();
    if length <= most {
        return label;
    }
    let last = label.rfind('/').map_or("", |at| &label[at..]);
    let last_length = last.chars().count();
    if last.is_empty() || last_length + SHORTEST_START + 1 > most {
        return shorten(&label, most);
    }
    let start = label.chars().take(most - 1 - last_length);
    start.chain(['…']).chain(last.chars()).collect()
}

fn short_digest(word: &str) -> &str {
    match word.strip_prefix("sha256:") {
        Some(hex) if hex.len() == 64 => hex.get(..12).unwrap_or(word),
        _ => word,
    }
}

/// `35s`, `4m`, `2h`.
fn short(time: Duration) -> String {
    format!("{:#}", HumanDuration(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(at: u64, of: Option<u64>) -> ProgressFigures {
        ProgressFigures {
            at,
            of,
            rate: 89_128_960,
            spent: Duration::from_secs(51),
        }
    }

    #[test]
    fn names_lose_their_middle_and_digests_their_end() {
        let digest = format!("layer sha256:{}", "ab".repeat(32));
        assert_eq!(name(&digest, 40), "layer abababababab");
        let expected = "step 3/5 …File a.ps1";
        assert_eq!(name("step 3/5 RUN powershell -File a.ps1", 20), expected);
        assert_eq!(name("oci:/srv/images/pause", 14), "oci:/sr…/pause");
        let expected = format!("{0}…{0}ä", "ä".repeat(5));
        assert_eq!(name(&"ä".repeat(20), 12), expected);
    }

    #[test]
    fn a_log_gets_sentences() {
        let quiet = Duration::from_secs(30);
        let printed = |figures| progress_text("nanoserver 1a2b", &figures, quiet);
        let expected = "nanoserver 1a2b: 1.00 GiB of 4.00 GiB, 85.00 MiB/s, 36s left";
        assert_eq!(printed(figures(1 << 30, Some(4 << 30))), expected);
        let expected = "nanoserver 1a2b: 1.00 GiB, 85.00 MiB/s";
        assert_eq!(printed(figures(1 << 30, None)), expected);
        let stalled = ProgressFigures {
            rate: 0,
            ..figures(1 << 30, Some(4 << 30))
        };
        let expected = "nanoserver 1a2b: 1.00 GiB of 4.00 GiB, no progress for 30s";
        assert_eq!(printed(stalled), expected);
        let step = ProgressFigures {
            rate: 0,
            ..figures(0, None)
        };
        assert_eq!(printed(step), "nanoserver 1a2b: 51s so far");
        let ended = |figures| finished("nanoserver 1a2b", "copied", &figures);
        let expected = "nanoserver 1a2b: copied, 4.00 GiB in 51s, 85.00 MiB/s";
        assert_eq!(ended(figures(4 << 30, None)), expected);
        assert_eq!(ended(ProgressFigures::default()), "nanoserver 1a2b: copied");
    }
}
