//! `wincimg image export`: writes the files of an image as one tar.

use std::io::IsTerminal as _;

use wincimg_inspect::ExtractedFiles;
use wincimg_windows::path::ImagePath;

use super::{only_image, refuse_link, report_skipped};
use crate::cli::prelude::*;

/// Export the files of an image as a tar
///
/// Merges all layers, like `docker export`. Links, attributes and the registry are not included. To
/// write the image with its layers, copy it to docker-archive:FILE.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image export oci:./web-1.4 -o web.tar\n  \
    wincimg image export oci:./web-1.4 --path 'C:\\inetpub' | tar -t")]
pub(in crate::cli) struct Export {
    /// Image: a reference, oci:DIR[:TAG], docker-archive:FILE[:NAME] or docker-daemon:NAME
    #[arg(value_name = "IMAGE", value_parser = parse_source, add = complete::images())]
    image: ImageSource,
    /// File or folder to export
    #[arg(long, value_name = "PATH", default_value = r"C:\")]
    path: ImagePath,
    /// Write to this file [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Output format; JSON requires --output
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    /// Select the image of this platform from an index
    #[arg(long, value_name = "OS/ARCH[:OSVERSION]")]
    platform: Option<PlatformFilter>,
    #[command(flatten)]
    connection: SourceArgs,
}

impl Export {
    pub(in crate::cli) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let is_json = self.format == OutputFormat::Json;
        let problem = if is_json {
            Some("--format json requires --output: stdout is the tar")
        } else if io::stdout().is_terminal() {
            Some("the tar is not written to a terminal")
        } else {
            None
        };
        if let (Some(problem), None) = (problem, &self.output) {
            return Err(Failure::usage(problem).hint("add --output FILE"));
        }
        let reader = self.connection.connect(session)?;
        let files = registry_args::run(async {
            let (source, image) = only_image(&reader, &self.image, self.platform.as_ref()).await?;
            let files = ExtractedFiles::read(&source, &image, &self.path, &reader.progress).await?;
            refuse_link(&files, &self.image)?;
            Ok(files)
        })?;
        let mut copied = None;
        write_result(self.output.as_deref(), |out| {
            copied = Some(files.write_tar(out)?);
            Ok(())
        })?;
        if let Some(copied) = &copied {
            report_skipped(&self.image, copied, session);
        }
        if let (true, Some(file)) = (is_json, &self.output) {
            let file = file.display().to_string();
            let answer = extended(&copied, json!({"file": file}));
            write_result(None, |out| write_json(&answer, out))?;
        }
        Ok(CommandOutcome::Yes)
    }
}
