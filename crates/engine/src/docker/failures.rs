//! Hints for failures: messages of Windows and Docker as published in bug reports, and what helped.
//! Steps, pulls and pushes share the one table, `failures.tsv`.

use std::sync::LazyLock;

use wincimg_oci::reference::{display_host, parse_reference};
use wincimg_windows::status::ExitCode;
use wincimg_windows::table::{TableError, read_rows};

/// Facts about a failure.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Failure<'a> {
    /// The daemon's message, on one line.
    pub(super) message: &'a str,
    /// The last lines of the failed program.
    pub(super) output: &'a [String],
    pub(super) exit_code: Option<ExitCode>,
    /// The pulled or pushed image.
    pub(super) image: Option<&'a str>,
}

/// Separator of the classic builder between a failed step's command and its exit code.
const RETURNED: &str = "returned a non-zero code: ";
/// The same of `BuildKit`.
const COMPLETED: &str = "did not complete successfully: exit code: ";

struct Row {
    /// True if the program's output is searched too.
    by_programs: bool,
    /// Alternatives; all parts of one must be present.
    words: Vec<Vec<String>>,
    meaning: &'static str,
    next: &'static str,
    #[cfg(test)]
    sources: Vec<&'static str>,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "embedded; a test parses every row")]
    parse(include_str!("failures.tsv")).expect("the embedded table is sound")
});

impl Failure<'_> {
    /// Meaning of the failure and the next step, if known.
    pub(super) fn hint(&self) -> Option<String> {
        // The command itself is the author's text, not the daemon's.
        let message = match self.message.split_once(RETURNED) {
            Some((_, rest)) => rest,
            None => self.message,
        };
        let message = message.to_lowercase();
        if let Some(row) = ROWS.iter().find(|row| row.is_in(&message)) {
            return Some(self.fill_in(row));
        }
        let code = self.exit_code.or_else(|| exit_code_in(self.message));
        if let Some(meaning) = code.and_then(ExitCode::meaning) {
            return Some(meaning.to_owned());
        }
        let output = self.output.join("\n").to_lowercase();
        let mut rows = ROWS.iter().filter(|row| row.by_programs);
        rows.find(|row| row.is_in(&output))
            .map(|row| self.fill_in(row))
    }

    fn fill_in(&self, row: &Row) -> String {
        let registry = self.registry();
        let fill = |text: &str, no_registry: &str, no_image: &str| {
            let registry = registry.as_deref().unwrap_or(no_registry);
            let (name, port) = match registry.rsplit_once(':') {
                Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => (name, port),
                _ => (registry, "443"),
            };
            text.replace("{registry}", registry)
                .replace("{registry-name}", name)
                .replace("{registry-port}", port)
                .replace("{login}", display_host(registry))
                .replace("{image}", self.image.unwrap_or(no_image))
        };
        let meaning = fill(row.meaning, "the registry", "the image");
        let next = fill(row.next, "HOST[:PORT]", "IMAGE");
        format!("{meaning}: {next}")
    }

    /// The registry in an address of the message, or else the image's.
    fn registry(&self) -> Option<String> {
        registry_in(self.message).or_else(|| {
            let reference = parse_reference(self.image?).ok()?;
            Some(reference.registry().to_owned())
        })
    }
}

/// Meaning of a message, which may be about an image, and the next step, if known.
pub(crate) fn advice(message: &str, image: Option<&str>) -> Option<String> {
    let failure = Failure {
        message,
        image,
        ..Failure::default()
    };
    failure.hint()
}

impl Row {
    fn is_in(&self, text: &str) -> bool {
        let mut words = self.words.iter();
        words.any(|parts| parts.iter().all(|part| text.contains(part.as_str())))
    }
}

/// The host of `https://repo.lan:5000/v2/`; other addresses are documentation.
fn registry_in(message: &str) -> Option<String> {
    let addresses = message.split("://").skip(1);
    addresses
        .filter_map(|rest| rest.split_once('/'))
        .find(|(_, path)| path.starts_with("v2/") || path.starts_with("v1/"))
        .map(|(host, _)| host.to_owned())
}

/// Exit code in the message of a daemon that has no field for it.
pub(crate) fn exit_code_in(message: &str) -> Option<ExitCode> {
    let (_, rest) = message
        .split_once(RETURNED)
        .or_else(|| message.split_once("exit status "))
        .or_else(|| message.split_once(COMPLETED))?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    ExitCode::new(digits.parse().ok()?)
}

fn parse(text: &'static str) -> Result<Vec<Row>, TableError> {
    read_rows(text, |row| {
        let by_programs = row.word("who", &[("daemon", false), ("program", true)])?;
        let alternatives = row.list("words", '|')?.into_iter();
        let words = alternatives.map(|words| {
            let parts = words.split(" + ");
            parts.map(|part| part.trim().to_lowercase()).collect()
        });
        let words = words.collect();
        let (meaning, next) = (row.text("meaning")?, row.text("next step")?);
        let sources = row.list("sources", ' ')?;
        if sources.is_empty() {
            return Err(row.error("no sources"));
        }
        Ok(Row {
            by_programs,
            words,
            meaning,
            next,
            #[cfg(test)]
            sources,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that daemons and programs have said, each with words of its hint.
    fn reported() -> Vec<(&'static str, &'static str, &'static str)> {
        let text = include_str!("../../tests/data/daemon-failures.tsv");
        let read = read_rows(text, |row| {
            Ok((row.text("hint")?, row.text("source")?, row.text("line")?))
        });
        read.unwrap()
    }

    fn hint(message: &str) -> Option<String> {
        advice(message, Some("repo.lan:5000/apps/web:1.4"))
    }

    #[test]
    fn every_reported_line_gets_its_hint() {
        let reported = reported();
        let mut hinted = 0;
        for (expected, source, line) in &reported {
            let by_daemon = hint(line);
            let output = [(*line).to_owned()];
            let by_program = Failure {
                message: "The command 'cmd /S /C x' returned a non-zero code: 1",
                output: &output,
                ..Failure::default()
            };
            let hint = by_daemon.or_else(|| by_program.hint());
            match (&hint, *expected) {
                (None, "-") => {}
                (Some(hint), words) if hint.contains(words) => hinted += 1,
                _ => panic!("{source}: expected {expected:?}, got {hint:?}: {line}"),
            }
        }
        assert!(
            reported.len() >= 60 && hinted >= 60,
            "{hinted} of {}",
            reported.len()
        );
    }

    #[test]
    fn every_row_is_met_by_a_reported_line_and_names_its_sources() {
        let reported = reported();
        for (place, row) in ROWS.iter().enumerate() {
            let first = |text: &str| ROWS.iter().position(|row| row.is_in(text));
            let is_met = reported
                .iter()
                .any(|(_, _, line)| first(&line.to_lowercase()) == Some(place));
            assert!(is_met, "no reported line for: {}", row.meaning);
            for source in &row.sources {
                let (_, number) = source.rsplit_once("/issues/").expect(source);
                assert!(number.parse::<u32>().is_ok(), "{source}");
            }
        }
    }

    #[test]
    fn a_hint_names_the_registry_and_the_image_that_it_is_about() {
        let denied = "denied: requested access to the resource is denied";
        let hint_for = |image| advice(denied, image).unwrap();
        let expected = "repo.lan:5000 denied the daemon access: run `wincimg login repo.lan:5000` \
                        with an account that has access";
        assert_eq!(hint_for(Some("repo.lan:5000/apps/web:1.4")), expected);
        assert!(hint_for(Some("apps/web:1")).contains("`wincimg login docker.io`"));
        let echoed = "The command 'cmd /S /C echo no such host' returned a non-zero code: 1";
        assert_eq!(hint(echoed), None);
        assert!(hint_for(None).contains("`wincimg login HOST[:PORT]`"));
        let hub = "Get https://registry-1.docker.io/v2/: unauthorized: authentication required";
        assert!(hint(hub).unwrap().contains("`wincimg login docker.io`"));
        let slow = "Get https://repo.lan:8888/v2/: dial tcp 10.0.0.5:8888: i/o timeout";
        let slow = hint(slow).unwrap();
        let expected = "Test-NetConnection repo.lan -Port 8888";
        assert!(slow.contains(expected), "{slow}");
        for row in ROWS.iter() {
            let failure = Failure::default();
            let printed = failure.fill_in(row);
            for place in ["{re", "{image", "{login"] {
                assert!(!printed.contains(place), "{printed}");
            }
        }
    }

    #[test]
    fn the_exit_code_is_found_where_the_daemon_says_it_in_words_alone() {
        let code = |message| exit_code_in(message).map(|code| code.to_string());
        let printed = "The command 'cmd /S /C x' returned a non-zero code: 3221225781";
        assert!(code(printed).unwrap().starts_with("0xC0000135"));
        assert_eq!(
            code("re-exec error: exit status 1: output: x").as_deref(),
            Some("1")
        );
        assert_eq!(code("exit status "), None);
        assert_eq!(code("exit status 99999999999999999999"), None);
    }
}
