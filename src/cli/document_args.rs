//! Documents attached to delivered images.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use wincimg_engine::delivery::{AttachmentOptions, RunDetails};
use wincimg_inspect::provenance::{SbomFormat, SourceFile, Tool};

/// Options for attached documents.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Attached documents")]
pub(super) struct DocumentArgs {
    /// Attach an SBOM to each image (repeatable)
    #[arg(long, value_name = "FORMAT", value_parser = sbom_forms(), hide_short_help = true)]
    sbom: Vec<SbomForm>,
    /// Attach SLSA provenance to each image
    #[arg(long, hide_short_help = true)]
    provenance: bool,
    /// Builder ID in the provenance, such as the URL of a pipeline [default: wincimg's URL]
    #[arg(
        long,
        value_name = "URI",
        requires = "provenance",
        hide_short_help = true
    )]
    builder_id: Option<String>,
}

/// Form of an SBOM; none for `--sbom=false`.
type SbomForm = Option<SbomFormat>;

/// Parses a form, or a switch as scripts for buildx write it, whose SBOM has the form of SPDX.
fn sbom_forms() -> impl TypedValueParser<Value = SbomForm> {
    let formats = SbomFormat::value_variants().iter();
    let formats = formats.filter_map(ValueEnum::to_possible_value);
    let switch = ["true", "false"].map(|name| PossibleValue::new(name).hide(true));
    PossibleValuesParser::new(formats.chain(switch)).map(|name| match name.as_str() {
        "true" => Some(SbomFormat::Spdx),
        // `false` is no format.
        name => SbomFormat::from_str(name, false).ok(),
    })
}

/// This program as the creator of documents.
pub(super) const TOOL: Tool = Tool {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    home: env!("CARGO_PKG_REPOSITORY"),
};

impl DocumentArgs {
    /// Returns true if no document is requested.
    pub(super) fn is_empty(&self) -> bool {
        !self.provenance && self.sbom.iter().all(Option::is_none)
    }

    /// The requested documents of a run with this `source` and these `arguments`. If the timestamp
    /// of new content is set from outside, the documents contain no times of the run.
    pub(super) fn to_options(
        &self,
        source: Option<SourceFile>,
        arguments: Vec<String>,
        created: Option<Timestamp>,
    ) -> AttachmentOptions {
        let mut bills: Vec<SbomFormat> = self.sbom.iter().copied().flatten().collect();
        bills.sort();
        bills.dedup();
        let run = || RunDetails {
            builder: self.builder_id.clone(),
            source,
            arguments,
            started: created.is_none().then(Timestamp::now),
        };
        AttachmentOptions {
            tool: TOOL,
            bills,
            provenance: self.provenance.then(run),
        }
    }
}
