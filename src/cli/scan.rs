//! `wincimg image scan`: lists the security updates that an image's Windows lacks.

use jiff::civil::Date;
use wincimg_catalog::{SecurityFix, SecurityUpdates, Severity};
use wincimg_cluster::rollout::is_host_process;
use wincimg_http::{HttpClient, RetryPolicy, file_error};
use wincimg_inspect::contains_windows;
use wincimg_inspect::provenance::OperatingSystem;
use wincimg_inspect::vex::{VexDocument, VexStatus, VexSubject, settling_statement};
use wincimg_oci::document::{Digest, Image};
use wincimg_windows::missing_fixes::TableAge;
use wincimg_windows::release::support_ended;
use wincimg_windows::update::Updates;

use super::contents::all_images_in;
use super::security;
use crate::cli::prelude::*;
use crate::report::{age_in_words, write_scan_sarif};

/// Address of Microsoft's documents; the month follows.
const DOCUMENTS: &str = "https://api.msrc.microsoft.com/cvrf/v3.0/cvrf/";
/// More than the bottom layer of an image without Windows has.
const SMALL_BOTTOM: u64 = 1 << 20;
/// Limit on the size of a VEX document.
const LARGEST_VEX: u64 = 64 << 20;

/// List the security updates that an image's Windows lacks
///
/// Compares the Windows version of an image with Microsoft's monthly security documents. --msrc reads
/// documents into a table that later runs use offline; its age is always shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image scan repo.mylan.k8s:8888/web:1.4 \\\n      \
    --msrc https://api.msrc.microsoft.com/cvrf/v3.0/cvrf/2026-Sep\n  \
    wincimg image scan oci:./web-1.4 --fail-on critical --ignore CVE-2026-1234\n  \
    wincimg image scan oci:./web-1.4 --vex web.vex.json \\\n      \
    --format sarif -o web.sarif\n\n\
    Packages of languages are not compared: hand the SBOM of `wincimg image sbom` to grype or trivy.\n\n\
    Exit code 1: with --fail-on, a vulnerability reaches it or an image cannot be judged.")]
pub(super) struct Scan {
    /// Images: a reference, oci:DIR[:TAG], docker-archive:FILE[:NAME] or docker-daemon:NAME
    #[arg(value_name = "IMAGE", required = true, value_parser = parse_source, add = complete::images())]
    images: Vec<ImageSource>,
    /// Add a CVRF document in JSON or XML to the table (repeatable)
    #[arg(long, value_name = "FILE|URL")]
    msrc: Vec<String>,
    /// Exit with 1 for vulnerabilities of this severity and above or without a rating, and for images
    /// that cannot be judged
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Ignore this vulnerability (repeatable)
    #[arg(long, value_name = "CVE")]
    ignore: Vec<String>,
    /// Ignore vulnerabilities that an OpenVEX or CSAF 2.0 document in JSON says are fixed or do not
    /// affect the image (repeatable)
    #[arg(long, value_name = "FILE")]
    vex: Vec<PathBuf>,
    /// Select the images of this platform from an index (repeatable) [default: all for Windows]
    #[arg(long, value_name = "OS/ARCH[:OSVERSION]")]
    platform: Vec<PlatformFilter>,
    /// Output format [default: that of the output's name, or text]
    #[arg(long, value_enum)]
    format: Option<ScanFormat>,
    /// Write to this file; its name determines the format (.json, .sarif)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    connection: SourceArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScanFormat {
    /// Table
    Text,
    /// JSON
    Json,
    /// SARIF
    Sarif,
}

/// Threshold of the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Low,
    Moderate,
    Important,
    Critical,
    /// Exploited, of any severity
    Exploited,
}

impl FailOn {
    fn is_reached(self, fix: &SecurityFix) -> bool {
        let least = match self {
            Self::Exploited => return fix.exploited,
            Self::Low => Severity::Low,
            Self::Moderate => Severity::Moderate,
            Self::Important => Severity::Important,
            Self::Critical => Severity::Critical,
        };
        // What is not rated may be critical.
        fix.severity >= least || fix.severity == Severity::Unrated
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct ScanReport {
    table: TableAge,
    pub(crate) images: Vec<ScannedImage>,
    /// True if --fail-on is reached, or an image cannot be judged by it.
    failed: bool,
}

/// An image and the fixes that it lacks.
#[derive(Debug, Serialize)]
pub(crate) struct ScannedImage {
    pub(crate) reference: String,
    /// Path of the image in reports about files.
    #[serde(skip)]
    pub(crate) path: String,
    digest: Digest,
    pub(crate) platform: String,
    pub(crate) version: Option<WindowsVersion>,
    #[serde(skip)]
    os_version: Option<String>,
    /// False if it contains no Windows that could lack updates, as an image for `HostProcess`
    /// containers.
    windows: bool,
    /// False if the table has nothing about its build, also since the end of its support, or its
    /// revision is not known.
    known: bool,
    /// Last day of support of its Windows, if it is before the newest document.
    #[serde(skip)]
    support_ended: Option<Date>,
    /// Number of missing fixes by severity.
    summary: BTreeMap<&'static str, usize>,
    /// What the table does not have of the time since its last update.
    #[serde(skip)]
    gap: Option<String>,
    exploited: usize,
    pub(crate) missing: Vec<SecurityFix>,
    /// Missing fixes that are ignored; the numbers do not include them.
    pub(crate) ignored: Vec<IgnoredFix>,
}

impl ScannedImage {
    /// Why it is not known what it lacks; none if it is known.
    pub(crate) fn why_unknown(&self) -> Option<String> {
        if self.known || !self.windows {
            return None;
        }
        Some(match (self.version, self.os_version.as_deref()) {
            (Some(WindowsVersion { revision: None, .. }), Some(text)) => {
                format!("its os.version {text:?} has no revision")
            }
            (Some(_), _) => match self.support_ended {
                Some(end) => format!("support of its Windows ended on {end}"),
                None => "the table has no updates for this build".to_owned(),
            },
            (None, None | Some("")) => "the image has no os.version".to_owned(),
            (None, Some(text)) => format!("its os.version {text:?} is not a version of Windows"),
        })
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct IgnoredFix {
    #[serde(flatten)]
    pub(crate) fix: SecurityFix,
    /// Status by a VEX document; none for --ignore.
    status: Option<VexStatus>,
    /// Justification in that document.
    reason: Option<String>,
    /// File of that document.
    vex: Option<String>,
}

impl IgnoredFix {
    fn by_flag(fix: &SecurityFix) -> Self {
        Self {
            fix: fix.clone(),
            status: None,
            reason: None,
            vex: None,
        }
    }

    /// `not affected, says web.vex.json: component_not_present`.
    pub(crate) fn why(&self) -> String {
        let Some((status, vex)) = self.status.zip(self.vex.as_ref()) else {
            return "--ignore".to_owned();
        };
        let reason = self.reason.as_ref();
        let reason = reason.map(|reason| format!(": {reason}"));
        format!("{status}, says {vex}{}", reason.unwrap_or_default())
    }
}

fn read_vex(path: &Path) -> Result<VexDocument> {
    let bytes = files::read(path, LARGEST_VEX).map_err(file_error("read", path))?;
    let document = VexDocument::read(&bytes).map_err(|problem| {
        let what = format!("cannot use {} as VEX", path.display());
        Problem::context(what, problem)
    })?;
    Ok(document)
}

impl Scan {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let path = security::table_path(session).ok_or_else(|| {
            Failure::operation("no cache folder for the table of security updates")
                .hint("set one with --cache-dir DIR")
        })?;
        let vex = self.vex.iter().map(|path| read_vex(path));
        let vex: Vec<VexDocument> = vex.collect::<Result<_, _>>()?;
        let reader = self.connection.connect(session)?;
        let report = registry_args::run(async {
            let table = self.table(&path, &reader.progress, session).await?;
            let age = age_of(&table)?;
            let mut images = Vec::new();
            for location in &self.images {
                let source = reader.open(location).await?;
                let document = source.resolve(location.tag_or_digest()).await?;
                let digest = document.digest().clone();
                let found = all_images_in(&source, location, document, &self.platform);
                for image in found.await? {
                    let windows = !surely_lacks_windows(&source, &image).await;
                    let names = (location, &digest);
                    images.push(self.scan((&table, &age), &vex, names, &image, windows));
                }
            }
            Ok(self.report(age, images))
        })?;
        let verdict = match self.fail_on {
            Some(_) => ", so it fails --fail-on",
            None => "",
        };
        for image in &report.images {
            let unknown = image.why_unknown().map(|why| format!("{why}{verdict}"));
            if let Some(why) = unknown.as_ref().or(image.gap.as_ref()) {
                let (reference, platform) = (&image.reference, &image.platform);
                session.warn(format_args!("{reference} ({platform}): {why}"));
            }
        }
        let format = format_of(self.format, self.output.as_deref()).unwrap_or(ScanFormat::Text);
        write_result(self.output.as_deref(), |out| match format {
            ScanFormat::Text => write_text(&report, self.output.is_none(), out),
            ScanFormat::Json => write_json(&report, out),
            ScanFormat::Sarif => write_scan_sarif(&report, out),
        })?;
        if format != ScanFormat::Text {
            session.note(age_with_hint(&report.table));
        }
        Ok((!report.failed).into())
    }

    /// The table with the named documents, which are kept.
    async fn table(
        &self,
        path: &Path,
        progress: &Arc<dyn Progress>,
        session: &Session,
    ) -> Result<SecurityUpdates> {
        let kept = || {
            SecurityUpdates::load(path).unwrap_or_else(|error| {
                session.warn(format_args!(
                    "{}; using only the documents of --msrc, which replace it",
                    error_chain(error.as_ref())
                ));
                SecurityUpdates::default()
            })
        };
        if self.msrc.is_empty() {
            return Ok(kept());
        }
        let http = HttpClient::new(
            USER_AGENT,
            &self.connection.registry.insecure,
            RetryPolicy::default(),
            Arc::clone(progress),
        )?;
        let http = http.with_certificates(self.connection.registry.certificates.files()?);
        let mut new = SecurityUpdates::default();
        for place in &self.msrc {
            let fetched = new.fetch(&http, place).await;
            fetched.map_err(|error| Failure::from(error).hint_if(month_hint(place)))?;
        }
        let added = new.add_to(path, kept, progress.as_ref());
        added.map_err(|error| {
            Failure::from(error).hint("keep the table in a folder of yours: --cache-dir DIR")
        })
    }

    fn report(&self, table: TableAge, images: Vec<ScannedImage>) -> ScanReport {
        let mut missing = images.iter().flat_map(|image| &image.missing);
        // Who makes an image chooses its version, and must not pass by one that is not known.
        let failed = self.fail_on.is_some_and(|least| {
            missing.any(|fix| least.is_reached(fix))
                || images.iter().any(|image| image.why_unknown().is_some())
        });
        ScanReport {
            table,
            images,
            failed,
        }
    }

    fn scan(
        &self,
        (table, age): (&SecurityUpdates, &TableAge),
        vex: &[VexDocument],
        (location, digest): (&ImageSource, &Digest),
        image: &Image,
        windows: bool,
    ) -> ScannedImage {
        let config = image.config();
        let version = config.os_version.as_deref();
        let version = version.and_then(|text| text.parse::<WindowsVersion>().ok());
        let system = version.map(OperatingSystem::from_version);
        let lacking = version.map(|version| security::missing(table, version));
        let name = location.document_name();
        let product = VexSubject {
            name: &name,
            tag: location.location.tag(),
            digests: vec![digest.as_ref(), image.digest().as_ref()],
            architecture: &config.architecture,
            cpe: system.as_ref().and_then(|system| system.cpe.as_deref()),
        };
        let (mut missing, mut ignored) = (Vec::new(), Vec::new());
        for fix in lacking.unwrap_or_default() {
            match self.ignored(fix, vex, &product) {
                Some(reason) => ignored.push(reason),
                None => missing.push(fix.clone()),
            }
        }
        let mut summary = BTreeMap::from(Severity::ALL.map(|severity| (severity.name(), 0)));
        for fix in &missing {
            *summary.entry(fix.severity.name()).or_default() += 1;
        }
        ScannedImage {
            reference: location.to_string(),
            path: location.path(),
            digest: image.digest().clone(),
            platform: config.platform().to_string(),
            version,
            os_version: config.os_version.clone(),
            windows,
            known: version.is_some_and(|version| table.covers(version, age.released)),
            support_ended: version.and_then(|it| support_ended(it.build, age.released)),
            summary,
            gap: version.and_then(|version| gap(table, age, version)),
            exploited: missing.iter().filter(|fix| fix.exploited).count(),
            missing,
            ignored,
        }
    }

    fn ignored(
        &self,
        fix: &SecurityFix,
        vex: &[VexDocument],
        subject: &VexSubject<'_>,
    ) -> Option<IgnoredFix> {
        let mut named = self.ignore.iter();
        if named.any(|cve| cve.eq_ignore_ascii_case(&fix.cve)) {
            return Some(IgnoredFix::by_flag(fix));
        }
        let (number, statement) = settling_statement(vex.iter(), &fix.cve, subject)?;
        Some(IgnoredFix {
            status: Some(statement.status),
            reason: statement.reason.clone(),
            vex: Some(self.vex[number].display().to_string()),
            ..IgnoredFix::by_flag(fix)
        })
    }
}

/// The age of a table with documents.
fn age_of(table: &SecurityUpdates) -> Result<TableAge> {
    table.age(Zoned::now().date()).ok_or_else(|| {
        let hint = format!(
            "name Microsoft's documents, or copies, one for each month since the image's base, such as \
             --msrc {DOCUMENTS}2026-Sep"
        );
        let problem = Problem::new("updates/table", "no security updates are known");
        problem.hint(hint).into()
    })
}

/// `the table has 1 of the 74 months since its last update (2020-01): more may be missing`.
fn gap(table: &SecurityUpdates, age: &TableAge, version: WindowsVersion) -> Option<String> {
    let last = Updates::global().contained_in(version)?.date;
    let (known, all) = table.months_since(last, age.released);
    let last = last.strftime("%Y-%m");
    (known < all).then(|| {
        format!(
            "the table has {known} of the {all} months since its last update ({last}): more may be \
             missing"
        )
    })
}

/// `security updates as of 2026-Sep (2026-09-08), 80 days ago; add newer ones with …`.
fn age_with_hint(table: &TableAge) -> String {
    let age = age_in_words(table);
    format!("{age}; add newer ones with --msrc {DOCUMENTS}YYYY-MON")
}

/// Hint for the name of a month in place of its document.
fn month_hint(place: &str) -> Option<String> {
    let (year, month) = place.split_once('-')?;
    let is_month = year.len() == 4 && month.len() == 3 && !Path::new(place).exists();
    is_month
        .then(|| format!("for Microsoft's document of a month, write --msrc {DOCUMENTS}{place}"))
}

fn write_text(report: &ScanReport, may_colour: bool, out: &mut dyn Write) -> io::Result<()> {
    let is_coloured = may_colour && colour_on(&io::stdout());
    for image in &report.images {
        let title = format!("{} ({})", image.reference, image.platform);
        writeln!(out, "{}", paint(is_coloured, "1", UntrustedText(title)))?;
        for fix in &image.missing {
            let code = match fix.severity {
                Severity::Critical => "31",
                Severity::Important => "33",
                _ => "0",
            };
            let severity = format!("{:<9}", fix.severity.name());
            let severity = paint(is_coloured, code, severity);
            let kb = fix.kb.map(|kb| kb.to_string()).unwrap_or_default();
            let exploited = if fix.exploited { "exploited" } else { "" };
            writeln!(
                out,
                "  {:<16} {severity} {exploited:<9}  {:<12} {kb:<10} {}",
                UntrustedText(&fix.cve),
                fix.fixed_in,
                UntrustedText(&fix.title)
            )?;
        }
        for ignored in &image.ignored {
            let (cve, why) = (
                UntrustedText(&ignored.fix.cve),
                UntrustedText(ignored.why()),
            );
            writeln!(out, "  {cve:<16} ignored: {why}")?;
        }
        writeln!(out, "  {}", UntrustedText(counts(image)))?;
    }
    writeln!(out, "{}", age_with_hint(&report.table))
}

/// Returns true if an image for Windows contains none. It has no `os.version` then, but so may one
/// of Windows: its bottom layer decides.
async fn surely_lacks_windows(source: &Source, image: &Image) -> bool {
    let platform = image.config().platform();
    let Some(bottom) = image.manifest().layers.first() else {
        return false;
    };
    let os_version = platform.os_version.as_deref();
    is_host_process(&platform.os, os_version, Some(bottom.size))
        && contains_windows(source, image, SMALL_BOTTOM).await == Some(false)
}

/// `12 missing: 1 critical, 11 important; 2 exploited`.
fn counts(image: &ScannedImage) -> String {
    if !image.windows {
        return "contains no Windows".to_owned();
    }
    let why = image.why_unknown();
    let ignored = match image.ignored.len() {
        0 => String::new(),
        count => format!(" ({count} ignored)"),
    };
    if image.missing.is_empty() {
        return match why {
            Some(why) => format!("unknown: {why}"),
            None => format!("nothing missing{ignored}"),
        };
    }
    let others = why.map(|why| format!("; others unknown: {why}"));
    let others = others.unwrap_or_default();
    let names = Severity::ALL.into_iter().rev().map(Severity::name);
    let numbers = names.map(|name| (image.summary[name], name));
    let (total, severities) = (image.missing.len(), tally(numbers, "none"));
    let exploited = image.exploited;
    format!("{total} missing: {severities}; {exploited} exploited{ignored}{others}")
}
