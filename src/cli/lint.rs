//! `wincimg lint`: finds mistakes in Dockerfiles for Windows, and prints fixes.

mod base;
mod explain;

use std::sync::atomic::{AtomicUsize, Ordering};

use wincimg_common::files::NotUtf8;
use wincimg_dockerfile::has_from;
use wincimg_dockerfile::lint::{
    BaseShell, FixSelection, LintFinding, LintOptions, RULES, RecipeAlternative, Rule, Severity,
    base_images, fixed, lint,
};
use wincimg_engine::definition::is_dockerfile;

use super::hosts::{HostName, host_name};
use super::input;
use super::named_files::{self, FileKind, FilePath};
use crate::cli::prelude::*;
use crate::report::{
    LintedFile, annotations_of, write_github, write_gitlab, write_lint_json, write_lint_sarif,
    write_lint_text,
};

/// The files that are looked for in folders.
const DOCKERFILES: FileKind = FileKind {
    name: "Dockerfile",
    hint: "a folder is searched for Dockerfile, Containerfile, Dockerfile.* and *.Dockerfile",
    matches: is_dockerfile,
};

/// Find mistakes in Dockerfiles for Windows, with fixes
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg lint Dockerfile\n  \
    wincimg lint Dockerfile --shell powershell --host-build 17763.973 \\\n      \
    --format sarif\n  \
    wincimg lint Dockerfile --base repo.mylan.k8s:8888/team/base:1.4\n  \
    wincimg lint Dockerfile --resolve\n  \
    wincimg lint . --fix --ignore floating-base\n  \
    wincimg lint --explain eaten-backslash\n\n\
    A comment \"# wincimg: ignore=RULE reason\" above an instruction, or at the top, ignores a rule.\n\n\
    Exit code 0: no errors. 1: at least one error; warnings do not count. 3: a Dockerfile cannot be read, or \
    there is none.")]
pub(super) struct Lint {
    /// Dockerfiles, folders with Dockerfiles, and patterns with * and ?; - reads stdin [required without --explain]
    #[arg(value_name = "DOCKERFILE", required_unless_present = "explain", add = complete::dockerfiles())]
    dockerfiles: Vec<PathBuf>,
    /// Take the shell and version from this base image: a reference, oci:DIR or docker-archive:FILE
    #[arg(long, value_name = "IMAGE", value_parser = parse_location, conflicts_with = "shell", add = complete::images())]
    base: Option<Location>,
    /// Shell that the base images set [default: known for Microsoft's and Docker's official images]
    #[arg(long, value_enum)]
    shell: Option<BaseShell>,
    /// Read the shells and versions of the base images from their registries
    #[arg(long, conflicts_with_all = ["shell", "base"])]
    resolve: bool,
    /// Build and revision of the host that the image is for, or its release, such as ltsc2022
    #[arg(long, value_name = "BUILD", value_parser = host_name, add = complete::builds())]
    host_build: Option<HostName>,
    /// Report only these rules, separated by commas (repeatable)
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = parse_rule)]
    select: Vec<&'static Rule>,
    /// Do not report these rules, separated by commas (repeatable)
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = parse_rule)]
    ignore: Vec<&'static Rule>,
    /// Write fixes that make a line do what it says, and report what is left
    #[arg(long)]
    fix: bool,
    /// Write all fixes, also those that change what the image is
    #[arg(long)]
    unsafe_fixes: bool,
    /// Print the documentation of a rule, or the list of rules: all
    #[arg(long, value_name = "RULE", value_parser = parse_explained, conflicts_with_all = ["dockerfiles", "format"])]
    explain: Option<ExplainedRules>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: LintFormat,
    #[command(flatten)]
    registry: RegistryArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LintFormat {
    Text,
    Json,
    Sarif,
    /// Annotations of GitHub Actions
    Github,
    /// Code Quality of GitLab
    Gitlab,
}

fn parse_rule(name: &str) -> Result<&'static Rule, String> {
    // A list may have spaces after its commas.
    Rule::find(name.trim())
}

/// The rules to explain: one, or all.
type ExplainedRules = &'static [Rule];

fn parse_explained(name: &str) -> Result<ExplainedRules, String> {
    match name {
        "all" => Ok(&RULES[..]),
        name => parse_rule(name).map(std::slice::from_ref),
    }
}

impl Lint {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        if let Some(rules) = self.explain {
            write_result(None, |out| explain::write(rules, out))?;
            return Ok(CommandOutcome::Yes);
        }
        let paths = named_files::find(&self.dockerfiles, &DOCKERFILES)?;
        if self.fixes().is_some() && paths.iter().any(|path| input::is_stdin(&path.path)) {
            let problem = "--fix cannot write stdin";
            return Err(Failure::usage(problem).hint("give the name of a file"));
        }
        let (mut texts, unread) = read_all(session, &paths)?;
        let options = self.options(session, &texts)?;
        let fixes = self.fix_files(&mut texts, &options)?;
        let results = in_parallel(&texts, |(file, text)| {
            let path = Path::new(file);
            let options = LintOptions {
                file: (!input::is_stdin(path)).then(|| path.to_owned()),
                ..options.clone()
            };
            let mut result = lint(text, &options);
            result.findings.retain(|finding| self.selects(finding));
            let linted = LintedFile {
                file: file.clone(),
                text: text.clone(),
                findings: result.findings,
            };
            (linted, result.alternatives)
        });
        let (linted, offers): (Vec<LintedFile>, Vec<Vec<RecipeAlternative>>) =
            results.into_iter().unzip();
        if fixes > 0 {
            session.note(format_args!("{} written", count(fixes, "fix")));
        }
        write_result(None, |out| match self.format {
            LintFormat::Text => write_text(&linted, out),
            LintFormat::Json => write_lint_json(&linted, out),
            LintFormat::Sarif => write_lint_sarif(&linted, out),
            LintFormat::Github => write_github(&annotations_of(&linted), out),
            LintFormat::Gitlab => write_gitlab(&annotations_of(&linted), out),
        })?;
        let errors = summarize(session, &linted);
        for (file, offers) in linted.iter().zip(&offers) {
            for offer in offers {
                let (file, key, lines) = (&file.file, offer.key, on_lines(&offer.lines));
                session.note(format_args!(
                    "{file}: a recipe's {key} can replace {lines} without Windows"
                ));
            }
        }
        conclude(errors, unread, session)
    }

    fn fixes(&self) -> Option<FixSelection> {
        match (self.fix, self.unsafe_fixes) {
            (_, true) => Some(FixSelection::All),
            (true, false) => Some(FixSelection::Safe),
            (false, false) => None,
        }
    }

    fn selects(&self, finding: &LintFinding) -> bool {
        let is_selected = self.select.is_empty() || self.select.contains(&finding.rule);
        is_selected && !self.ignore.contains(&finding.rule)
    }

    /// Writes corrected files, and returns the number of corrections.
    fn fix_files(&self, texts: &mut [(String, String)], options: &LintOptions) -> Result<usize> {
        let Some(selection) = self.fixes() else {
            return Ok(0);
        };
        let mut fixes = 0;
        for (name, text) in texts {
            let is_wanted = |finding: &LintFinding| self.selects(finding);
            let (corrected, own) = fixed(text, options, selection, &is_wanted);
            if own > 0 {
                write_result(Some(Path::new(name)), |out| {
                    out.write_all(corrected.as_bytes())
                })?;
                *text = corrected;
                fixes += own;
            }
        }
        Ok(fixes)
    }

    /// Facts besides the texts; uses a registry only on request.
    fn options(&self, session: &Session, texts: &[(String, String)]) -> Result<LintOptions> {
        let host = self.host_build.as_ref();
        let host = host.map(|host| HostBuild::new(host.explained(session)));
        let mut options = LintOptions {
            shell: self.shell,
            host,
            ..LintOptions::default()
        };
        if self.base.is_none() && !self.resolve {
            return Ok(options);
        }
        let registry = self.registry.connect(session)?;
        if let Some(location) = &self.base {
            let facts = registry_args::run(base::facts(location, &registry, host))?;
            if !facts.is_windows {
                let problem = format!("{location} is not a Windows image");
                return Err(Failure::usage(problem)
                    .hint("set --base to the image in the Dockerfile's FROM"));
            }
            options.base = Some(facts);
            return Ok(options);
        }
        let images = texts.iter().flat_map(|(_, text)| base_images(text));
        let images: BTreeSet<String> = images.collect();
        options.bases = registry_args::run(async {
            let mut bases = HashMap::new();
            for image in images {
                let facts = match image.parse() {
                    Ok(location) => base::facts(&location, &registry, host).await,
                    Err(error) => Err(Failure::from(error)),
                };
                match facts {
                    Ok(facts) => {
                        bases.insert(image, facts);
                    }
                    Err(failure) => session.warn(format_args!(
                        "cannot read {image}, so only its name is used: {}",
                        failure.in_one_line()
                    )),
                }
            }
            Ok(bases)
        })?;
        Ok(options)
    }
}

/// Files without a text to check.
#[derive(Default)]
struct UnreadFiles {
    named: Vec<Failure>,
    /// Number of Dockerfiles in folders.
    in_folders: usize,
}

/// Texts of files with their names, and the files that cannot be read; an error if there are only
/// such. Files in folders that are not Dockerfiles are skipped.
fn read_all(session: &Session, paths: &[FilePath]) -> Result<(Vec<(String, String)>, UnreadFiles)> {
    let mut texts = Vec::new();
    let mut unread = UnreadFiles::default();
    for (path, text) in paths
        .iter()
        .zip(in_parallel(paths, |path| read(&path.path)))
    {
        match text {
            Ok(text) => texts.push((path.path.display().to_string(), text)),
            Err(found) if path.is_found => {
                unread.in_folders += usize::from(found.is_dockerfile);
                session.warn(format_args!("skipped: {}", found.failure.in_one_line()));
            }
            Err(named) => unread.named.push(named.failure),
        }
    }
    if texts.is_empty() {
        let named = std::mem::take(&mut unread.named);
        if let Some(last) = Failure::report_all_but_last(named, session.colour) {
            return Err(last);
        }
        if unread.in_folders == 0 {
            let problem = Problem::new("file/io", "no Dockerfile to check");
            return Err(problem.hint(DOCKERFILES.hint).into());
        }
    }
    Ok((texts, unread))
}

/// The outcome, after the findings: errors in files count before files that cannot be read.
fn conclude(errors: usize, unread: UnreadFiles, session: &Session) -> Result<CommandOutcome> {
    let last = Failure::report_all_but_last(unread.named, session.colour);
    if errors > 0 {
        if let Some(last) = last {
            last.report(session.colour);
        }
        return Ok(CommandOutcome::No);
    }
    if let Some(last) = last {
        return Err(last);
    }
    if unread.in_folders > 0 {
        let files = count(unread.in_folders, "Dockerfile");
        let problem = format!("{files} could not be read");
        let them = if unread.in_folders == 1 { "it" } else { "them" };
        let hint = format!("correct {them}, or name the files to check in place of their folder");
        return Err(Failure::operation(problem).hint(hint));
    }
    Ok(CommandOutcome::Yes)
}

fn write_text(linted: &[LintedFile], out: &mut dyn Write) -> io::Result<()> {
    let colour = colour_on(&io::stdout());
    let texts = in_parallel(linted, |file| {
        let mut text = Vec::new();
        write_lint_text(file, colour, &mut text).map(|()| text)
    });
    texts.into_iter().try_for_each(|text| out.write_all(&text?))
}

/// Notes the numbers of findings, and returns that of errors.
fn summarize(session: &Session, linted: &[LintedFile]) -> usize {
    let number = |severity: Severity| {
        let findings = linted.iter().flat_map(|file| &file.findings);
        findings
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let errors = number(Severity::Error);
    let notes = match number(Severity::Note) {
        0 => String::new(),
        notes => format!(", {}", count(notes, "note")),
    };
    session.note(format_args!(
        "{} and {}{notes} in {}",
        count(errors, "error"),
        count(number(Severity::Warning), "warning"),
        count(linted.len(), "file")
    ));
    errors
}

/// Results of a function for each item, in order, several at a time.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    // Small shares, as files differ in size and other processes take their part of a processor.
    let shares: Vec<&[T]> = items.chunks(16).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(share) = shares.get(index) else {
                return done;
            };
            done.push((index, share.iter().map(&work).collect::<Vec<R>>()));
        }
    };
    let mut done: Vec<(usize, Vec<R>)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads.min(shares.len()))
            .map(|_| scope.spawn(take))
            .collect();
        let joined = running.into_iter().map(|thread| match thread.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.flatten().collect()
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().flat_map(|(_, results)| results).collect()
}

/// A file without a text to check.
struct UnreadFile {
    failure: Failure,
    is_dockerfile: bool,
}

fn read(path: &Path) -> Result<String, UnreadFile> {
    let bytes = input::read_bytes(path).map_err(|failure| UnreadFile {
        failure,
        is_dockerfile: true,
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let problem = format!("{}: byte {at} is not UTF-8", path.display());
        let bytes = error.as_bytes();
        let is_utf16 = matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
        UnreadFile {
            failure: Failure::operation(problem).hint(NotUtf8::HINT),
            is_dockerfile: is_utf16 || has_from(&String::from_utf8_lossy(bytes)),
        }
    })?;
    check_kind(path, &text).map_err(|problem| UnreadFile {
        failure: problem.into(),
        is_dockerfile: false,
    })?;
    Ok(text)
}

/// Rejects text that is not a Dockerfile.
fn check_kind(path: &Path, text: &str) -> Result<(), Problem> {
    let name = input::name(path);
    let is_toml = path
        .extension()
        .is_some_and(|extension| extension == "toml")
        || begins_like_toml(text)
            && toml::from_str::<toml::Table>(text).is_ok_and(|table| !table.is_empty());
    if is_toml {
        let problem = format!("{name} is not a Dockerfile: it is TOML");
        return Err(Problem::new("dockerfile/invalid", problem).hint(format!(
            "check a recipe with: {}",
            command_line(&["wincimg", "build", &path.to_string_lossy(), "--dry-run"])
        )));
    }
    if !has_from(text) {
        // Printing no findings would look like a pass.
        let problem = format!("{name} is not a Dockerfile: it has no FROM");
        return Err(Problem::new("dockerfile/invalid", problem)
            .hint("check the file's name and the spelling of FROM"));
    }
    Ok(())
}

/// Returns true if the first line after comments is a table or a key instead of an instruction.
fn begins_like_toml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| {
        let key = line.split_once('=').map(|(key, _)| key.trim());
        line.starts_with('[') || key.is_some_and(|key| !key.contains(char::is_whitespace))
    })
}

/// `line 4`, or `lines 4, 7 and 9`.
fn on_lines(lines: &[usize]) -> String {
    let numbers: Vec<String> = lines.iter().map(ToString::to_string).collect();
    match numbers.split_last() {
        Some((last, [])) => format!("line {last}"),
        Some((last, others)) => format!("lines {} and {last}", others.join(", ")),
        None => String::new(),
    }
}
