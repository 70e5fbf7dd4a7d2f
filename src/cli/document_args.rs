//! Documents attached to delivered images.

use clap::Args;
use jiff::Timestamp;
use wincimg_engine::delivery::{AttachmentOptions, RunDetails};
use wincimg_inspect::provenance::{SbomFormat, SourceFile, Tool};

/// Options for attached documents.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Attached documents")]
pub(super) struct DocumentArgs {
    /// Attach an SBOM to each image (repeatable)
    #[arg(long, value_enum, value_name = "FORM", hide_short_help = true)]
    sbom: Vec<SbomFormat>,
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

/// This program as the creator of documents.
pub(super) const TOOL: Tool = Tool {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    home: env!("CARGO_PKG_REPOSITORY"),
};

impl DocumentArgs {
    /// The requested documents of a run with this `source` and these `arguments`. If the timestamp
    /// of new content is set from outside, the documents contain no times of the run.
    pub(super) fn to_options(
        &self,
        source: Option<SourceFile>,
        arguments: Vec<String>,
        created: Option<Timestamp>,
    ) -> AttachmentOptions {
        let mut bills: Vec<SbomFormat> = self.sbom.clone();
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
