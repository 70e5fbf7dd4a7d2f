//! Options for tags: an index over images, and existing tags.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wincimg_engine::delivery::TagPolicy;
use wincimg_engine::publication::{IndexMode, NamingOptions, TagStyle};

#[derive(Debug, Args)]
pub(in crate::cli) struct TagArgs {
    /// Keep the tag's entries for other platforms and Windows builds
    ///
    /// Registries cannot update a tag atomically, so the tag is read again after the push, and
    /// entries that a concurrent build removed are restored.
    #[arg(long, conflicts_with_all = ["replace", "no_index"], hide_short_help = true)]
    pub(super) join: bool,
    /// Remove the tag's entries for other platforms and Windows builds
    #[arg(long, hide_short_help = true)]
    replace: bool,
    /// Push only the version tags, without an index
    #[arg(long, hide_short_help = true)]
    pub(in crate::cli) no_index: bool,
    /// Name of Windows in tags: its version (1.4-10.0.20348.2402) or its release (1.4-ltsc2022)
    #[arg(long, default_value = "version", value_parser = tag_styles(), hide_short_help = true)]
    tag_style: TagStyle,
}

fn tag_styles() -> impl TypedValueParser<Value = TagStyle> {
    PossibleValuesParser::new(["version", "release"]).map(|name| match name.as_str() {
        "release" => TagStyle::Release,
        _ => TagStyle::Version,
    })
}

/// The policy of `--join` and `--replace`.
pub(in crate::cli) fn tag_policy(join: bool, replace: bool) -> TagPolicy {
    match (join, replace) {
        (true, _) => TagPolicy::Join,
        (false, true) => TagPolicy::Replace,
        (false, false) => TagPolicy::Protect,
    }
}

impl TagArgs {
    pub(in crate::cli) fn existing(&self) -> TagPolicy {
        tag_policy(self.join, self.replace)
    }

    /// Names of the images; with --join also a single one gets an index.
    pub(in crate::cli) fn naming(&self, name: String, tag: Option<String>) -> NamingOptions {
        let index = match (self.no_index, self.join) {
            (true, _) => IndexMode::Never,
            (false, true) => IndexMode::Always,
            (false, false) => IndexMode::Several,
        };
        NamingOptions {
            name,
            tag,
            index,
            style: self.tag_style,
        }
    }
}
