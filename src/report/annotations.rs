//! Problems at lines of a file, for the checks of a pull request: workflow commands of GitHub, and
//! a Code Quality report of GitLab.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};
use wincimg_dockerfile::lint::Severity;

use crate::report::prelude::*;

/// A problem at lines of a file.
pub(crate) struct Annotation<'a> {
    /// The file's name as the user gave it.
    pub file: &'a str,
    /// First line, from 1.
    pub line: usize,
    pub last_line: usize,
    /// Rule or error code.
    pub name: &'a str,
    pub severity: Severity,
    pub message: Cow<'a, str>,
    /// Text of the first line.
    pub text: &'a str,
}

/// Writes annotations of GitHub Actions.
pub(crate) fn write_github(all: &[Annotation<'_>], out: &mut dyn Write) -> io::Result<()> {
    for annotation in all {
        let level = match annotation.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        writeln!(
            out,
            "::{level} file={},line={},endLine={},title={}::{}",
            escaped(annotation.file, true),
            annotation.line,
            annotation.last_line,
            escaped(annotation.name, true),
            escaped(&annotation.message, false),
        )?;
    }
    Ok(())
}

/// Escapes a message, or a property, of an annotation.
fn escaped(text: &str, is_property: bool) -> String {
    let text = UntrustedText(text).to_string();
    let text = text.replace('%', "%25");
    let text = text.replace('\r', "%0D").replace('\n', "%0A");
    if is_property {
        text.replace(':', "%3A").replace(',', "%2C")
    } else {
        text
    }
}

/// Writes a Code Quality report of GitLab.
pub(crate) fn write_gitlab(all: &[Annotation<'_>], out: &mut dyn Write) -> io::Result<()> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let entries: Vec<_> = all
        .iter()
        .map(|annotation| {
            // The same when lines move; a repeated line counts.
            let text = annotation.text.trim();
            let what = format!("{}\0{}\0{text}", annotation.file, annotation.name);
            let count = seen.entry(what.clone()).or_default();
            *count += 1;
            let fingerprint = hex::encode(Sha256::digest(format!("{what}\0{count}")));
            json!({
                "description": annotation.message,
                "check_name": annotation.name,
                "fingerprint": fingerprint,
                "severity": match annotation.severity {
                    Severity::Error => "major",
                    Severity::Warning => "minor",
                    Severity::Note => "info",
                },
                "location": {
                    "path": annotation.file,
                    "lines": {"begin": annotation.line, "end": annotation.last_line},
                },
            })
        })
        .collect();
    write_pretty(out, &entries)
}
