//! Files of another image in a recipe, as `COPY --from=IMAGE` copies them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wincimg_common::untrusted::QuotedText;
use wincimg_inspect::ExtractedEntry;
use wincimg_layer::dockerignore::IgnoreRules;
use wincimg_recipe::{ImageFiles, PlannedEntry};
use wincimg_registry::UnknownBase;
use wincimg_windows::path::ImagePath;

use super::copy::Draft;
use super::drive::Tree;
use super::files::{ExtractedFiles, Files, ImageSource, fixed_part};
use super::paths::{self, CopyTarget};

/// A copy from another image.
pub struct ImageCopy<'a> {
    image: &'a str,
    /// Path or pattern in the image.
    pattern: String,
    target: CopyTarget,
}

impl<'a> ImageCopy<'a> {
    /// Reads the path in the image.
    pub fn new(files: &'a ImageFiles, target: &ImagePath) -> Result<Self, String> {
        let pattern = paths::source(&files.from)?;
        if fixed_part(&pattern).is_empty() {
            return Err(format!(
                "{} is the whole drive of {}: specify a folder or file",
                QuotedText(&files.from),
                files.image
            ));
        }
        Ok(Self {
            image: &files.image,
            pattern,
            target: CopyTarget {
                path: target.clone(),
                is_folder: files.into_folder || target.components().is_empty(),
            },
        })
    }

    /// The path to extract.
    pub fn required_path(&self) -> &str {
        fixed_part(&self.pattern)
    }

    /// The entries that it makes of extracted files.
    pub fn entries(
        &self,
        paths: &BTreeSet<String>,
        extracted: BTreeMap<String, ExtractedEntry>,
    ) -> Result<Vec<PlannedEntry>, String> {
        let mut files = ExtractedFiles::default();
        files.add(paths, extracted);
        let source = ImageSource {
            files: &files,
            name: self.image,
            is_windows: true,
        };
        let tree = Tree::over(Arc::new(UnknownBase), self.image);
        let mut draft = Draft::new(&tree, self.target.clone(), IgnoreRules::default());
        draft.copy(&source, &self.pattern, source.matching(&self.pattern)?)?;
        Ok(draft.into_entries())
    }
}
