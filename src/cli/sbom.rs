//! `wincimg image sbom`: lists the packages of any Windows image, or writes its SBOM.

use wincimg_common::json::LazyList;
use wincimg_inspect::contents::display_path;
use wincimg_inspect::provenance::{
    Inventory, InventoryPackage, OperatingSystem, SbomFormat, read_inventory, write_sbom,
};
use wincimg_oci::document::Digest;

use super::contents::{only_image, report_foreign};
use super::document_args::TOOL;
use crate::cli::prelude::*;

/// List the packages of any Windows image, or write its SBOM
///
/// Finds packages of npm, NuGet, Go, Python and Java, .NET assemblies, programs by their version
/// resource, and programs that installers registered. Reads the layers above Windows itself, whose
/// version and last update are in the result.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image sbom repo.mylan.k8s:8888/web:1.4\n  \
    wincimg image sbom oci:./web-1.4 --format cyclonedx -o web.json\n\n\
    To print an SBOM that is attached to an image, use `wincimg image inspect IMAGE --sbom`.")]
pub(super) struct Sbom {
    /// Image: a reference, oci:DIR[:TAG], docker-archive:FILE[:NAME] or docker-daemon:NAME
    #[arg(value_name = "IMAGE", value_parser = parse_source, add = complete::images())]
    image: ImageSource,
    /// Select the image of this platform from an index
    #[arg(long, value_name = "OS/ARCH[:OSVERSION]")]
    platform: Option<PlatformFilter>,
    /// Output format [default: that of the output's name, or text]
    #[arg(long, value_enum)]
    format: Option<SbomOutput>,
    /// Write to this file; its name determines the format (.spdx.json, .cdx.json, .json)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    connection: SourceArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SbomOutput {
    /// Table of packages
    Text,
    /// Packages with their layers and files
    Json,
    /// SPDX 2.3
    Spdx,
    /// CycloneDX 1.6
    #[value(name = "cyclonedx")]
    CycloneDx,
}

impl Sbom {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let reader = self.connection.connect(session)?;
        let (inventory, unread) = registry_args::run(async {
            let (source, image) = only_image(&reader, &self.image, self.platform.as_ref()).await?;
            let name = self.image.document_name();
            Ok(read_inventory(&source, &image, &name, &reader.progress).await?)
        })?;
        report_foreign(&self.image, &unread, session);
        if inventory.layers.is_empty() && inventory.layers_below > 0 {
            session.note("no layer was read: all are Windows itself");
        }
        if let Some(note) = inventory.partial_note() {
            session.note(note);
        }
        let document = |form, out: &mut dyn Write| {
            write_sbom(form, &inventory, TOOL, out)?;
            out.write_all(b"\n")
        };
        let format = format_of(self.format, self.output.as_deref()).unwrap_or(SbomOutput::Text);
        write_result(self.output.as_deref(), |out| match format {
            SbomOutput::Text => write_text(&self.image, &inventory, out),
            SbomOutput::Json => write_list(&self.image, &inventory, out),
            SbomOutput::Spdx => document(SbomFormat::Spdx, out),
            SbomOutput::CycloneDx => document(SbomFormat::CycloneDx, out),
        })?;
        Ok(CommandOutcome::Yes)
    }
}

/// JSON of the packages.
#[derive(Serialize)]
struct InventoryView<'a, P> {
    reference: String,
    digest: &'a Digest,
    windows: Option<&'a OperatingSystem>,
    packages: P,
}

fn write_list(image: &ImageSource, inventory: &Inventory, out: &mut dyn Write) -> io::Result<()> {
    let list = InventoryView {
        reference: image.to_string(),
        digest: &inventory.digest,
        windows: inventory.system.as_ref(),
        packages: LazyList(|| {
            let packages = inventory.packages.iter();
            packages.map(move |package| as_json(package, inventory))
        }),
    };
    write_json(&list, out)
}

/// Layers with the package, counted from 1 at the bottom.
fn layers_of(package: &InventoryPackage, inventory: &Inventory) -> BTreeSet<usize> {
    let files = package.files.iter();
    files.map(|file| inventory.layer_number(*file)).collect()
}

fn as_json(package: &InventoryPackage, inventory: &Inventory) -> Value {
    let found = &package.found;
    let files = package.files.iter();
    let files = files.map(|file| display_path(inventory.path(*file)));
    json!({
        "type": found.kind(),
        "name": found.name,
        "version": found.version,
        "purl": package.purl,
        "supplier": found.supplier,
        "license": found.licence,
        "layers": layers_of(package, inventory),
        "files": files.collect::<Vec<_>>(),
    })
}

fn write_text(image: &ImageSource, inventory: &Inventory, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", UntrustedText(image))?;
    if let Some(system) = &inventory.system {
        let kb = system.kb.map(|kb| format!(", with {kb}"));
        let kb = kb.unwrap_or_default();
        let (name, version) = (UntrustedText(&system.name), UntrustedText(&system.version));
        writeln!(out, "  {name} ({version}){kb}")?;
    }
    let packages = || inventory.packages.iter();
    let width = |text: fn(&InventoryPackage) -> usize| packages().map(text).max().unwrap_or(0);
    let names = width(|it| it.found.name.chars().count()).min(50);
    let versions = width(|it| it.found.version.as_deref().map_or(0, str::len)).min(24);
    for package in packages() {
        let found = &package.found;

        let first = package.files.first();
        let file = first.map(|file| display_path(inventory.path(*file)));
        writeln!(
            out,
            "  {:<8} {:<names$}  {:<versions$}  {:>5}  {}",
            found.kind(),
            UntrustedText(&found.name),
            UntrustedText(found.version.as_deref().unwrap_or_default()),
            joined(layers_of(package, inventory), ","),
            UntrustedText(file.unwrap_or_default())
        )?;
    }
    writeln!(out, "{}", count(inventory.packages.len(), "package"))
}
