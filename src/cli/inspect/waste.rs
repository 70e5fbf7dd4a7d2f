//! `wincimg image inspect --waste`: files of the layers that no container sees.

use std::str::FromStr;

use wincimg_inspect::contents::{ContentOptions, ContentReader, ImageWaste, find_waste};
use wincimg_inspect::{Inspection, windows_images};

use crate::cli::cache_args::read_size;
use crate::cli::prelude::*;

/// Number of files in text output.
const SHOWN_FILES: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum WasteLimit {
    Bytes(u64),
    /// Part of the own layers.
    Percent(f64),
}

impl FromStr for WasteLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(number) = text.strip_suffix('%') else {
            let size = read_size(text).map(Self::Bytes);
            return size.map_err(|_| format!("invalid size {text:?}: expected 5% or 20M"));
        };
        match number.trim().parse::<f64>() {
            Ok(number) if (0.0..=100.0).contains(&number) => Ok(Self::Percent(number)),
            _ => Err(format!("invalid percentage {text:?}: expected 0% to 100%")),
        }
    }
}

impl Display for WasteLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => BinaryBytes(*bytes).fmt(f),
            Self::Percent(number) => write!(f, "{number}%"),
        }
    }
}

impl WasteLimit {
    fn is_exceeded(self, waste: &ImageWaste) -> bool {
        match self {
            Self::Bytes(limit) => waste.bytes > limit,
            Self::Percent(limit) => waste.ratio() * 100.0 > limit,
        }
    }
}

/// Reads the own layers of the inspected images, and adds their waste.
pub(super) async fn add(
    source: &Source,
    inspection: &mut Inspection,
    progress: &Arc<dyn Progress>,
) -> Result<()> {
    let options = ContentOptions {
        skip_windows: true,
        ..ContentOptions::default()
    };
    let reader = ContentReader::new(options, Arc::clone(progress));
    let windows = inspection.images.iter_mut().filter(|it| it.is_windows());
    for facts in windows {
        for image in windows_images(source, Some(facts.digest.as_ref()), &[]).await? {
            let contents = reader.read(source, &image).await?;
            facts.waste = Some(find_waste(&contents));
        }
    }
    Ok(())
}

/// Reports the images above the limit; returns true if there are any.
pub(super) fn check(inspection: &Inspection, limit: WasteLimit, session: &Session) -> bool {
    let mut exceeded = false;
    for facts in &inspection.images {
        if let Some(waste) = facts.waste.as_ref().filter(|it| limit.is_exceeded(it)) {
            exceeded = true;
            session.warn(format_args!(
                "{} wastes {}, more than the limit of {limit}",
                facts.platform(),
                in_words(waste)
            ));
        }
    }
    exceeded
}

fn in_words(waste: &ImageWaste) -> String {
    let percent = waste.ratio() * 100.0;
    let (bytes, of) = (BinaryBytes(waste.bytes), BinaryBytes(waste.of));
    format!("{bytes} of {of} ({percent:.1}%)")
}

pub(super) fn write(waste: &ImageWaste, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {:<12} {}", "waste", in_words(waste))?;
    for file in waste.files.iter().take(SHOWN_FILES) {
        let how = if file.deleted { "deleted" } else { "replaced" };
        writeln!(
            out,
            "    {:>3}  {:>11}  {}, {how} by layer {}",
            file.layer,
            BinaryBytes(file.size).to_string(),
            UntrustedText(&file.path),
            file.by
        )?;
    }
    match waste.files.len().saturating_sub(SHOWN_FILES) {
        0 => Ok(()),
        more => writeln!(out, "    and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_size_or_a_part() {
        assert_eq!("20M".parse(), Ok(WasteLimit::Bytes(20 << 20)));
        assert_eq!("2.5%".parse(), Ok(WasteLimit::Percent(2.5)));
        for text in ["", "%", "101%", "-1%", "x", "NaN%"] {
            assert!(text.parse::<WasteLimit>().is_err(), "{text}");
        }
        let waste = |bytes| ImageWaste {
            bytes,
            of: 100,
            ..ImageWaste::default()
        };
        assert!(WasteLimit::Percent(5.0).is_exceeded(&waste(6)));
        assert!(!WasteLimit::Percent(5.0).is_exceeded(&waste(5)));
        assert!(WasteLimit::Bytes(5).is_exceeded(&waste(6)));
        assert!(!WasteLimit::Bytes(6).is_exceeded(&waste(6)));
        assert!(!WasteLimit::Percent(0.0).is_exceeded(&ImageWaste::default()));
    }
}
