//! The order of the tar stream.
//!
//! Files follow all else. First come those that have twins, files of the same name and size: a licence,
//! a manifest or a library of many folders then stands within the 32 KiB that deflate looks back. The
//! rest follows by what its names end in and then by its folders, so that like stands beside like. In
//! the order of names alone, a site in HTML took 2.8 % more and source code 2.4 %. Readers need nothing
//! but folders before what is in them.

use std::collections::HashMap;

use super::content::{Content, Item};
use super::path::fold;

/// Where something comes; what is at the same place stays in its order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Place<'a> {
    BeforeFiles,
    WithTwins { name: &'a str, size: u64 },
    OfKind(&'a str),
}

/// The numbers of entries, which come with folders before what is in them, in the order of the stream.
/// Hives stay where they are. To tell the length of an entry's content may mean to ask the disk.
pub(super) fn of_stream(items: &[Item], length: impl Fn(usize) -> u64) -> Vec<usize> {
    let names: Vec<Option<String>> = items.iter().map(file_name).collect();
    let sizes = sizes_of_twins(&names, length);
    let place = |number: &usize| match (&names[*number], sizes[*number]) {
        (None, _) => Place::BeforeFiles,
        (Some(name), Some(size)) => Place::WithTwins { name, size },
        (Some(name), None) => Place::OfKind(name.rsplit_once('.').map_or("", |(_, kind)| kind)),
    };
    let mut stream: Vec<usize> = (0..items.len()).collect();
    stream.sort_by(|one, other| place(one).cmp(&place(other)));
    stream
}

/// The sizes of the files that have twins.
fn sizes_of_twins(names: &[Option<String>], length: impl Fn(usize) -> u64) -> Vec<Option<u64>> {
    let mut of_name = HashMap::<&str, u32>::new();
    for name in names.iter().flatten() {
        *of_name.entry(name).or_default() += 1;
    }
    let sizes = names.iter().enumerate().map(|(number, name)| {
        let is_one_of_many = name.as_deref().is_some_and(|name| of_name[name] > 1);
        is_one_of_many.then(|| length(number))
    });
    let mut sizes: Vec<Option<u64>> = sizes.collect();
    // There may be a hundred thousand names.
    drop(of_name);
    let mut alike = HashMap::<(&str, u64), u32>::new();
    for file in names.iter().zip(&sizes) {
        if let (Some(name), Some(size)) = file {
            *alike.entry((name, *size)).or_default() += 1;
        }
    }
    for (name, size) in names.iter().zip(&mut sizes) {
        if let (Some(name), Some(own)) = (name, *size)
            && alike[&(name.as_str(), own)] == 1
        {
            *size = None;
        }
    }
    sizes
}

/// A file's name as Windows compares it; none of hives and of what is no file.
fn file_name(item: &Item) -> Option<String> {
    let is_file = matches!(item.content, Content::File(_)) && item.name.starts_with("Files/");
    is_file.then(|| fold(item.name.rsplit('/').next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::super::{Layer, LinkTo};

    #[test]
    fn twins_come_together_behind_all_else_and_the_rest_by_kind() {
        let mut layer = Layer::new(0);
        layer.hive("System_Delta".parse().unwrap(), b"regf".as_slice());
        for (path, bytes) in [
            ("b/LICENSE", "MIT"),
            ("b/index.js", "1"),
            ("b/a.js", "1"),
            ("a/license", "MIT"),
            ("a/readme.md", ""),
            ("a/index.js", "of another size"),
            ("a/z.js", ""),
            ("Z", ""),
        ] {
            layer.file(path.parse().unwrap(), bytes.as_bytes());
        }
        let link = "c/link".parse().unwrap();
        layer.symlink(link, "../Z", LinkTo::File).unwrap();
        layer.delete("a/old".parse().unwrap());
        let arranged = layer.arranged().unwrap();
        let names: Vec<&str> = arranged
            .in_stream()
            .map(|item| item.name.as_str())
            .collect();
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
                "Files/a/license",
                "Files/b/LICENSE",
                "Files/Z",
                "Files/a/index.js",
                "Files/a/z.js",
                "Files/b/a.js",
                "Files/b/index.js",
                "Files/a/readme.md",
            ]
        );
    }
}
