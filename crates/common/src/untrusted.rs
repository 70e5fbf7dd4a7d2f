//! Untrusted text for a terminal or a log, such as labels, names of nodes and tags, and messages of
//! servers: stays on one line and contains no control sequences.

use std::borrow::Cow;
use std::fmt;

/// Displays a value with control characters and bidirectional marks escaped, such as `\u{1b}`, and
/// with CI commands disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntrustedText<T>(pub T);

impl<T: fmt::Display> fmt::Display for UntrustedText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&harmless(&self.0.to_string()))
    }
}

/// Displays a text in quotes, with backslashes as they are written, so that a path can be pasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotedText<T>(pub T);

impl<T: fmt::Display> fmt::Display for QuotedText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", UntrustedText(&self.0))
    }
}

fn harmless(text: &str) -> Cow<'_, str> {
    let may_be_command = text.contains("##") || text.trim_start().starts_with("::");
    if !may_be_command && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    // GitHub interprets `::error::` at the beginning of a line, `##[error]` and `##vso[` anywhere.
    let is_command = |at: usize| {
        let rest = &text[at..];
        rest.starts_with("##") || (rest.starts_with("::") && text[..at].trim().is_empty())
    };
    let is_escaped = |(at, c): (usize, char)| is_harmful(c) || is_command(at);
    if !text.char_indices().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        match c {
            '\n' | '\r' | '\t' => shown.extend(c.escape_default()),
            c if is_escaped((at, c)) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Returns true if a character moves the cursor or the direction of text, or ends a line.
pub fn is_harmful(c: char) -> bool {
    c.is_control() || moves_text(c)
}

/// Returns true if a character is invisible and moves others, or is not a character.
fn moves_text(c: char) -> bool {
    matches!(
        c,
        '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Replacement of a password.
pub const HIDDEN: &str = "***";

/// Hides the password in a text that names a host, `bob:***@repo.lan`, and all before the host in a
/// URL, where the user may be a token: `https://***@repo.lan`.
pub fn without_password(text: &str) -> Cow<'_, str> {
    match password(text) {
        Some((before, after)) => Cow::Owned(format!("{before}{HIDDEN}{after}")),
        None => Cow::Borrowed(text),
    }
}

/// Hides the passwords in URLs of a command line or a message.
pub fn without_passwords(text: &str) -> String {
    let words = text.split_inclusive(|c: char| c.is_whitespace() || "'\"".contains(c));
    let shown = words.map(|word| {
        if word.contains("://") {
            without_password(word)
        } else {
            word.into()
        }
    });
    shown.collect()
}

/// A URL without the parts that may be secret: user, query and fragment.
pub fn public_url(url: &str) -> String {
    let url = without_password(url);
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Returns the text before and after the secret: the password in `USER:PASSWORD@HOST`, and
/// everything between scheme and host in `SCHEME://USER[:PASSWORD]@HOST`.
pub fn password(text: &str) -> Option<(&str, &str)> {
    let scheme = text.find("://").map(|at| at + "://".len());
    let start = scheme.unwrap_or(0);
    let at = text.rfind('@').filter(|at| *at >= start)?;
    // A digest follows the name of an image.
    let digests = ["sha256:", "sha384:", "sha512:"];
    if digests.iter().any(|it| text[at + 1..].starts_with(it)) {
        let (before, after) = password(&text[..at])?;
        return Some((before, &text[at - after.len()..]));
    }
    let user = &text[start..at];
    let start = match (user.find(':'), scheme) {
        (Some(_), Some(start)) => start,
        (Some(colon), None) => colon + 1,
        // An `@` in a path or query follows no user.
        (None, Some(start)) if !user.contains(['/', '?', '#']) => start,
        (None, _) => return None,
    };
    Some((&text[..start], &text[at..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_moves_the_cursor_or_the_direction_is_shown_escaped() {
        for (text, shown) in [
            ("plain ä 漢 👩‍💻", "plain ä 漢 👩‍💻"),
            ("a\x1b[2Jb\x07", r"a\u{1b}[2Jb\u{7}"),
            ("one\r\n::error::two\tthree", r"one\r\n::error::two\tthree"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("user\u{202e}nimda", r"user\u{202e}nimda"),
            ("::error file=x::y", r"\u{3a}:error file=x::y"),
            (" ::stop-commands::x", r" \u{3a}:stop-commands::x"),
            ("a ##vso[task.x]", r"a \u{23}#vso[task.x]"),
            ("12::34", "12::34"),
        ] {
            assert_eq!(UntrustedText(text).to_string(), shown);
        }
        assert_eq!(format!("{:<4}|", UntrustedText("a")), "a   |");
    }

    #[test]
    fn a_quoted_path_has_its_backslashes_once() {
        for (text, shown) in [(r"C:\app\x", r#""C:\app\x""#), ("a\nb", r#""a\nb""#)] {
            assert_eq!(QuotedText(text).to_string(), shown);
        }
    }

    #[test]
    fn passwords_go_and_digests_stay() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for (text, shown) in [
            ("bob:SECRET@repo.lan", "bob:***@repo.lan"),
            ("https://bob:S:E@C/RET@repo.lan/x", "https://***@repo.lan/x"),
            ("https://ghp_TOKEN@repo.lan/x", "https://***@repo.lan/x"),
            (
                "https://repo.lan/@scope/x?by=bob@repo.lan",
                "https://repo.lan/@scope/x?by=bob@repo.lan",
            ),
            ("tcp://:SECRET@build01:2375", "tcp://***@build01:2375"),
            ("bob@repo.lan", "bob@repo.lan"),
            ("repo.lan:5000/app:1", "repo.lan:5000/app:1"),
        ] {
            assert_eq!(without_password(text), shown);
        }
        for name in ["repo.lan:5000/app", "app:1.4", "app"] {
            let text = format!("{name}@{digest}");
            assert_eq!(without_password(&text), text);
        }
        for (before, shown) in [("bob:SECRET", "bob:***"), ("https://TOKEN", "https://***")] {
            assert_eq!(
                without_password(&format!("{before}@repo.lan/app@{digest}")),
                format!("{shown}@repo.lan/app@{digest}")
            );
        }
    }

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        let url = "https://me:secret@files.lan/tool.zip?sig=abc#x";
        assert_eq!(public_url(url), "https://***@files.lan/tool.zip");
    }

    proptest! {
        #[test]
        fn nothing_foreign_leaves_its_line_or_begins_a_command(text in "[\\PC\\p{Cc}\u{202e}:#]*") {
            let shown = UntrustedText(&text).to_string();
            prop_assert!(!shown.contains(|c: char| c.is_control() || moves_text(c)));
            prop_assert!(!shown.trim_start().starts_with("::") && !shown.contains("##"));
            prop_assert_eq!(UntrustedText(&shown).to_string(), shown);
        }
    }
}
