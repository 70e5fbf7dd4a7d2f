//! Values of Dockerfile instructions, which recipes have as keys: checked alike in both.

use wincimg_common::diagnose::closest_match;
use wincimg_common::untrusted::QuotedText;

/// Keywords of instructions.
pub const KEYWORDS: [&str; 18] = [
    "ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL",
    "MAINTAINER", "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
];

/// Characters of an unknown keyword in a message.
const LONGEST_QUOTE: usize = 24;

/// Names of signals, without `SIG`.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// Checks the keyword of an instruction, in upper case.
pub fn check_keyword(keyword: &str) -> Result<(), String> {
    if KEYWORDS.contains(&keyword) {
        return Ok(());
    }
    // The line may be of any file, such as a key.
    let mut shown: String = keyword.chars().take(LONGEST_QUOTE).collect();
    if shown.len() < keyword.len() {
        shown.push('…');
    }
    // `Add-Content` is not a misspelt ADD.
    let known = KEYWORDS.into_iter().filter(|_| !keyword.contains('-'));
    let meant = closest_match(&shown, known);
    let meant = meant.map_or_else(String::new, |meant| format!(": did you mean {meant}?"));
    Err(format!("unknown instruction {shown:?}{meant}"))
}

/// Checks the keyword of an instruction that `ONBUILD` keeps, in upper case.
pub fn check_trigger(keyword: &str) -> Result<(), String> {
    match keyword {
        "ONBUILD" | "FROM" | "MAINTAINER" => Err(format!("ONBUILD does not support {keyword}")),
        _ => check_keyword(keyword),
    }
}

/// Checks a path that Docker on Windows takes as it is: with a drive it is absolute.
pub fn check_absolute(text: &str) -> Result<(), String> {
    match text.split_once(':') {
        Some((drive, inside)) if !inside.is_empty() && !inside.starts_with(['/', '\\']) => {
            Err(format!(
                "{} is not an absolute path: expected {drive}:/{inside}",
                QuotedText(text)
            ))
        }
        _ => Ok(()),
    }
}

/// Checks a volume as Docker reads it on Windows.
pub fn check_volume(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("a volume has an empty name".to_owned());
    }
    check_absolute(text)?;
    let shown = QuotedText(text);
    let (drive, inside) = text.split_once(':').unwrap_or(("C", text));
    let is_drive = drive.len() == 1 && drive.chars().all(|c| c.is_ascii_alphabetic());
    let is_path = inside.is_empty() || inside.starts_with(['/', '\\']);
    if !is_drive || !is_path || inside.contains([':', '*', '?', '"', '<', '>', '|']) {
        return Err(format!("invalid volume {shown}: expected C:/FOLDER"));
    }
    if drive.eq_ignore_ascii_case("C") && inside.trim_matches(['/', '\\']).is_empty() {
        return Err("the drive C: cannot be a volume: name a folder".to_owned());
    }
    let is_separator = |byte: &u8| matches!(byte, b'/' | b'\\');
    let mut pairs = inside.as_bytes().windows(2);
    if pairs.any(|pair| pair.iter().all(is_separator)) {
        return Err(format!("invalid volume {shown}: write each separator once"));
    }
    if inside.len() == text.len() {
        let inside = inside.replace('\\', "/");
        return Err(format!(
            "invalid volume {shown}: Docker requires the drive: write C:{inside}"
        ));
    }
    Ok(())
}

/// Checks a stop signal.
pub fn check_stop_signal(text: &str) -> Result<(), String> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let is_number = text.parse::<u8>().is_ok_and(|number| number > 0);
    if is_number || SIGNALS.contains(&name) || name.starts_with("RTM") {
        return Ok(());
    }
    Err(format!(
        "invalid signal {}: expected a name or a number",
        QuotedText(text)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_folders_that_docker_mounts_on_windows() {
        for text in ["C:/data", r"c:\data\x", "C:/data/", "D:", "G:/"] {
            assert_eq!(check_volume(text), Ok(()), "{text}");
        }
        for (text, problem) in [
            ("", "empty name"),
            ("data", "expected C:/FOLDER"),
            ("/data", "write C:/data"),
            (r"\data\x", "write C:/data/x"),
            (r"C:\\data", "each separator once"),
            ("C:data", "expected C:/data"),
            ("C:", "cannot be a volume"),
            ("C:/", "cannot be a volume"),
            ("/", "cannot be a volume"),
            ("C:/a:b", "invalid volume"),
            ("CD:/a", "invalid volume"),
        ] {
            let error = check_volume(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn an_unknown_keyword_is_quoted_in_part_if_it_is_long() {
        let error = check_keyword("DEPLOY_TOKEN=S3CRET-AND-MORE-OF-IT").unwrap_err();
        assert_eq!(error, "unknown instruction \"DEPLOY_TOKEN=S3CRET-AND-…\"");
        let error = check_keyword("HEALTHCHECKS").unwrap_err();
        assert_eq!(
            error,
            "unknown instruction \"HEALTHCHECKS\": did you mean HEALTHCHECK?"
        );
        let error = check_keyword("COPY-ITEM").unwrap_err();
        assert_eq!(error, "unknown instruction \"COPY-ITEM\"");
    }

    #[test]
    fn signals_have_names_or_numbers() {
        for text in ["SIGTERM", "term", "KILL", "9", "SIGRTMIN+3"] {
            assert_eq!(check_stop_signal(text), Ok(()), "{text}");
        }
        for text in ["TERMX", "0", "", "300"] {
            assert!(check_stop_signal(text).is_err(), "{text}");
        }
        let error = check_stop_signal(r"x\y").unwrap_err();
        assert!(error.starts_with(r#"invalid signal "x\y": "#), "{error}");
    }
}
