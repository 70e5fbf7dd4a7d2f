//! Quoting for a Dockerfile whose escape character is the backtick.
//!
//! The daemon splits the arguments of `ENV`, `LABEL`, `WORKDIR`, `USER` and `EXPOSE` into words, in
//! which quotes group and `$NAME` is expanded. Inside double quotes only the quote, the dollar sign
//! and the escape character are special, and the escape character escapes them.

use wincimg_common::diagnose::Problem;
use wincimg_common::untrusted::QuotedText;
use wincimg_windows::quoting::{Escape, exec_command, exec_form};

/// Escape character of rendered Dockerfiles.
pub(super) const ESCAPE: Escape = Escape::Backtick;

/// Error for a text that a Dockerfile cannot contain.
pub(super) fn unwritable(problem: String) -> Problem {
    Problem::request("recipe/unwritable", problem)
}

pub(super) fn word(text: impl AsRef<str>) -> Result<String, Problem> {
    let text = text.as_ref();
    check_line(text)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || r"_-./:\+,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '$') || c == ESCAPE.character() {
            quoted.push(ESCAPE.character());
        }
        quoted.push(c);
    }
    quoted.push('"');
    Ok(quoted)
}

/// Quotes the name and the value of a variable or a label.
pub(super) fn pair((name, value): (&String, &String)) -> Result<String, Problem> {
    if name.is_empty() || name.contains('=') {
        return Err(unwritable(format!(
            "{name:?} cannot be the name of a variable or a label: it is empty or contains ="
        )));
    }
    Ok(format!("{}={}", word(name)?, word(value)?))
}

/// Checks an image for `FROM`, which does not support quotes.
pub(super) fn reference(text: String) -> Result<String, Problem> {
    let sound = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    if text.is_empty() || !text.chars().all(sound) {
        return Err(unwritable(format!(
            "invalid reference to a base image: {text:?}"
        )));
    }
    Ok(text)
}

/// Checks a part of a comment.
pub(super) fn comment(text: &str) -> Result<String, Problem> {
    check_line(text).map(|()| text.to_owned())
}

/// Writes a program and its arguments for `RUN`, in exec form.
pub(super) fn command(argv: &[String]) -> Result<String, Problem> {
    exec_command(argv).map_err(|error| unwritable(error.to_string()))
}

/// Writes the array of `ENTRYPOINT`, `CMD` or `SHELL`, which may be a part of a command line.
pub(super) fn array(words: impl AsRef<[String]>) -> Result<String, Problem> {
    let words = words.as_ref();
    match words.iter().find(|word| word.contains('\0')) {
        Some(word) => Err(control(word)),
        None => Ok(exec_form(words)),
    }
}

/// Writes the paths of `COPY`. Patterns and paths that need quotes are refused; none are needed.
pub(super) fn paths(paths: &[String]) -> Result<String, Problem> {
    let sound = |c: char| c.is_ascii_alphanumeric() || " ._-/:".contains(c);
    match paths.iter().find(|path| !path.chars().all(sound)) {
        Some(path) => Err(unwritable(format!(
            "cannot copy {path:?}: its name contains characters other than letters, digits, spaces and . _ - / :"
        ))),
        None => Ok(exec_form(paths)),
    }
}

/// Checks a path for a command of cmd, which is quoted only for spaces.
pub(super) fn cmd_path(path: &str) -> Result<String, Problem> {
    let path = path.replace('/', "\\");
    let sound = |c: char| c.is_alphanumeric() || " ._-\\:()+@~#".contains(c);
    if !path.chars().all(sound) {
        return Err(unwritable(format!(
            "cannot make the link to a folder: cmd does not accept {} as a path",
            QuotedText(path)
        )));
    }
    Ok(path)
}

/// Checks a line in shell form.
pub(super) fn shell_line(line: &str) -> Result<String, Problem> {
    let text = line.trim();
    let refused = |problem: &str| Err(unwritable(format!("the shell line {line:?} {problem}")));
    if text.is_empty() {
        return refused("is empty");
    }
    if text.contains(|c: char| c.is_control() && c != '\t') {
        return refused(
            "contains a line break or another control character: a line is one command",
        );
    }
    if text.ends_with(ESCAPE.character()) {
        return refused(
            "ends with the Dockerfile's escape character, which joins it with the next line",
        );
    }
    if text.starts_with('[') {
        return refused("begins like a list: give it as a command");
    }
    if text.starts_with("--") {
        return refused("begins like an option of RUN");
    }
    let begins_document = |word: &str| {
        let word = word.trim_start_matches(|c: char| c.is_ascii_digit());
        word.starts_with("<<")
    };
    if text.split_whitespace().any(begins_document) {
        return refused("contains a word that begins a here-document");
    }
    Ok(text.to_owned())
}

fn check_line(text: &str) -> Result<(), Problem> {
    if text.contains(|c: char| c.is_control() && c != '\t') {
        return Err(control(text));
    }
    Ok(())
}

fn control(text: &str) -> Problem {
    unwritable(format!(
        "{text:?} contains a line break or another control character, which a Dockerfile does not support"
    ))
}
