//! Lists the merged registry keys of an image.

use wincimg_common::diagnose::Problem;
use wincimg_registry::RegistryData;
use wincimg_registry::hive::{Key, Semantics};

use super::ImageContents;
use crate::base::BaseKeyPath;

/// A registry key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentKey {
    /// Its path.
    pub path: BaseKeyPath,
    /// Its values; those without data are deleted from the layers below.
    pub values: Vec<(String, Option<RegistryData>)>,
    /// Security descriptor in self-relative form.
    pub security: Vec<u8>,
    /// Class name.
    pub class: Option<String>,
    /// True if it is deleted from the layers below, which were not read.
    pub is_deleted: bool,
}

/// Lists a key and everything below it, down to a number of levels, with the level of each; none if
/// the key does not exist.
pub fn list_keys(
    image: &ImageContents,
    path: &BaseKeyPath,
    depth: usize,
) -> Result<Option<Vec<(usize, ContentKey)>>, Problem> {
    image.with_hive(path.hive, |root| {
        let top = path
            .components
            .iter()
            .try_fold(root?, |key, name| key.subkey(name))?;
        let mut listed = Vec::new();
        add(top, &mut path.clone(), (0, depth), &mut listed);
        Some(listed)
    })
}

fn add(
    key: &Key<'_>,
    path: &mut BaseKeyPath,
    (level, depth): (usize, usize),
    listed: &mut Vec<(usize, ContentKey)>,
) {
    let values = key.values.iter();
    let found = ContentKey {
        path: path.clone(),
        values: values.map(|it| (it.name.clone(), it.data())).collect(),
        security: key.security.to_vec(),
        class: key.class.clone(),
        is_deleted: key.layer.semantics == Semantics::Tombstone,
    };
    listed.push((level, found));
    if level == depth {
        return;
    }
    for subkey in &key.subkeys {
        path.components.push(subkey.name.clone());
        add(subkey, path, (level + 1, depth), listed);
        path.components.pop();
    }
}
