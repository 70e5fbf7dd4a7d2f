//! `wincimg image cp`: copies files out of an image.

use std::str::FromStr;

use wincimg_inspect::{CopiedFiles, ExtractedFiles};
use wincimg_windows::path::ImagePath;

use super::{only_image, refuse_link, report_skipped};
use crate::cli::prelude::*;

/// Copy a file or folder out of an image
///
/// Copies what a container sees, from all layers merged. Nothing that exists is overwritten, and
/// nothing is written outside DIR. Links are neither copied nor followed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image cp 'repo.mylan.k8s:8888/web:1.4:C:\\inetpub\\wwwroot' ./site\n  \
    wincimg image cp 'oci:./web-1.4:C:\\app\\web.config' .")]
pub(in crate::cli) struct Cp {
    /// Image and path: HOST/NAME:TAG:C:\app, oci:DIR:C:\app, docker-archive:FILE:C:\app or
    /// docker-daemon:NAME:TAG:C:\app
    #[arg(value_name = "IMAGE:PATH")]
    from: PathInImage,
    /// Folder to copy to, which is created; files keep their names in it
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Select the image of this platform from an index
    #[arg(long, value_name = "OS/ARCH[:OSVERSION]")]
    platform: Option<PlatformFilter>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    connection: SourceArgs,
}

/// Returns true for what `cp` copies: an image with a path in it.
pub(in crate::cli) fn is_path_in_image(text: &str) -> bool {
    !text.contains("://") && text.parse::<PathInImage>().is_ok()
}

#[derive(Debug, Clone)]
struct PathInImage {
    image: ImageSource,
    path: ImagePath,
}

impl FromStr for PathInImage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                r"{} names no path: expected IMAGE:C:\PATH; to copy the image, use `wincimg copy`",
                QuotedText(text)
            )
        };
        let is_start = |rest: &str| {
            let rest = rest.as_bytes();
            match rest {
                [b'/' | b'\\', ..] => true,
                [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
                _ => false,
            }
        };
        let mut colons = text.match_indices(':').map(|(at, _)| at);
        let starts = colons.by_ref().filter(|at| is_start(&text[at + 1..]));
        // In `:C:\app` the second colon belongs to the path.
        let is_drive = |at: usize| {
            let (before, rest) = text.as_bytes().split_at(at);
            matches!(before, [.., b':', drive] if drive.is_ascii_alphabetic())
                && matches!(rest, [_, b'/' | b'\\', ..])
        };
        let at = starts.filter(|at| !is_drive(*at)).last();
        let at = at.ok_or_else(expected)?;
        let (image, path) = (&text[..at], &text[at + 1..]);
        if ["", "oci", "docker-archive", "docker-daemon", "docker"].contains(&image) {
            return Err(expected());
        }
        Ok(Self {
            image: parse_source(image).map_err(|error| error.to_string())?,
            path: path.parse().map_err(|error| format!("{error}"))?,
        })
    }
}

impl Cp {
    pub(in crate::cli) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let reader = self.connection.connect(session)?;
        let PathInImage { image: name, path } = &self.from;
        let (digest, copied) = registry_args::run(async {
            let (source, image) = only_image(&reader, name, self.platform.as_ref()).await?;
            let files = ExtractedFiles::read(&source, &image, path, &reader.progress).await?;
            refuse_link(&files, name)?;
            let copied = files.copy_to(&self.folder).map_err(|error| {
                let hint = "DIR is a folder, in which files keep their names: name another one";
                Failure::from(error).hint_if(self.folder.is_file().then_some(hint))
            })?;
            Ok((image.digest().to_string(), copied))
        })?;
        report_skipped(name, &copied, session);
        let named = json!({
            "reference": name.to_string(),
            "digest": digest,
            "path": path.to_string(),
            "folder": self.folder.display().to_string(),
        });
        let answer = || extended(&named, json!(copied));
        self.format.print(answer, |out| self.write(&copied, out))
    }

    fn write(&self, copied: &CopiedFiles, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{}: {}, {}, {}",
            self.folder.display(),
            count(copied.files, "file"),
            count(copied.folders, "folder"),
            BinaryBytes(copied.bytes)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_colon_before_a_path_ends_the_image() {
        for (text, image, path) in [
            (r"repo.lan:5/app:1:C:\a\b", "repo.lan:5/app:1", r"C:\a\b"),
            ("repo.lan:5000/app:/a", "repo.lan:5000/app:latest", r"C:\a"),
            (r"oci:/tmp/x:1:c:\a", "oci:/tmp/x:1", r"C:\a"),
            (r"oci:./x:C:\", "oci:./x", r"C:\"),
            (r"oci:x:C:\a", "oci:x", r"C:\a"),
            (r"docker-daemon:app:1:C:\a", "docker-daemon:app:1", r"C:\a"),
            (
                "docker-archive:/tmp/x.tar:/a/b",
                "docker-archive:/tmp/x.tar",
                r"C:\a\b",
            ),
        ] {
            let read: PathInImage = text.parse().unwrap();
            assert_eq!(read.image.to_string(), image, "{text}");
            assert_eq!(read.path.to_string(), path, "{text}");
        }
        let problem = "repo.lan/app:1".parse::<PathInImage>().unwrap_err();
        assert!(problem.contains("`wincimg copy`"), "{problem}");
        for text in [
            "oci:/tmp/x", "docker-archive:/x.tar", "repo.lan:5000/app:1", r"C:\x", "",
        ] {
            assert!(text.parse::<PathInImage>().is_err(), "{text}");
        }
    }
}
