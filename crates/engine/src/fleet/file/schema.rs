//! Schema of fleet files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use wincimg_cluster::selector::LabelSelector;
use wincimg_common::document::Text;
use wincimg_inspect::bases::{BaseMatch, BaseRegistry};
use wincimg_layer::Compression;
use wincimg_oci::document::ManifestFormat;
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_recipe::Field;

/// A fleet: images, each for all Windows builds among its nodes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(title = "wincimg fleet")]
pub(super) struct FleetFile {
    /// Registry that images are pushed to by default: HOST[:PORT][/PREFIX].
    pub(super) registry: Option<Field<RegistryPrefix>>,
    /// Tag of each image's index. ${name} is the image's name, other names are those of its set and
    /// build-arg.
    pub(super) tag: Option<Field<String>>,
    /// Label selector of the nodes to serve, such as pool=web,!spot; all nodes without one.
    pub(super) selector: Option<Field<LabelSelector>>,
    /// Registry of base images.
    pub(super) base_registry: Option<Field<BaseRegistry>>,
    /// Required match of base images with the hosts.
    #[serde(rename = "match")]
    pub(super) matched: Option<BaseMatch>,
    /// Values for the variables of recipes that declare them.
    #[serde(default)]
    pub(super) set: BTreeMap<String, Text>,
    /// Values for the build arguments of Dockerfiles that declare them.
    #[serde(default)]
    pub(super) build_arg: BTreeMap<String, Text>,
    /// Labels of all images.
    #[serde(default)]
    pub(super) label: BTreeMap<String, Text>,
    /// Compression of layers.
    pub(super) compression: Option<Compression>,
    /// Format of manifests. Without one, OCI, and for an updated image its own.
    pub(super) manifest_format: Option<ManifestFormat>,
    /// The images.
    #[serde(default)]
    pub(super) image: Vec<ImageTable>,
}

/// One image of a fleet.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ImageTable {
    /// Source of a built image: a built-in recipe, a recipe file, a Dockerfile, or a folder with
    /// one of them.
    pub(super) build: Option<Field<String>>,
    /// Instead of build, an image to rebase without its sources, under its own name and tag.
    pub(super) update: Option<Field<String>>,
    /// Base of an image to update; by default the one that the image names.
    pub(super) base: Option<String>,
    /// Name of the image; the recipe's without one.
    pub(super) name: Option<Field<String>>,
    /// Registry that it is pushed to: HOST[:PORT][/PREFIX].
    pub(super) registry: Option<Field<RegistryPrefix>>,
    /// Tag of its index.
    pub(super) tag: Option<Field<String>>,
    /// Label selector of its nodes.
    pub(super) selector: Option<Field<LabelSelector>>,
    /// Registry of its base.
    pub(super) base_registry: Option<Field<BaseRegistry>>,
    /// Required match of its base with the hosts.
    #[serde(rename = "match")]
    pub(super) matched: Option<BaseMatch>,
    /// Values for the recipe's variables.
    #[serde(default)]
    pub(super) set: BTreeMap<String, Text>,
    /// The context folder; by default a recipe's is that of this file, a Dockerfile's its own.
    pub(super) context: Option<PathBuf>,
    /// The Dockerfile, if it has another name.
    pub(super) file: Option<PathBuf>,
    /// The Dockerfile's stage; the last without one.
    pub(super) target: Option<String>,
    /// Folders that replace the output of the Dockerfile's stages.
    #[serde(default)]
    pub(super) stage: BTreeMap<String, PathBuf>,
    /// Values for the Dockerfile's build arguments.
    #[serde(default)]
    pub(super) build_arg: BTreeMap<String, Text>,
    /// Labels of the image.
    #[serde(default)]
    pub(super) label: BTreeMap<String, Text>,
    /// Compression of its layers.
    pub(super) compression: Option<Compression>,
    /// Format of its manifests.
    pub(super) manifest_format: Option<ManifestFormat>,
}

impl ImageTable {
    /// Offset of its source.
    pub(super) fn start(&self) -> usize {
        let from = self.build.as_ref().or(self.update.as_ref());
        from.map_or(0, |text| text.offset)
    }

    /// The first key that only applies to built images.
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
