//! `wincimg image delete`: deletes a tag or digest from a registry or layout.

use std::io::IsTerminal as _;

use wincimg_oci::deletion::Deletion;

use super::prompt;
use crate::cli::prelude::*;

/// Delete an image from a registry or layout
///
/// Shows which other tags and indexes have the digest, and asks before it deletes. If others have
/// it, only the tag is deleted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image delete repo.mylan.k8s:8888/web:1.3\n  \
    wincimg image delete oci:./out:1.3 --yes\n  \
    wincimg image delete repo.mylan.k8s:8888/web@sha256:… --with-digest --yes\n\n\
    Exit code 1: not deleted, because the answer was no, or others have the digest. The registry\n\
    frees the space in its next garbage collection; a layout keeps its blobs.")]
pub(super) struct Delete {
    /// Image: a reference or oci:DIR[:TAG]
    #[arg(value_name = "IMAGE", value_parser = parse_location, add = complete::images())]
    image: Location,
    /// Delete the digest even if other tags and indexes have it
    #[arg(long)]
    with_digest: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    connection: RegistryArgs,
}

impl Delete {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let registry = self.connection.connect(session)?;
        let deletion = registry_args::run(async {
            let source = Source::open(&self.image, &registry).await?;
            Ok(Deletion::new(&source, self.image.tag_or_digest()).await?)
        })?;
        if deletion.tag.is_none() && deletion.is_shared() && !self.with_digest {
            let problem = format!("{deletion} is also {}", deletion.others());
            return Err(Failure::no(problem).hint(
                "to delete one of them, name its tag; to delete it for all of them, add \
                     --with-digest",
            ));
        }
        if !self.yes && !self.is_confirmed(&deletion)? {
            return Ok(CommandOutcome::No);
        }
        registry_args::run(async { Ok(deletion.run(self.with_digest).await?) })?;
        let answer = || {
            json!({
                "reference": self.image.to_string(),
                "digest": deletion.digest,
                "tag": deletion.tag,
                "digest_deleted": self.with_digest || !deletion.is_shared(),
                "other_tags": deletion.other_tags,
                "indexes": deletion.indexes,
            })
        };
        self.format.print(answer, |out| self.write(&deletion, out))
    }

    fn is_confirmed(&self, deletion: &Deletion) -> Result<bool> {
        if !io::stdin().is_terminal() {
            let problem = "deleting requires a confirmation, and there is no terminal";
            return Err(Failure::usage(problem).hint("add --yes"));
        }
        let shared = match (deletion.is_shared(), self.with_digest) {
            (false, _) => String::new(),
            (true, true) => format!(" (it is also {})", deletion.others()),
            (true, false) => format!(" (only the tag: the digest is also {})", deletion.others()),
        };
        let question = UntrustedText(format!("Delete {deletion}{shared}")).to_string();
        let answer = prompt::line(&format!("{question}? [y/N] "))?;
        Ok(["y", "yes"]
            .iter()
            .any(|yes| answer.eq_ignore_ascii_case(yes)))
    }

    fn write(&self, deletion: &Deletion, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "deleted {}", UntrustedText(deletion))?;
        if deletion.is_shared() {
            let digest = if self.with_digest {
                "deleted the digest, which was"
            } else {
                "kept the digest, which is"
            };
            writeln!(out, "  {digest} {}", UntrustedText(deletion.others()))?;
        }
        Ok(())
    }
}
