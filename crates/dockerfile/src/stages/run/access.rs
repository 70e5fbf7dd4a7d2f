//! Rights that a line grants. A layer that changes who may do what with a file brings the file again,
//! so what earlier layers brought comes once more.

use wincimg_registry::Known;
use wincimg_scripts::{Access as Wanted, Trouble};
use wincimg_windows::access::{Access, Granted};
use wincimg_windows::path::ImagePath;

use super::super::tree::{Kind, key};
use super::{Running, failed};

/// Nobody means more files of the base.
const MOST_OF_BASE: usize = 4096;

impl Running<'_> {
    pub(super) fn grant(&mut self, wanted: &Wanted) -> Result<(), Trouble> {
        let granted = Granted::read(&wanted.account, &wanted.rights).map_err(|error| {
            Trouble::unclear(error.to_string())
                .help("grant F, M, RX, R or W, to an account that every Windows has")
        })?;
        if wanted.path.components().is_empty() {
            let why = "a layer cannot change the rights on the drive itself";
            return Err(Trouble::unclear(why));
        }
        let access = Access {
            path: wanted.path.clone(),
            grants: granted.grants,
            inherit: granted.inherit,
            replaces: wanted.replaces,
            each_inside: wanted.each_inside,
        };
        self.bring_again(&access)?;
        self.changes.access.push(access);
        Ok(())
    }

    /// Lets this layer have all files whose rights change.
    fn bring_again(&mut self, access: &Access) -> Result<(), Trouble> {
        let mut pending = vec![access.path.clone()];
        while let Some(path) = pending.pop() {
            if self.tree.is_later(&path) {
                continue;
            }
            match self.kind(&path)? {
                Known::Present(Kind::Folder) => {}
                Known::Present(Kind::File(())) => {
                    self.again(&path)?;
                    continue;
                }
                // What a link leads to keeps what it has, and so does what is not there.
                Known::Present(Kind::Link(())) | Known::Absent => continue,
                Known::Unknown => return Err(unknown(&path)),
            }
            if self.tree.made(&path).is_some() {
                self.again(&path)?;
            }
            let Known::Present(inside) = self.tree.inside(&path).map_err(|it| failed(&it))? else {
                return Err(unknown(&path));
            };
            for (name, kind) in inside {
                if kind == Kind::Folder || kind == Kind::File(()) && access.reaches_files() {
                    let inside = path.join(&name);
                    pending.push(inside.map_err(|error| Trouble::unclear(error.to_string()))?);
                }
            }
        }
        Ok(())
    }

    fn again(&mut self, path: &ImagePath) -> Result<(), Trouble> {
        if self.changes.entries.contains_key(&key(path)) {
            return Ok(());
        }
        if let Some(made) = self.tree.made(path) {
            self.changes.insert(made.clone());
            return Ok(());
        }
        self.changes.of_base += 1;
        if self.changes.of_base > MOST_OF_BASE {
            let why = "a layer would have to bring thousands of the base's files again";
            return Err(Trouble::unclear(why)
                .help("grant the rights on a folder further down, or without (OI)"));
        }
        let content = self.base.taken(path)?;
        self.put(path.clone(), content);
        Ok(())
    }
}

fn unknown(path: &ImagePath) -> Trouble {
    let why = format!("what the base has at {path}, and who may do what with it, is not known");
    Trouble::unknown(why)
}
