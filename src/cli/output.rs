//! Output of results: stdout, or a file that is renamed into place when it is complete.

use std::borrow::Cow;
use std::io::{BufWriter, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};

use wincimg_common::json;

use crate::cli::prelude::*;
use crate::report::{Annotation, write_github, write_gitlab};

/// Output format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// Human-readable text
    Text,
    /// JSON
    Json,
}

/// Output format of a command that reads a Dockerfile: the last two print what failed at its lines
/// for the checks of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReviewFormat {
    /// Human-readable text
    Text,
    /// JSON
    Json,
    /// Text, and failed lines as annotations of GitHub Actions
    Github,
    /// Failed lines as a Code Quality report of GitLab
    Gitlab,
}

impl OutputFormat {
    /// Prints a result: as text, or the value as JSON.
    pub(super) fn print<T: Serialize>(
        self,
        value: impl FnOnce() -> T,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<CommandOutcome> {
        self.write(None, value, text)
    }

    /// Prints what only JSON has besides the error.
    pub(super) fn print_if_json<T: Serialize>(self, value: impl FnOnce() -> T) -> Result<()> {
        self.print(value, |_| Ok(()))?;
        Ok(())
    }

    /// Writes a result to a file or, without one, to stdout.
    pub(super) fn write<T: Serialize>(
        self,
        file: Option<&Path>,
        value: impl FnOnce() -> T,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<CommandOutcome> {
        write_result(file, |out| match self {
            Self::Text => text(out),
            Self::Json => write_json(&value(), out),
        })?;
        Ok(CommandOutcome::Yes)
    }
}

/// Limit on the size of a file that [`remove_result`] removes.
const LARGEST_RESULT: u64 = 1 << 20;

/// Endings of file names, each with the name of its format.
const ENDINGS: [(&str, &str); 8] = [
    (".spdx.json", "spdx"),
    (".cdx.json", "cyclonedx"),
    (".json", "json"),
    (".html", "html"),
    (".htm", "html"),
    (".md", "markdown"),
    (".sarif", "sarif"),
    (".xml", "junit"),
];

/// The typed format, or the one that the output's name ends in, if the command has it.
pub(super) fn format_of<F: ValueEnum>(typed: Option<F>, output: Option<&Path>) -> Option<F> {
    let named = || {
        let name = output?.file_name()?.to_str()?.to_ascii_lowercase();
        let mut endings = ENDINGS.iter().filter(|(ending, _)| name.ends_with(*ending));
        endings.find_map(|(_, format)| F::from_str(format, false).ok())
    };
    typed.or_else(named)
}

/// Prints the annotations of lines.
pub(super) fn write_annotations(
    format: ReviewFormat,
    all: &[Annotation<'_>],
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        ReviewFormat::Github => write_github(all, out),
        ReviewFormat::Gitlab => write_gitlab(all, out),
        ReviewFormat::Text | ReviewFormat::Json => Ok(()),
    }
}

/// Labelled lines of a text result, escaped.
pub(super) struct Rows<'o> {
    pub(super) out: &'o mut dyn Write,
    pub(super) width: usize,
}

impl Rows<'_> {
    pub(super) fn row(&mut self, name: &str, value: impl Display) -> io::Result<()> {
        let width = self.width;
        writeln!(self.out, "  {name:<width$}{}", UntrustedText(value))
    }

    /// A line for each value.
    pub(super) fn each<T: Display>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        values
            .into_iter()
            .try_for_each(|value| self.row(name, value))
    }

    /// A line for each value; only the first has the name.
    pub(super) fn list<T: Display>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        let names = std::iter::once(name).chain(std::iter::repeat(""));
        names
            .zip(values)
            .try_for_each(|(name, value)| self.row(name, value))
    }
}

/// A flag with each of its values, as words of a command line.
pub(super) fn flag_words<T: Display>(
    flag: &str,
    values: impl IntoIterator<Item = T>,
) -> Vec<String> {
    let words = values.into_iter();
    let words = words.flat_map(|value| [flag.to_owned(), value.to_string()]);
    words.collect()
}

/// The text of a value, or a dash in a table.
pub(super) fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

pub(super) fn write_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    json::write_pretty(out, value)
}

/// Writes a result to a file or, without one, to stdout. The reader may close early, as `head`
/// does.
pub(super) fn write_result(
    file: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    match file.filter(|path| !is_stdout(path)) {
        Some(path) => write_file(path, write).map_err(|error| unwritable(path, error))?,
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, stdout().lock());
            match write(&mut out).and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                other => other.context("cannot write the result")?,
            }
        }
    }
    Ok(())
}

/// Rejects a file that [`write_result`] could not write, before the work that makes the result.
pub(super) fn check_file(path: &Path) -> Result<()> {
    if is_stdout(path) {
        return Ok(());
    }
    let checked = check_folder(path).and_then(|()| files::check_replace(path));
    checked.map_err(|error| unwritable(path, error))
}

/// Removes a file, also at the end of a link, if its content is that of an earlier run.
pub(super) fn remove_result(path: &Path, is_result: impl FnOnce(&[u8]) -> bool) -> Result<()> {
    let has_result = || files::read(path, LARGEST_RESULT).is_ok_and(|bytes| is_result(&bytes));
    if is_stdout(path) || !has_result() {
        return Ok(());
    }
    let removed = path.canonicalize().and_then(fs::remove_file);
    removed.map_err(|error| unwritable(path, error))
}

/// Rejects a file that two outputs name: the second would overwrite the first. Without a file, the
/// result has stdout. What is written through, such as `/dev/null`, can be named twice.
pub(super) fn check_distinct<'p>(
    result: Option<&'p Path>,
    others: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<()> {
    let others = others.into_iter().map(PathBuf::as_path);
    let mut places = HashSet::new();
    for path in others.chain([result.unwrap_or(Path::new("-"))]) {
        let (place, name) = if is_stdout(path) {
            (None, "stdout".to_owned())
        } else if path.exists() && !path.is_file() {
            continue;
        } else {
            let place = files::real_path(path).unwrap_or_else(|| path.to_owned());
            (Some(place), path.display().to_string())
        };
        if !places.insert(place) {
            let problem = format!("two outputs are written to {name}");
            return Err(Failure::usage(problem).hint("name a file for each"));
        }
    }
    Ok(())
}

/// A stdout that is a file belongs to the shell, and other programs may write to it too. `-` is
/// stdout here, as it is stdin for inputs.
fn is_stdout(path: &Path) -> bool {
    ["/dev/stdout", "-"].map(Path::new).contains(&path)
}

fn unwritable(path: &Path, error: io::Error) -> Failure {
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    let hint = is_missing.then_some("create the folder, or name another file");
    let failure = Failure::from(error).context(format!("cannot write {}", path.display()));
    failure.hint_if(hint)
}

/// Writes a foreign document: every byte, but escaped on a terminal.
pub(super) fn write_document(bytes: &[u8]) -> Result<()> {
    let shown = if io::stdout().is_terminal() {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().map(|line| UntrustedText(line).to_string());
        Cow::Owned(lines.collect::<Vec<_>>().join("\n").into_bytes())
    } else {
        Cow::Borrowed(bytes)
    };
    write_result(None, |out| {
        out.write_all(&shown)?;
        // A line end in UTF-16 has another byte.
        if !shown.ends_with(b"\n") && !shown.starts_with(b"\xFF\xFE") {
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// Writes a document in JSON: every byte, but escaped on a terminal, which changes nothing for a
/// parser.
pub(super) fn write_json_document(bytes: &[u8]) -> Result<()> {
    let is_terminal = io::stdout().is_terminal();
    write_result(None, |out| {
        if is_terminal {
            json::EscapingWriter(out).write_all(bytes)
        } else {
            out.write_all(bytes)
        }
    })
}

/// Opens the output; from then on a result is being written.
pub(super) fn stdout() -> io::Stdout {
    IS_WRITING.store(true, Ordering::Relaxed);
    io::stdout()
}

/// Takes stdout for an error; false if it has a result, part of one, or another error.
pub(super) fn take() -> bool {
    !IS_WRITING.swap(true, Ordering::Relaxed)
}

static IS_WRITING: AtomicBool = AtomicBool::new(false);

/// Names a missing folder, and not a temporary file in it.
fn check_folder(path: &Path) -> io::Result<()> {
    let folder = files::folder_of(path);
    if folder.is_dir() {
        return Ok(());
    }
    let problem = format!("no such folder: {}", folder.display());
    Err(io::Error::new(io::ErrorKind::NotFound, problem))
}

fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    check_folder(path)?;
    files::replace(path, |file| {
        let mut out = BufWriter::with_capacity(1 << 16, file);
        write(&mut out)?;
        out.flush()
    })
}

/// Width of files and pipes: that of most terminals.
pub(super) const FILE_WIDTH: usize = 100;

pub(super) fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_determines_the_format_among_those_of_the_command() {
        use crate::report::ReportFormat::{self, Html, Json, Junit, Markdown, Sarif};

        for (name, expected) in [
            ("a/report.HTM", Some(Html)),
            ("web.spdx.json", Some(Json)),
            ("report.md", Some(Markdown)),
            ("report.xml", Some(Junit)),
            ("report.sarif", Some(Sarif)),
            ("report.txt", None),
            ("sarif", None),
        ] {
            let format: Option<ReportFormat> = format_of(None, Some(Path::new(name)));
            assert_eq!(format, expected, "{name}");
            assert_eq!(format_of(Some(Html), Some(Path::new(name))), Some(Html));
        }
        assert_eq!(format_of::<ReportFormat>(None, None), None);
        let scan = format_of::<OutputFormat>(None, Some(Path::new("web.sarif")));
        assert_eq!(scan, None);
    }

    fn one(out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"one")
    }

    #[test]
    fn a_missing_folder_is_named_without_a_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no");
        let error = write_file(&missing.join("result"), one).unwrap_err();
        let expected = format!("no such folder: {}", missing.display());
        assert_eq!(error.to_string(), expected);
    }
}
