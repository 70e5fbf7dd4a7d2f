//! `wincimg image inspect`: shows an image and the registry changes of its layers.

mod documents;
mod package;
mod text;
mod waste;

use std::io::{IsTerminal as _, Read as _};

use clap::ArgAction;
use wincimg_inspect::provenance::SbomFormat;
use wincimg_inspect::{
    ImageFacts, InspectOptions, Inspection, LayerReadStatus, ReadDepth, RegistryFormat,
    RegistryReport, SMALL_LAYER, SkipReason, UnclosedHive, inspect,
};
use wincimg_oci::store::LocationError;
use wincimg_registry::regfile::to_utf16;

use super::output::write_document;
use crate::cli::prelude::*;

/// Show an image's version, layers, entry point and registry changes
///
/// Shows all Windows images of an index, unless --platform selects others.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image inspect repo.mylan.k8s:8888/pause:10.0.17763.973\n  \
    wincimg image inspect oci:./pause --registry\n  \
    wincimg image inspect repo.mylan.k8s:8888/pause \\\n      \
    --platform windows/amd64:17763 --format reg > pause.reg\n  \
    wincimg image inspect repo.mylan.k8s:8888/web:1.4 --sbom=cyclonedx > web.json\n  \
    wincimg image inspect oci:./web --max-waste 5%\n  \
    wincimg image inspect setup.msi 'INSTALLDIR=C:\\app'\n\n\
    Shutdown times and registry changes are read from the layers. The bottom layer is Windows itself\n\
    and only read for --merged. Layers above it of up to 64 MiB are read completely, which verifies\n\
    their digests; of larger ones only the first 4 MiB, where wincimg writes hives. Skipped layers\n\
    are reported; --layers all reads all above the bottom one.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct Inspect {
    /// Image: a reference, oci:DIR[:TAG], docker-archive:FILE[:NAME], docker-daemon:NAME; or a
    /// FILE.msi
    ///
    /// A FILE.msi is shown as `msiexec /i FILE.msi /qn` would install it.
    #[arg(value_name = "IMAGE", value_parser = parse_subject, add = complete::images())]
    subject: Subject,
    /// Property of the installation of a FILE.msi, such as INSTALLDIR=C:\app
    #[arg(value_name = "NAME=VALUE")]
    properties: Vec<String>,
    /// Select the images of this platform from an index (repeatable) [default: all for Windows]
    #[arg(long, value_name = "OS/ARCH[:OSVERSION]")]
    platform: Vec<PlatformFilter>,
    /// Show all registry changes by layer
    // Other commands have a flag of this name for a host, which a file of defaults may set for all
    // commands; it has no meaning here.
    #[arg(long, action = ArgAction::SetTrue, value_parser = is_true)]
    registry: bool,
    /// Show the registry as a container sees it, with all changes applied to the base
    #[arg(long)]
    merged: bool,
    /// Layers to read; the bottom one is read for --merged alone
    #[arg(long, value_enum, default_value = "small")]
    layers: ReadDepth,
    /// Show files that a later layer deletes or writes again
    #[arg(long)]
    waste: bool,
    /// Exit with 1 if more than this is wasted, such as 5% or 20MiB (implies --waste)
    #[arg(long, value_name = "SIZE")]
    max_waste: Option<waste::WasteLimit>,
    /// Print the attached SBOM [default: the first]
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with_all = ["registry", "merged", "provenance", "waste", "max_waste"]
    )]
    #[expect(clippy::option_option, reason = "the form that clap wants")]
    sbom: Option<Option<SbomFormat>>,
    /// Print the attached provenance
    #[arg(long, conflicts_with_all = ["registry", "merged", "waste", "max_waste"])]
    provenance: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: InspectFormat,
    #[command(flatten)]
    connection: SourceArgs,
}

#[derive(Debug, Clone)]
enum Subject {
    Image(Box<ImageSource>),
    /// A Windows Installer package.
    Package(PathBuf),
}

fn parse_subject(text: &str) -> Result<Subject, LocationError> {
    let is_package = Path::new(text)
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("msi"));
    if (is_package || is_installer(Path::new(text))) && !text.contains("://") {
        return Ok(Subject::Package(text.into()));
    }
    parse_source(text).map(|image| Subject::Image(Box::new(image)))
}

/// Returns true for a file that begins as programs and packages do, and images do not.
fn is_installer(file: &Path) -> bool {
    let mut start = [0; 8];
    let read = files::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && (start.starts_with(b"MZ") || start == *b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InspectFormat {
    /// Human-readable text
    Text,
    /// JSON
    Json,
    /// Registry changes as a .reg file
    Reg,
}

#[expect(clippy::unnecessary_wraps, reason = "the form that clap wants")]
pub(super) fn is_true(text: &str) -> Result<bool, String> {
    Ok(text == "true")
}

impl Inspect {
    /// Local file or folder with the name of an image in a registry.
    fn on_disk(image: &ImageSource) -> Option<Location> {
        let Some(Location::Registry(reference)) = image.stored() else {
            return None;
        };
        let name = reference.repository().strip_prefix("library/")?;
        let path = PathBuf::from(name);
        if reference.registry() != "docker.io" {
            None
        } else if path.join("oci-layout").is_file() {
            Some(Location::Layout {
                dir: path,
                tag: None,
            })
        } else if path.is_file() {
            Some(Location::Archive {
                file: path,
                name: None,
            })
        } else {
            None
        }
    }

    /// Error for an argument after an image, which may be the form of --sbom.
    fn unexpected(&self, argument: &str) -> Failure {
        let problem = format!(
            "unexpected argument {}: properties are for a FILE.msi",
            QuotedText(argument)
        );
        let is_form = SbomFormat::from_str(argument, false).is_ok();
        let hint = match self.sbom {
            Some(None) if is_form => format!("write --sbom={argument}"),
            _ => "inspect one image at a time".to_owned(),
        };
        Failure::usage(problem).hint(hint)
    }

    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let image = match &self.subject {
            Subject::Package(file) => {
                return package::inspect(file, &self.properties, self.format);
            }
            Subject::Image(image) => image,
        };
        if let Some(property) = self.properties.first() {
            return Err(self.unexpected(property));
        }
        let wanted = self.wanted()?;
        if let Some(place) = Self::on_disk(image) {
            session.note(format_args!(
                "using {image} from its registry; for the local one, type {place}"
            ));
        }
        let reader = self.connection.connect(session)?;
        if let Some(kind) = self.document_wanted() {
            return self.print_document(image, kind, &reader, session);
        }
        let (inspection, place) = registry_args::run(async {
            let source = reader.open(image).await?;
            let mut inspection =
                inspect(&source, image.tag_or_digest(), &wanted, &reader.progress).await?;
            if self.waste || self.max_waste.is_some() {
                waste::add(&source, &mut inspection, &reader.progress).await?;
            }
            Ok((inspection, source.to_string()))
        })?;
        report_problems(image, &inspection, &place, session);
        match self.format {
            InspectFormat::Text => {
                write_result(None, |out| text::write(image, &inspection, out))?;
            }
            InspectFormat::Json => {
                let answer = NamedInspection {
                    reference: image.to_string(),
                    inspection: &inspection,
                };
                write_result(None, |out| write_json(&answer, out))?;
            }
            InspectFormat::Reg => {
                let file = registry_file(&inspection)?;
                write_document(&encoded(file))?;
            }
        }
        let exceeded = |limit| waste::check(&inspection, limit, session);
        let is_over = self.max_waste.is_some_and(exceeded);
        match conclude(inspection, session)? {
            CommandOutcome::Yes if is_over => Ok(CommandOutcome::No),
            outcome => Ok(outcome),
        }
    }

    fn wanted(&self) -> Result<InspectOptions> {
        let form = match self.format {
            InspectFormat::Reg => Some(RegistryFormat::File),
            _ if self.registry || self.merged => Some(RegistryFormat::Changes),
            _ => None,
        };
        if form.is_some() && self.layers == ReadDepth::None {
            let problem = "cannot show the registry without reading layers";
            return Err(Failure::usage(problem).hint("remove --layers none"));
        }
        Ok(InspectOptions {
            platforms: self.platform.clone(),
            reach: self.layers,
            registry: form,
            over_base: self.merged,
        })
    }
}

/// Reports what the result leaves out, and the option that includes it.
fn report_problems(subject: &ImageSource, inspection: &Inspection, place: &str, session: &Session) {
    for image in &inspection.images {
        if !image.is_windows() {
            session.note(format_args!(
                "{} is for {}, which has no registry",
                subject,
                image.platform()
            ));
        }
        for (number, layer) in (1..).zip(&image.layers) {
            for hive in &layer.unclosed_hives {
                note_unclosed(number, hive, session);
            }
            for warning in &layer.warnings {
                session.warn(format_args!("layer {number}: {warning}"));
            }
            match layer.reading {
                LayerReadStatus::Skipped {
                    reason: SkipReason::Large,
                } => session.note(format_args!(
                    "skipped layer {number} ({}), which is larger than {} MiB and does not begin with \
                     hives: --layers all reads it",
                    layer.digest,
                    SMALL_LAYER >> 20
                )),
                LayerReadStatus::Skipped {
                    reason: SkipReason::ForeignBytes,
                } => session.note(format_args!(
                    "skipped layer {number} ({}), which is foreign: {place} does not have its bytes",
                    layer.digest
                )),
                _ => {}
            }
        }
    }
}

pub(super) fn note_unclosed(layer: usize, hive: &UnclosedHive, session: &Session) {
    let UnclosedHive { file, state } = hive;
    session.note(format_args!("{file} of layer {layer} was {state}"));
}

#[derive(Serialize)]
struct NamedInspection<'a> {
    reference: String,
    #[serde(flatten)]
    inspection: &'a Inspection,
}

fn registry_file(inspection: &Inspection) -> Result<&str> {
    match inspection.images.as_slice() {
        [
            ImageFacts {
                registry: Some(RegistryReport::File(file)),
                ..
            },
        ] => Ok(file),
        [_] => Err(Failure::usage(
            "the image is not for Windows and has no registry",
        )),
        images => Err(Failure::usage(format!(
            "--format reg requires one image: found {}",
            images.len()
        ))
        .hint("choose one with --platform windows/amd64:OSVERSION")),
    }
}

/// `regedit` reads ASCII without a mark; everything else requires UTF-16, except on a terminal.
fn encoded(file: &str) -> Vec<u8> {
    if file.is_ascii() || io::stdout().is_terminal() {
        file.as_bytes().to_vec()
    } else {
        to_utf16(file)
    }
}

/// Reports what could not be read, after the rest was shown.
fn conclude(inspection: Inspection, session: &Session) -> Result<CommandOutcome> {
    let mut failures = Vec::new();
    for image in inspection.images {
        let problems = image.layers.into_iter().flat_map(|layer| layer.problems);
        failures.extend(problems.map(Failure::from));
    }
    for other in inspection.others {
        if let Some(problem) = other.kind.into_problem() {
            let what = format!("cannot read {}, which the index lists", other.digest);
            failures.push(Failure::from(problem).context(what));
        }
    }
    let last = Failure::report_all_but_last(failures, session.colour);
    last.map_or(Ok(CommandOutcome::Yes), Err)
}
