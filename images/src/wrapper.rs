//! Programs that an entry point runs before its own: the shim, and Microsoft's two.

use serde::Serialize;
use wincimg_shim::cmdline::{names_program, split};

use super::shim;

/// A program that runs or watches another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wrapper {
    /// wincimg's shim.
    Shim,
    /// Microsoft's `LogMonitor`, which prints logs of the container.
    LogMonitor,
    /// Microsoft's `ServiceMonitor`, which waits for a service.
    ServiceMonitor,
}

impl Wrapper {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shim => "shim",
            Self::LogMonitor => "LogMonitor",
            Self::ServiceMonitor => "ServiceMonitor",
        }
    }
}

/// The wrappers at the start of an image's entry point and command, outermost first.
pub fn wrappers(entrypoint: &[String], command: &[String], environment: &[String]) -> Vec<Wrapper> {
    let mut found = Vec::new();
    let mut words = [entrypoint, command].concat();
    // Each wrapper and each shell takes words away.
    while let Some(first) = words.first() {
        let is = |name| names_program(&wide(first), name);
        if let Some(shim) = shim::detect(&words, &[], environment) {
            found.push(Wrapper::Shim);
            words = shim.program;
        } else if is("logmonitor") {
            found.push(Wrapper::LogMonitor);
            let is_config = |word: &String| word.eq_ignore_ascii_case("/config");
            let options = if words.get(1).is_some_and(is_config) {
                3
            } else {
                1
            };
            words.drain(..options.min(words.len()));
        } else if is("servicemonitor") {
            found.push(Wrapper::ServiceMonitor);
            break;
        } else if is("cmd") && words.len() > 1 {
            let options = words[1..].iter().take_while(|word| word.starts_with('/'));
            words = split_line(&words[1 + options.count()..]);
        } else if first.contains(' ') && words != split_line(&words) {
            words = split_line(&words);
        } else {
            break;
        }
    }
    found
}

/// The words of a command line that comes in pieces.
fn split_line(pieces: &[String]) -> Vec<String> {
    let tokens = split(&wide(&pieces.join(" ")));
    let words = tokens
        .iter()
        .map(|token| String::from_utf16_lossy(&token.text));
    words.filter(|word| !word.is_empty()).collect()
}

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

#[cfg(test)]
mod tests {
    use super::Wrapper::{LogMonitor, ServiceMonitor, Shim};
    use super::*;

    #[test]
    fn wrappers_are_found_in_order() {
        let cases: [(&[&str], &[Wrapper]); 10] = [
            (&[], &[]),
            (&["app.exe", "LogMonitor.exe"], &[]),
            (&[r"C:\ServiceMonitor.exe", "w3svc"], &[ServiceMonitor]),
            (
                &[
                    r"C:\LogMonitor\LogMonitor.exe",
                    r"C:\ServiceMonitor.exe",
                    "w3svc",
                ],
                &[LogMonitor, ServiceMonitor],
            ),
            (
                &[
                    "logmonitor",
                    "/CONFIG",
                    r"C:\a.json",
                    "cmd",
                    "/S",
                    "/C",
                    r"C:\ServiceMonitor.exe w3svc",
                ],
                &[LogMonitor, ServiceMonitor],
            ),
            (
                &["cmd /S /C C:/ServiceMonitor.exe w3svc"],
                &[ServiceMonitor],
            ),
            (
                &[r#""C:\Program Files\LogMonitor.exe" app.exe"#],
                &[LogMonitor],
            ),
            (&[r"C:\my app\app.exe", "x"], &[]),
            (
                &[
                    shim::PATH,
                    "--service",
                    "w3svc",
                    "--",
                    r"C:\ServiceMonitor.exe",
                    "w3svc",
                ],
                &[Shim, ServiceMonitor],
            ),
            (&[shim::PATH, "pause"], &[Shim]),
        ];
        for (words, expected) in cases {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            assert_eq!(wrappers(&words, &[], &[]), expected, "{words:?}");
        }
    }
}
