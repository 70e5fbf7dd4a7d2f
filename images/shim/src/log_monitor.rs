//! The files that a `LogMonitorConfig.json` names, the configuration of Microsoft's `LogMonitor`.

use alloc::vec::Vec;

use crate::glob::{LogFiles, is_same};

/// What a configuration asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Its files.
    pub files: Vec<LogFiles>,
    /// The types of its other sources, each once, with spaces between them.
    pub others: Vec<u16>,
}

/// Reads a configuration; none if it is not JSON.
pub fn sources(text: &[u16]) -> Option<Sources> {
    let mut json = Json {
        text,
        at: 0,
        source: Source::default(),
        sources: Sources::default(),
    };
    json.value(&[], 0)?;
    Some(json.sources)
}

/// What a file has of a source's settings.
const SETTINGS: [&str; 5] = [
    "type", "directory", "filter", "includeSubdirectories", "includeFileNames",
];

/// The values of these settings.
type Source = [Vec<u16>; 5];

/// How deep a source is: in `{"LogConfig": {"sources": [{}]}}`.
const SOURCE: usize = 3;
const DEEPEST: usize = 64;

const SPACE: u16 = b' ' as u16;

/// JSON on its way through.
struct Json<'a> {
    text: &'a [u16],
    at: usize,
    /// The source that is being read.
    source: Source,
    sources: Sources,
}

impl Json<'_> {
    fn value(&mut self, key: &[u16], depth: usize) -> Option<()> {
        let close = match self.peek() {
            b'{' => b'}',
            b'[' => b']',
            _ => {
                let word = self.word()?;
                if depth == SOURCE + 1 {
                    let place = SETTINGS.iter().position(|name| is_same(key, name));
                    if let Some(value) = place.and_then(|at| self.source.get_mut(at)) {
                        *value = word;
                    }
                }
                return Some(());
            }
        };
        if depth == DEEPEST {
            return None;
        }
        self.at += 1;
        if !self.take(close) {
            loop {
                if close == b'}' {
                    let key = self.string()?;
                    self.expect(b':')?;
                    self.value(&key, depth + 1)?;
                } else {
                    self.value(key, depth + 1)?;
                }
                if !self.take(b',') {
                    break;
                }
            }
            self.expect(close)?;
        }
        if depth == SOURCE {
            let source = core::mem::take(&mut self.source);
            if is_same(key, "sources") {
                self.sources.add(source);
            }
        }
        Some(())
    }

    /// The next character that is not blank; zero at the end, and for what JSON has only in strings.
    fn peek(&mut self) -> u8 {
        while let Some(&unit) = self.text.get(self.at) {
            let byte = u8::try_from(unit).unwrap_or(0);
            if !byte.is_ascii_whitespace() {
                return byte;
            }
            self.at += 1;
        }
        0
    }

    fn take(&mut self, wanted: u8) -> bool {
        let is = self.peek() == wanted;
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        self.take(wanted).then_some(())
    }

    fn next(&mut self) -> Option<u16> {
        let unit = self.text.get(self.at)?;
        self.at += 1;
        Some(*unit)
    }

    /// A string; or a number, true, false or null as it is written.
    fn word(&mut self) -> Option<Vec<u16>> {
        if self.peek() == b'"' {
            return self.string();
        }
        let mut word = Vec::new();
        while let Some(&unit) = self.text.get(self.at)
            && let Ok(byte) = u8::try_from(unit)
            && (byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        {
            word.push(unit);
            self.at += 1;
        }
        (!word.is_empty()).then_some(word)
    }

    fn string(&mut self) -> Option<Vec<u16>> {
        self.expect(b'"')?;
        let mut text = Vec::new();
        loop {
            let mut unit = self.next()?;
            if unit == u16::from(b'"') {
                return Some(text);
            }
            if unit == u16::from(b'\\') {
                unit = self.next()?;
                // The other escapes of control characters are not in paths.
                if unit == u16::from(b'u') {
                    unit = 0;
                    for _ in 0..4 {
                        let digit = char::from_u32(self.next()?.into())?.to_digit(16)?;
                        unit = unit << 4 | u16::try_from(digit).ok()?;
                    }
                }
            }
            text.push(unit);
        }
    }
}

impl Sources {
    fn add(&mut self, source: Source) {
        let [kind, mut pattern, filter, deep, named] = source;
        if is_same(&kind, "File") {
            let deep: &[u8] = if is_same(&deep, "true") {
                b"\\**\\"
            } else {
                b"\\"
            };
            pattern.extend(deep.iter().map(|&byte| u16::from(byte)));
            // For Windows, "*.*" is every name.
            if filter.is_empty() || is_same(&filter, "*.*") {
                pattern.push(b'*'.into());
            } else {
                pattern.extend(filter);
            }
            self.files.push(LogFiles {
                pattern,
                named: is_same(&named, "true"),
            });
        // The shim hands the program its output anyway.
        } else if !is_same(&kind, "Process") {
            let others = &mut self.others;
            if !others.split(|&unit| unit == SPACE).any(|it| it == kind) {
                if !others.is_empty() {
                    others.push(SPACE);
                }
                others.extend(kind);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    fn read(text: &str) -> Option<Sources> {
        sources(&text.encode_utf16().collect::<Vec<_>>())
    }

    fn patterns(sources: &Sources) -> Vec<(String, bool)> {
        let files = sources.files.iter();
        files
            .map(|it| (String::from_utf16_lossy(&it.pattern), it.named))
            .collect()
    }

    #[test]
    fn the_file_sources_become_patterns() {
        let found = read(
            r#" { "logFormat": null, "LogConfig": { "logFormat": "json", "sources": [
              { "type": "EventLog", "startAtOldestRecord": true,
                "channels": [ { "name": "system", "level": "Information" } ] },
              { "type": "File", "directory": "c:\\inetpub\\logs", "filter": "*.log",
                "includeSubdirectories": true, "includeFileNames": false, "waitInSeconds": 1e1 },
              { "Type": "file", "Directory": "C:\\Gr\u00fc\u00dfe \ud83d\ude00\\",
                "includeFileNames": "TRUE", "filter": "*.*" },
              { "type": "ETW", "providers": [ ] }, { "type": "EventLog" },
              { "type": "Process" }
            ] } }"#,
        )
        .unwrap();
        assert_eq!(
            patterns(&found),
            [
                (r"c:\inetpub\logs\**\*.log".into(), false),
                ("C:\\Grüße \u{1F600}\\\\*".into(), true),
            ]
        );
        assert_eq!(String::from_utf16_lossy(&found.others), "EventLog ETW");
    }

    #[test]
    fn without_sources_there_is_nothing_to_follow() {
        for text in [
            "{}",
            r#"{"LogConfig":{}}"#,
            r#"{"LogConfig":{"sources":[]}}"#,
        ] {
            assert_eq!(read(text), Some(Sources::default()), "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "", "{", r#"{"LogConfig" 1}"#, r#"{"a":"b"#, r#"{"a":"\u12"#, r#"{"a":"\u12xy"}"#,
            r#"{"a":[1,]}"#, r#"{"a":[1}"#, "{\"a\":\u{e9}}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&"{\"a\":".repeat(100_000)), None);
    }
}
