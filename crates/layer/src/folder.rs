//! A folder on disk as part of a layer.

use std::path::{Component, Path};

use wincimg_common::files::FolderEntryKind;
use wincimg_common::untrusted::QuotedText;

use super::content::{Layer, LinkTo, Symlink};
use super::error::LayerError;
use super::path::LayerPath;
use crate::{DiskSource, IgnoreFilter};

impl Layer {
    /// Adds the content of `folder` below `under`, or at the top of the drive if that is `None`.
    ///
    /// Symbolic links stay links; they must point into the folder. Files that a `.dockerignore` at
    /// the folder's top excludes are not added.
    pub fn folder(&mut self, folder: &Path, under: Option<&LayerPath>) -> Result<(), LayerError> {
        self.folder_of(&DiskSource::folder(folder), under)
    }

    /// Adds a folder inside another one, whose `.dockerignore` applies too.
    pub fn folder_of(
        &mut self,
        folder: &DiskSource,
        under: Option<&LayerPath>,
    ) -> Result<(), LayerError> {
        if let Some(under) = under {
            self.directory(under.clone());
        }
        let mut walk = Walk {
            folder,
            under,
            left_out: folder.ignore_filter()?,
            layer: self,
        };
        let mut pending = vec![String::new()];
        while let Some(inside) = pending.pop() {
            walk.add_content(&inside, &mut pending)?;
        }
        Ok(())
    }
}

struct Walk<'a> {
    folder: &'a DiskSource,
    under: Option<&'a LayerPath>,
    left_out: IgnoreFilter,
    layer: &'a mut Layer,
}

impl Walk<'_> {
    /// Adds the direct content of the folder `inside`, and appends its folders to `pending`.
    fn add_content(&mut self, inside: &str, pending: &mut Vec<String>) -> Result<(), LayerError> {
        let folder = self.folder.join(inside);
        let listed = folder.list();
        for entry in listed.map_err(|source| LayerError::unreadable(&folder.path, source))? {
            let Some(name) = entry.name.to_str() else {
                return Err(LayerError::not_unicode(&folder.path.join(&entry.name)));
            };
            let found = folder.join(name);
            let name = join(inside, name);
            let is_folder = entry.kind == FolderEntryKind::Folder;
            if self.left_out.is_ignored(&name) {
                if is_folder && self.left_out.may_reinclude(&name) {
                    pending.push(name);
                }
                continue;
            }
            let in_layer = self.in_layer(&name)?;
            match entry.kind {
                FolderEntryKind::Folder => {
                    self.layer.directory(in_layer);
                    pending.push(name);
                }
                FolderEntryKind::File => self.layer.file(in_layer, found),
                FolderEntryKind::Link(target) => {
                    let Symlink { target, to } = link(self.folder, inside, &found.path, &target)?;
                    self.layer.symlink(in_layer, target, to)?;
                }
                FolderEntryKind::Special => return Err(LayerError::not_a_file(&found.path)),
            }
        }
        Ok(())
    }

    fn in_layer(&self, inside: &str) -> Result<LayerPath, LayerError> {
        Ok(match self.under {
            Some(under) => under.join(inside)?,
            None => inside.parse()?,
        })
    }
}

/// A link in the folder `inside` of a folder, with the kind of its target; `path` is for messages.
pub fn link(
    root: &DiskSource,
    inside: &str,
    path: &Path,
    target: &Path,
) -> Result<Symlink, LayerError> {
    let refused = |problem| {
        let (path, target) = (path.display(), QuotedText(target.display()));
        LayerError::Refused(format!(
            "symbolic link {path} points to {target}: {problem}"
        ))
    };
    let mut names = Vec::new();
    for component in target.components() {
        names.push(match component {
            Component::CurDir => continue,
            Component::ParentDir => "..",
            Component::Normal(name) => {
                name.to_str().ok_or_else(|| LayerError::not_unicode(path))?
            }
            Component::RootDir | Component::Prefix(_) => {
                return Err(refused("only relative targets are supported"));
            }
        });
    }
    let meant =
        resolve(inside, &names).ok_or_else(|| refused("the target is outside the folder"))?;
    let pointed_to = root.join(&meant).metadata();
    let pointed_to = pointed_to.map_err(|_| refused("the target cannot be read"))?;
    let to = if pointed_to.is_dir() {
        LinkTo::Directory
    } else {
        LinkTo::File
    };
    let target = if names.is_empty() {
        ".".to_owned()
    } else {
        names.join("/")
    };
    Ok(Symlink { target, to })
}

pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        return name.to_owned();
    }
    format!("{folder}/{name}")
}

/// Resolves a relative target for a link in `folder`, as Windows does: lexically. `None` if it
/// escapes.
fn resolve(folder: &str, target: &[&str]) -> Option<String> {
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in target {
        if *name == ".." {
            names.pop()?;
        } else {
            names.push(name);
        }
    }
    Some(names.join("/"))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::{fs, io};

    use wincimg_common::diagnose::error_chain;

    use super::*;
    use crate::WriteOptions;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        folder
    }

    fn names(folder: &Path) -> Result<Vec<String>, LayerError> {
        let mut layer = Layer::new(0);
        layer.folder(folder, Some(&"app".parse().unwrap()))?;
        let items = layer.items()?;
        Ok(items.into_iter().skip(2).map(|item| item.name).collect())
    }

    #[test]
    fn a_folder_goes_below_its_place_with_its_empty_folders() {
        let folder = folder(&["b", "a/x"]);
        fs::create_dir(folder.path().join("empty")).unwrap();
        assert_eq!(
            names(folder.path()).unwrap(),
            [
                "Files/app", "Files/app/a", "Files/app/a/x", "Files/app/b", "Files/app/empty"
            ]
        );
        let mut layer = Layer::new(0);
        layer.folder(folder.path(), None).unwrap();
        assert_eq!(layer.items().unwrap()[2].name, "Files/a");
    }

    #[test]
    fn what_the_folders_dockerignore_leaves_out_is_neither_added_nor_checked() {
        let folder = folder(&["obj/a", "obj/keep/b", "bin/a.log", "bin/a.exe", "a:b"]);
        fs::write(
            folder.path().join(".dockerignore"),
            "obj\n!obj/keep\n**/*.log\na:b\n",
        )
        .unwrap();
        assert_eq!(
            names(folder.path()).unwrap(),
            [
                "Files/app",
                "Files/app/.dockerignore",
                "Files/app/bin",
                "Files/app/bin/a.exe",
                "Files/app/obj",
                "Files/app/obj/keep",
                "Files/app/obj/keep/b"
            ]
        );
        fs::write(folder.path().join(".dockerignore"), "!").unwrap();
        let error = names(folder.path()).unwrap_err().to_string();
        assert!(error.contains(".dockerignore:1"), "{error}");
    }

    #[test]
    fn links_inside_the_folder_stay_links_and_know_what_they_point_to() {
        let folder = folder(&["lib/x.dll", "bin/tool"]);
        symlink("../lib/./x.dll", folder.path().join("bin/x.dll")).unwrap();
        symlink("../lib", folder.path().join("bin/lib")).unwrap();
        symlink("..", folder.path().join("bin/up")).unwrap();
        let mut layer = Layer::new(0);
        layer.folder(folder.path(), None).unwrap();
        let items = layer.items().unwrap();
        let links: Vec<String> = items
            .iter()
            .filter_map(|item| match item.content {
                super::super::content::EntryContent::Symlink(Symlink { target, to }) => {
                    Some(format!("{} {target} {to:?}", item.name))
                }
                _ => None,
            })
            .collect();
        assert_eq!(
            links,
            [
                "Files/bin/lib ../lib Directory",
                "Files/bin/up .. Directory",
                "Files/bin/x.dll ../lib/x.dll File"
            ]
        );
    }

    #[test]
    fn links_that_lead_out_or_nowhere_are_refused() {
        for target in ["/etc/passwd", "../..", "../../x", "gone"] {
            let folder = folder(&["a/b"]);
            symlink(target, folder.path().join("a/link")).unwrap();
            let error = names(folder.path()).unwrap_err().to_string();
            assert!(
                error.contains("a/link") && error.contains(&format!("{target:?}")),
                "{error}"
            );
        }
    }

    #[test]
    fn what_becomes_a_link_out_of_the_folder_after_the_walk_is_not_read() {
        let outside = folder(&["a/b"]);
        for replaced in ["a/b", "a"] {
            let folder = folder(&["a/b"]);
            let mut layer = Layer::new(0);
            layer.folder(folder.path(), None).unwrap();
            let path = folder.path().join(replaced);
            fs::rename(&path, folder.path().join("own")).unwrap();
            symlink(outside.path().join(replaced), path).unwrap();
            let written = layer.write(io::sink(), &WriteOptions::default());
            let error = error_chain(&written.unwrap_err());
            assert!(
                error.contains("a/b") && error.contains("leads out of"),
                "{error}"
            );
        }
    }

    #[test]
    fn names_behind_a_link_out_of_the_source_folder_are_not_read() {
        let (inside, outside) = (folder(&["own"]), folder(&["S3CRET"]));
        symlink(outside.path(), inside.path().join("out")).unwrap();
        let source = DiskSource::folder(inside.path()).join("out");
        let error = Layer::new(0).folder_of(&source, None).unwrap_err();
        let error = error_chain(&error);
        assert!(error.contains("leads out of"), "{error}");
        // Nor is it looked at through a link that stays inside.
        symlink("out", inside.path().join("link")).unwrap();
        fs::write(inside.path().join(".dockerignore"), "out\n").unwrap();
        let error = names(inside.path()).unwrap_err().to_string();
        assert!(error.contains("the target cannot be read"), "{error}");
    }

    #[test]
    fn a_folder_behind_a_link_in_its_source_folder_is_read() {
        let folder = folder(&["site/a/b"]);
        symlink("site", folder.path().join("link")).unwrap();
        let source = DiskSource::folder(folder.path()).join("link");
        let mut layer = Layer::new(0);
        let added = layer.folder_of(&source, None);
        added.unwrap();
        assert_eq!(layer.items().unwrap()[3].name, "Files/a/b");
        layer.write(io::sink(), &WriteOptions::default()).unwrap();
    }

    #[test]
    fn what_windows_could_not_hold_is_refused_by_name() {
        let with_colon = folder(&["a:b"]);
        let error = names(with_colon.path()).unwrap_err().to_string();
        assert!(error.contains(r#""app/a:b""#), "{error}");

        let with_pipe = folder(&[]);
        let socket = with_pipe.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let error = names(with_pipe.path()).unwrap_err().to_string();
        assert!(
            error.contains(socket.to_str().unwrap()) && error.contains("neither a file"),
            "{error}"
        );
    }

    // File systems of macOS have no such names.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_that_is_not_unicode_is_refused() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let latin = folder(&[]);
        fs::write(latin.path().join(OsStr::from_bytes(b"caf\xe9")), "").unwrap();
        let error = names(latin.path()).unwrap_err().to_string();
        assert!(error.ends_with("is not Unicode"), "{error}");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = names(Path::new("/does/not/exist")).unwrap_err();
        assert_eq!(error.to_string(), "cannot read /does/not/exist");
    }
}
