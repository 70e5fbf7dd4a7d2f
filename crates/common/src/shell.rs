//! Commands that a user can copy into a shell.

/// Joins words to a command line. All that a user or a server named, such as a path or an image,
/// goes into a command through this, or through [`quote`].
///
/// ```
/// use wincimg_common::shell::command_line;
///
/// assert_eq!(command_line(&["wincimg", "build", "my app"]), "wincimg build 'my app'");
/// ```
pub fn command_line<W: AsRef<str>>(words: &[W]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(word.as_ref())).collect();
    words.join(" ")
}

/// Quotes a word for a POSIX shell if needed.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=,+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_if_a_shell_would_change_it() {
        for (word, quoted) in [
            ("./app:1.4", "./app:1.4"),
            ("my app", "'my app'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("", "''"),
        ] {
            assert_eq!(quote(word), quoted);
        }
    }
}
