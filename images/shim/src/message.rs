//! What the shim says while it works, as a line of words or of JSON.

use alloc::string::String;
use core::fmt::{self, Write};

use crate::args::LogFormat;

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// What happens as it should.
    Info,
    /// What an operator should look at.
    Warning,
    /// Why the shim gives up.
    Error,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A moment, in UTC.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    /// Year, month and day.
    pub date: [u16; 3],
    /// Hour, minute, second and millisecond.
    pub clock: [u16; 4],
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, day] = self.date.map(u64::from);
        let [hour, minute, second, millisecond] = self.clock.map(u64::from);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z"
        )
    }
}

/// A message.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// When it was said.
    pub time: Time,
    /// How much it matters.
    pub level: Level,
    /// A word for programs that read the log.
    pub event: &'static str,
    /// The sentence for people.
    pub text: fmt::Arguments<'a>,
    /// Numbers for programs that read the log.
    pub fields: &'a [(&'static str, u64)],
}

impl Message<'_> {
    /// The message as a line, its end included.
    pub fn line(&self, format: LogFormat) -> String {
        let mut line = String::new();
        let written = match format {
            LogFormat::Text => self.write_text(&mut line),
            LogFormat::Json => self.write_json(&mut line),
        };
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
        line
    }

    fn write_text(&self, line: &mut String) -> fmt::Result {
        line.push_str("wincimg-shim: ");
        if self.level != Level::Info {
            write!(line, "{}: ", self.level.as_str())?;
        }
        write!(OneLine(line), "{}", self.text)?;
        line.push_str("\r\n");
        Ok(())
    }

    fn write_json(&self, line: &mut String) -> fmt::Result {
        write!(
            line,
            r#"{{"time":"{}","level":"{}","source":"wincimg-shim","event":"{}","message":""#,
            self.time,
            self.level.as_str(),
            self.event
        )?;
        write!(Escaped(line), "{}", self.text)?;
        line.push('"');
        for (name, value) in self.fields {
            write!(line, r#","{name}":{value}"#)?;
        }
        line.push_str("}\n");
        Ok(())
    }
}

/// Writes one line, whatever a program's name has in it.
struct OneLine<'a>(&'a mut String);

impl Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let character = if character.is_control() {
                ' '
            } else {
                character
            };
            self.0.push(character);
        }
        Ok(())
    }
}

/// Writes what goes inside a JSON string.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '"' => self.0.push_str(r#"\""#),
                '\\' => self.0.push_str(r"\\"),
                '\u{0}'..='\u{1f}' => write!(self.0, "\\u{:04x}", u32::from(character))?,
                _ => self.0.push(character),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: LogFormat, level: Level, text: fmt::Arguments<'_>) -> String {
        Message {
            time: Time {
                date: [2026, 8, 1],
                clock: [7, 5, 9, 42],
            },
            level,
            event: "stop",
            text,
            fields: &[("pid", 12), ("limit_ms", 27_000)],
        }
        .line(format)
    }

    #[test]
    fn text_is_one_line_of_words() {
        assert_eq!(
            line(LogFormat::Text, Level::Info, format_args!("bye")),
            "wincimg-shim: bye\r\n"
        );
        assert_eq!(
            line(LogFormat::Text, Level::Error, format_args!("no\r\nluck")),
            "wincimg-shim: error: no  luck\r\n"
        );
    }

    #[test]
    fn json_is_one_object_a_line() {
        assert_eq!(
            line(
                LogFormat::Json,
                Level::Warning,
                format_args!("a \"b\" C:\\d\n\u{7f}é")
            ),
            concat!(
                r#"{"time":"2026-08-01T07:05:09.042Z","level":"warning","source":"wincimg-shim","#,
                r#""event":"stop","message":"a \"b\" C:\\d\u000a"#,
                "\u{7f}é\",",
                r#""pid":12,"limit_ms":27000}"#,
                "\n"
            )
        );
    }
}
