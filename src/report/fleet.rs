//! Reports on a fleet of images, in every format.

use wincimg_engine::fleet::{
    BuildReport, FleetImageState, FleetReport, ImageReport, ReportedError,
};

use super::ReportFormat;
use super::html::{escaped, hash_of};
use super::markdown::{cell, write_limited, write_security};
use super::sarif;
use super::suites::{Failure, Outcome, TestCase, TestSuite, write_suites};
use crate::report::prelude::*;

const COLUMNS: [&str; 5] = ["Image", "Windows", "State", "Why", "Problem"];

/// GitHub's limit for comments is 65,536 characters.
const LIMIT: usize = 60_000;

/// `fleet.toml: 3 images, 9 builds: 8 current, 1 missing`.
fn headline(report: &FleetReport) -> String {
    let summary = &report.summary;
    let counts = [
        (summary.current, "current"),
        (summary.built, "built"),
        (summary.missing, "missing"),
        (summary.outdated, "outdated"),
        (summary.failed, "failed"),
    ];
    let builds = count(counts.iter().map(|(count, _)| count).sum(), "build");
    let counts = tally(counts, "nothing to do");
    let part = report.shard.as_ref();
    let part = part.map_or_else(String::new, |shard| format!(", shard {shard}"));
    let images = count(report.images.len(), "image");
    format!("{}{part}: {images}, {builds}: {counts}", report.file)
}

/// Returns true if an image is not simply up to date.
fn is_reportable(image: &ImageReport) -> bool {
    let mut builds = image.builds.iter();
    image.problem.is_some()
        || !image.warnings.is_empty()
        || builds.any(|build| build.state != FleetImageState::Current)
}

/// `17763.973`, or `any`.
fn host(build: &BuildReport) -> &str {
    build.host_build.as_deref().unwrap_or("any")
}

/// An image for one build of Windows; for none if it failed before its builds were known, or no
/// node needs it.
struct Row<'r> {
    image: &'r ImageReport,
    build: Option<&'r BuildReport>,
    /// None if no node needs it.
    state: Option<FleetImageState>,
    failure: Option<&'r ReportedError>,
}

impl<'r> Row<'r> {
    fn of(image: &'r ImageReport) -> impl Iterator<Item = Self> {
        let is_said = image.problem.is_some() || !image.warnings.is_empty();
        let alone = (image.builds.is_empty() && is_said).then_some(None);
        let builds = image.builds.iter().map(Some).chain(alone);
        builds.map(move |build| {
            let failed = image.problem.as_ref().map(|_| FleetImageState::Failed);
            let state = build.map_or(failed, |build| Some(build.state));
            let own = build.and_then(|build| build.problem.as_ref());
            let failure = own.or(image.problem.as_ref());
            Self {
                image,
                build,
                state,
                failure: failure.filter(|_| state.is_some_and(|state| !state.is_present())),
            }
        })
    }

    /// The row of a table with [`COLUMNS`], escaped.
    fn cells(&self, escape: fn(&str) -> String) -> [String; 5] {
        let failure = self.failure.iter();
        let problem = failure.flat_map(|it| [Some(&it.problem), it.hint.as_ref()]);
        [
            escape(&self.image.reference),
            escape(self.build.map_or("", host)),
            self.state_name().to_owned(),
            escape(self.why().unwrap_or_default()),
            joined(problem.flatten().map(|text| escape(text)), "<br>"),
        ]
    }

    fn state_name(&self) -> &'static str {
        self.state.map_or("skipped", FleetImageState::name)
    }

    fn why(&self) -> Option<&'r str> {
        match self.build {
            Some(build) => build.reason.as_deref(),
            None => self.image.warnings.first().map(String::as_str),
        }
    }

    /// Reason why the image is missing, and the hint.
    fn reason(&self) -> (String, Option<&'r str>) {
        if let Some(failure) = self.failure {
            return (failure.problem.clone(), failure.hint.as_deref());
        }
        let name = self.state_name();
        let why = self.why();
        let message = why.map_or_else(|| name.to_owned(), |why| format!("{name}: {why}"));
        (message, None)
    }
}

/// `nano:1-10.0.17763.973 (its base was published again)`.
fn details(build: &BuildReport) -> String {
    let mut parts: Vec<&str> = build.image.as_deref().into_iter().collect();
    let reason = build.reason.as_ref().map(|reason| format!("({reason})"));
    parts.extend(reason.as_deref());
    parts.join(" ")
}

pub(crate) fn write_fleet(
    report: &FleetReport,
    format: ReportFormat,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        ReportFormat::Text => write_text(report, out),
        ReportFormat::Json => write_pretty(out, report),
        ReportFormat::Markdown => write_markdown(report, out),
        ReportFormat::Junit => write_junit(report, out),
        ReportFormat::Sarif => write_sarif(report, out),
        ReportFormat::Html => write_html(report, out),
    }
}

/// Text: the number of images, and each image that is not simply up to date.
fn write_text(report: &FleetReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", UntrustedText(headline(report)))?;
    for image in report.images.iter().filter(|it| is_reportable(it)) {
        writeln!(out, "\n{}", UntrustedText(&image.reference))?;
        for build in &image.builds {
            let (host, state, details) = (host(build), build.state.name(), details(build));
            let line = format!("  {host:<12} {state:<9} {details}");
            writeln!(out, "{}", UntrustedText(line.trim_end()))?;
            if let Some(failure) = &build.problem {
                write_failure(failure, "    ", out)?;
            }
        }
        if let Some(failure) = &image.problem {
            write_failure(failure, "  ", out)?;
        }
        for warning in &image.warnings {
            writeln!(out, "  warning: {}", UntrustedText(warning))?;
        }
    }
    if let Some(missing) = &report.missing_fixes {
        writeln!(out)?;
        for line in security_lines(missing) {
            writeln!(out, "{}", UntrustedText(line))?;
        }
    }
    Ok(())
}

fn write_failure(failure: &ReportedError, indent: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{indent}error: {}", UntrustedText(&failure.problem))?;
    match &failure.hint {
        Some(hint) => writeln!(out, "{indent}hint: {}", UntrustedText(hint)),
        None => Ok(()),
    }
}

/// Markdown for a comment of a pull request: a table of images that are not simply up to date.
fn write_markdown(report: &FleetReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "### {}", cell(&headline(report)))?;
    if let Some(missing) = &report.missing_fixes {
        write_security(missing, &mut *out)?;
    }
    let images = report.images.iter().filter(|it| is_reportable(it));
    let rows = images.flat_map(Row::of);
    let rows: Vec<String> = rows
        .map(|row| format!("| {} |\n", row.cells(cell).join(" | ")))
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    let rule = " --- |".repeat(COLUMNS.len());
    writeln!(out, "\n| {} |\n|{rule}", COLUMNS.join(" | "))?;
    write_limited(rows.into_iter(), LIMIT, "`--format json`", &mut &mut *out).map(drop)
}

/// JUnit XML: a suite for each image, a case for each build of Windows.
fn write_junit(report: &FleetReport, out: &mut dyn Write) -> io::Result<()> {
    let suites = report.images.iter().map(|image| {
        let name = escape_untrusted(&image.reference);
        let cases = Row::of(image).map(|row| {
            let host = row.build.map(|build| escape_untrusted(host(build)));
            let host = host.map_or_else(String::new, |host| format!(" for {host}"));
            case(format!("{name}{host}"), &row)
        });
        let cases = cases.collect();
        TestSuite { name, cases }
    });
    write_suites("wincimg fleet", &suites.collect::<Vec<_>>(), out)
}

fn case(title: String, row: &Row<'_>) -> TestCase {
    let outcome = match row.state {
        Some(FleetImageState::Current | FleetImageState::Built) => None,
        Some(FleetImageState::Missing | FleetImageState::Outdated) => Some(Outcome::Failure),
        Some(FleetImageState::Failed) => Some(Outcome::Error),
        None => Some(Outcome::Skipped),
    };
    let failure = outcome.map(|outcome| {
        let (message, hint) = row.reason();
        let message = escape_untrusted(&message);
        Failure {
            outcome,
            rule: row.state.map(FleetImageState::name),
            description: hint.map(|hint| format!("{message}\nfix: {}", escape_untrusted(hint))),
            message,
        }
    });
    TestCase {
        name: title,
        class: Some("wincimg.fleet"),
        failure,
        output: None,
    }
}

/// SARIF: a result for each missing image, at its line of the fleet's file.
fn write_sarif(report: &FleetReport, out: &mut dyn Write) -> io::Result<()> {
    let rows = report.images.iter().flat_map(Row::of);
    let is_missing = |row: &Row<'_>| row.state.is_some_and(|state| !state.is_present());
    let results = rows.filter(is_missing).map(|row| {
        let (message, hint) = row.reason();
        let host = row.build.map(|build| format!(" for {}", host(build)));
        let host = host.unwrap_or_default();
        let hint = hint.map_or_else(String::new, |hint| format!(". {hint}"));
        let (image, state) = (row.image, row.state_name());
        sarif::Result {
            rule: state,
            level: "error",
            message: format!("{}{host}: {message}{hint}", image.reference),
            place: Some(SourceLocation {
                file: report.file.clone(),
                line: image.line,
            }),
            subject: Some(image.reference.clone()),
            fingerprint: Some(format!("{state}|{}{host}", image.reference)),
            ..sarif::Result::default()
        }
    });
    let rules = [
        (FleetImageState::Missing, "the image does not exist"),
        (FleetImageState::Outdated, "the image is outdated"),
        (
            FleetImageState::Failed,
            "the image could not be built or inspected",
        ),
    ];
    let rules = rules.map(|(state, summary)| (state.name(), summary.to_owned()));
    sarif::write("wincimg fleet", &rules, results, out).map(drop)
}

/// Style of the page; only content with its digest is applied.
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem;color:#1b1b1b;background:#fff}\
    table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;\
    border-bottom:1px solid #ccc;vertical-align:top}th{position:sticky;top:0;background:#fff}\
    .no{color:#a40000;font-weight:600}.new{color:#00529b;font-weight:600}\
    @media(prefers-color-scheme:dark){body,th{background:#1b1b1b;color:#eee}.no{color:#ff8a80}\
    .new{color:#82b1ff}}";

/// HTML in one file that fetches nothing: every image for every build.
fn write_html(report: &FleetReport, out: &mut dyn Write) -> io::Result<()> {
    let headline = escaped(&escape_untrusted(headline(report)));
    let policy = format!("default-src 'none'; style-src '{}'", hash_of(STYLE));
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{headline}</title>\n\
         <style>{STYLE}</style>\n<h1>{headline}</h1>\n<table>\n<thead><tr><th>{}</thead>\n<tbody>",
        COLUMNS.join("<th>")
    )?;
    for row in report.images.iter().flat_map(Row::of) {
        write_row(&row, out)?;
    }
    writeln!(out, "</tbody>\n</table>")?;
    for line in report.missing_fixes.iter().flat_map(security_lines) {
        writeln!(out, "<p>{}", page_text(&line))?;
    }
    writeln!(out, "</html>")
}

fn write_row(row: &Row<'_>, out: &mut dyn Write) -> io::Result<()> {
    let class = match row.state {
        None | Some(FleetImageState::Current) => "",
        Some(FleetImageState::Built) => " class=\"new\"",
        Some(FleetImageState::Missing | FleetImageState::Outdated | FleetImageState::Failed) => {
            " class=\"no\""
        }
    };
    let [image, host, state, why, problem] = row.cells(page_text);
    writeln!(
        out,
        "<tr><td>{image}<td>{host}<td{class}>{state}<td>{why}<td>{problem}"
    )
}

fn page_text(text: &str) -> String {
    escaped(&escape_untrusted(text))
}
