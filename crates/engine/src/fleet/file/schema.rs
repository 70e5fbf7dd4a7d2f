//! The shape of a fleet's file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use wincimg_inspect::bases::BaseMatch;
use wincimg_layer::Compression;
use wincimg_oci::document::ManifestFormat;

/// A fleet of images: each for all Windows builds among its nodes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(title = "wincimg fleet")]
pub(super) struct FleetFile {
    /// Where images are pushed to, unless they say otherwise: HOST[:PORT][/PREFIX].
    #[schemars(with = "Option<String>")]
    pub(super) registry: Option<Spanned<String>>,
    /// The tag of each image's index. ${name} is the image's name, other names are those of its set
    /// and build-arg.
    #[schemars(with = "Option<String>")]
    pub(super) tag: Option<Spanned<String>>,
    /// Which nodes images are for: a label selector, such as pool=web,!spot. All nodes without one.
    #[schemars(with = "Option<String>")]
    pub(super) selector: Option<Spanned<String>>,
    /// Where base images come from.
    #[schemars(with = "Option<String>")]
    pub(super) base_registry: Option<Spanned<String>>,
    /// How close base images have to be to the hosts.
    #[serde(rename = "match")]
    pub(super) matched: Option<BaseMatch>,
    /// Values for variables of recipes that have them.
    #[serde(default)]
    pub(super) set: BTreeMap<String, Scalar>,
    /// Values for build arguments of Dockerfiles that have them.
    #[serde(default)]
    pub(super) build_arg: BTreeMap<String, Scalar>,
    /// Labels of all images.
    #[serde(default)]
    pub(super) label: BTreeMap<String, Scalar>,
    /// How layers are compressed.
    pub(super) compression: Option<Compression>,
    /// The format of manifests; the base's without one.
    pub(super) manifest_format: Option<ManifestFormat>,
    /// The images.
    #[serde(default)]
    pub(super) image: Vec<ImageTable>,
}

/// One image of a fleet.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ImageTable {
    /// What is built: a recipe that ships, a recipe file, a Dockerfile, or a folder with one of them.
    #[schemars(with = "Option<String>")]
    pub(super) build: Option<Spanned<String>>,
    /// In place of build, an image that is put on the base that fits, without its sources; under its
    /// own name and tag.
    #[schemars(with = "Option<String>")]
    pub(super) update: Option<Spanned<String>>,
    /// What an image to update was built on; what it says itself without one.
    pub(super) base: Option<String>,
    /// The image's name; the recipe's without one.
    #[schemars(with = "Option<String>")]
    pub(super) name: Option<Spanned<String>>,
    /// Where it is pushed to: HOST[:PORT][/PREFIX].
    #[schemars(with = "Option<String>")]
    pub(super) registry: Option<Spanned<String>>,
    /// The tag of its index.
    #[schemars(with = "Option<String>")]
    pub(super) tag: Option<Spanned<String>>,
    /// Which nodes it is for.
    #[schemars(with = "Option<String>")]
    pub(super) selector: Option<Spanned<String>>,
    /// Where its base comes from.
    #[schemars(with = "Option<String>")]
    pub(super) base_registry: Option<Spanned<String>>,
    /// How close its base has to be to the hosts.
    #[serde(rename = "match")]
    pub(super) matched: Option<BaseMatch>,
    /// Values for the recipe's variables.
    #[serde(default)]
    pub(super) set: BTreeMap<String, Scalar>,
    /// The folder that context files are in; a recipe's is that of this file, a Dockerfile's its own.
    pub(super) context: Option<PathBuf>,
    /// The Dockerfile, where the folder has it under another name.
    pub(super) file: Option<PathBuf>,
    /// The Dockerfile's stage; the last without one.
    pub(super) target: Option<String>,
    /// Folders in place of what stages of the Dockerfile would make.
    #[serde(default)]
    pub(super) stage: BTreeMap<String, PathBuf>,
    /// Values for the Dockerfile's build arguments.
    #[serde(default)]
    pub(super) build_arg: BTreeMap<String, Scalar>,
    /// Labels of the image.
    #[serde(default)]
    pub(super) label: BTreeMap<String, Scalar>,
    /// How its layers are compressed.
    pub(super) compression: Option<Compression>,
    /// The format of its manifests.
    pub(super) manifest_format: Option<ManifestFormat>,
}

/// A value; a number and true or false are texts like any other.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a string, a whole number, true or false")]
pub(super) enum Scalar {
    Text(String),
    Number(i64),
    Flag(bool),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
        }
    }
}

impl ImageTable {
    /// Where what it is made from stands.
    pub(super) fn start(&self) -> usize {
        let from = self.build.as_ref().or(self.update.as_ref());
        from.map_or(0, |text| text.span().start)
    }

    /// The first key that is for images that are built.
    pub(super) fn key_of_build(&self) -> Option<&'static str> {
        let given = [
            ("registry", self.registry.is_some()),
            ("name", self.name.is_some()),
            ("set", !self.set.is_empty()),
            ("context", self.context.is_some()),
            ("file", self.file.is_some()),
            ("target", self.target.is_some()),
            ("stage", !self.stage.is_empty()),
            ("build-arg", !self.build_arg.is_empty()),
            ("label", !self.label.is_empty()),
            ("compression", self.compression.is_some()),
        ];
        let given = given.into_iter().find(|(_, is_given)| *is_given);
        given.map(|(key, _)| key)
    }
}
