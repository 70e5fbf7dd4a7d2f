//! The order of the tar stream.
//!
//! Files follow all else, by their names and only then by their folders: what has the same name in
//! many folders, a licence or a manifest, comes to stand within the 32 KiB that deflate looks back,
//! and so does what belongs together, `app.js` and `app.js.map`. Readers need nothing but folders
//! before what is in them.

use super::content::{Content, Item};
use super::path::fold;

/// Puts entries, which come with folders before what is in them, in the order of the stream. Hives
/// stay where they are.
pub(super) fn of_stream(mut items: Vec<Item<'_>>) -> Vec<Item<'_>> {
    items.sort_by_cached_key(|item| {
        let name = item.name.strip_prefix("Files/")?;
        let is_file = matches!(item.content, Content::File(_));
        let name = name.rsplit('/').next().unwrap_or_default();
        is_file.then(|| fold(name))
    });
    items
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::super::{Layer, LinkTo};
    use super::*;

    #[test]
    fn files_of_the_same_name_come_together_behind_all_else() {
        let mut layer = Layer::new(0);
        layer.hive("System_Delta".parse().unwrap(), b"regf".as_slice());
        for path in ["b/LICENSE", "b/a.js", "a/license", "a/a.js.map", "Z"] {
            layer.file(path.parse().unwrap(), b"".as_slice());
        }
        let link = "c/link".parse().unwrap();
        layer.symlink(link, "../Z", LinkTo::File).unwrap();
        layer.delete("a/old".parse().unwrap());
        let items = of_stream(layer.items().unwrap());
        let names: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "Hives",
                "Hives/System_Delta",
                "Files",
                "Files/a",
                "Files/a/.wh.old",
                "Files/b",
                "Files/c",
                "Files/c/link",
                "Files/b/a.js",
                "Files/a/a.js.map",
                "Files/a/license",
                "Files/b/LICENSE",
                "Files/Z",
            ]
        );
    }
}
