//! `wincimg image inspect PACKAGE.msi`: what an installation would leave behind.

use std::io::{self, Read, Seek, Write};
use std::path::Path;

use anyhow::Context as _;
use indicatif::BinaryBytes;
use serde::Serialize;
use wincimg_common::files;
use wincimg_common::untrusted::{QuotedText, UntrustedText};
use wincimg_msi::{BareSystem, InstallOptions, InstallPlan, Package, SetupProgram, TransformPlace};
use wincimg_recipe::LARGEST_TRANSFORM;
use wincimg_windows::path::ImagePath;

use super::InspectFormat;
use crate::cli::output::Rows;
use crate::cli::{CommandOutcome, Failure, write_json, write_result};

#[derive(Serialize)]
struct WithFile<'a> {
    file: &'a Path,
    #[serde(flatten)]
    plan: &'a InstallPlan,
}

/// Folder of the package in the image.
const FOLDER: &str = "C:\\";

/// What to do about a program of no known kind.
const VENDOR_HINT: &str =
    "only Windows can tell what it installs: use the MSI or a zip of the vendor";

/// Shows a package as installed with properties of the command line, on a system without programs.
pub(super) fn inspect(
    file: &Path,
    properties: &[String],
    format: InspectFormat,
) -> Result<CommandOutcome, Failure> {
    let reader = files::open(file).with_context(|| format!("cannot read {}", file.display()));
    let mut reader = io::BufReader::new(reader.map_err(Failure::operation)?);
    let refused = |what: &str, hint: &str| {
        let problem = format!("{} is {what}, not a package (.msi)", file.display());
        Failure::usage(problem).hint(hint)
    };
    match SetupProgram::detect(&mut reader) {
        Ok(Some(program)) => return Err(refused(&program.to_string(), program.help())),
        _ if is_program(&mut reader) => return Err(refused("a program", VENDOR_HINT)),
        _ => {}
    }
    let name = file.file_name().unwrap_or_default();
    let options = InstallOptions {
        properties: properties
            .iter()
            .map(|text| property(text))
            .collect::<Result<_, _>>()?,
        file_name: name.to_string_lossy().into_owned(),
        source_folder: FOLDER.to_owned(),
        skipped_actions: Vec::new(),
    };
    let package = Package::read(reader);
    let system = BareSystem {
        files: transforms(file, &options).map_err(Failure::operation)?,
    };
    let plan = package.and_then(|mut package| package.plan(&options, &system));
    let plan = plan.with_context(|| file.display().to_string());
    let plan = plan.map_err(Failure::operation)?;
    match format {
        InspectFormat::Text => write_result(None, |out| write(file, &plan, out))?,
        InspectFormat::Json => {
            let answer = WithFile { file, plan: &plan };
            write_result(None, |out| write_json(&answer, out))?;
        }
        InspectFormat::Reg => {
            let problem = "--format reg is for images";
            return Err(Failure::usage(problem).hint("add --format json"));
        }
    }
    Ok(CommandOutcome::Yes)
}

fn is_program(reader: &mut (impl Read + Seek)) -> bool {
    let mut start = [0; 2];
    let read = reader.rewind();
    read.and_then(|()| reader.read_exact(&mut start)).is_ok() && start == *b"MZ"
}

/// Transforms beside the package.
fn transforms(
    file: &Path,
    options: &InstallOptions,
) -> Result<Vec<(ImagePath, Vec<u8>)>, anyhow::Error> {
    let mut found = Vec::new();
    for place in options.transforms()? {
        if let TransformPlace::File(path) = place
            && let [name] = path.components()
        {
            let beside = file.with_file_name(name);
            let bytes = files::read(&beside, LARGEST_TRANSFORM);
            let bytes = bytes.with_context(|| format!("cannot read {}", beside.display()))?;
            found.push((path, bytes));
        }
    }
    Ok(found)
}

fn property(text: &str) -> Result<(String, String), Failure> {
    let (name, value) = text.split_once('=').ok_or_else(|| {
        let shown = QuotedText(text);
        Failure::usage(format!("invalid property {shown}: expected NAME=VALUE"))
    })?;
    Ok((name.to_ascii_uppercase(), value.to_owned()))
}

fn write(file: &Path, plan: &InstallPlan, out: &mut dyn Write) -> io::Result<()> {
    let product = &plan.product;
    writeln!(out, "{}", UntrustedText(file.display()))?;
    let mut rows = Rows { out, width: 14 };
    let (name, version, manufacturer) = (&product.name, &product.version, &product.manufacturer);
    let named = format!("{name} {version} ({manufacturer})");
    rows.row("product", named)?;
    rows.row("code", &product.code)?;
    rows.row("platform", &product.platform)?;
    rows.row("features", plan.features.join(", "))?;
    let size: u64 = plan.files.iter().map(|file| file.size).sum();
    let count = plan.files.len();
    rows.row("files", format_args!("{count}, {}", BinaryBytes(size)))?;
    rows.each("", plan.files.iter().map(|file| &file.path))?;
    rows.each("removed", &plan.removed)?;
    rows.each("service", &plan.services)?;
    for shortcut in &plan.shortcuts {
        let link = format_args!("{} to {}", shortcut.path, shortcut.target);
        rows.row("shortcut", link)?;
    }
    rows.each("rights", &plan.access)?;
    let changes = plan.registry.len();
    rows.row("registry", format_args!("{changes} changes"))?;
    rows.each("", &plan.registry)?;
    if plan.restart_required {
        rows.row("exit code", "3010: restart required")?;
    }
    rows.each("note", &plan.notes)?;
    rows.each("unknown", &plan.unknown)?;
    rows.each("needs Windows", &plan.refused)
}
