//! Image in memory, with the folders of Windows.

use std::collections::{BTreeMap, BTreeSet};

use wincimg_registry::{KeyPath, RegistryData, RegistryEdit, Root};
use wincimg_windows::path::ImagePath;

use crate::{
    EntryKind, ImageAction, ImageState, InstallerProgram, Lookup, PackageFeed, PendingDownload,
    ScriptError,
};

/// Looks up the kind of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Folder,
    File(Option<Vec<u8>>),
    Deferred,
    /// A link, which is not followed.
    Link,
    Gone,
}

/// Image with the actions applied to it.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, (ImagePath, Node)>,
    values: BTreeMap<(String, String), RegistryData>,
    keys: BTreeMap<String, bool>,
    /// Folders whose content is known only after a download.
    loose: BTreeSet<String>,
    /// Variables of users.
    variables: BTreeMap<String, RegistryData>,
    pub(super) actions: Vec<ImageAction>,
    /// The feed's packages, with their files.
    pub(super) packages: BTreeMap<String, Vec<(String, String)>>,
    /// Files of the archives in the image.
    archives: BTreeMap<String, Vec<(String, String)>>,
    /// Paths that the user of the lines created.
    pub(super) own: BTreeSet<String>,
    /// Attributes other than the usual ones.
    attributes: BTreeMap<String, u32>,
}

const FOLDERS: [&str; 12] = [
    r"C:\Windows",
    r"C:\Windows\System32",
    r"C:\Windows\System32\inetsrv",
    r"C:\Windows\System32\drivers\etc",
    r"C:\Windows\Temp",
    r"C:\Program Files",
    r"C:\Program Files (x86)",
    r"C:\ProgramData",
    r"C:\Users\Public",
    r"C:\inetpub\wwwroot",
    r"C:\Windows\Microsoft.NET\Framework64",
    r"C:\Windows\System32\WindowsPowerShell\v1.0",
];

const PROGRAMS: [&str; 11] = [
    "cmd", "curl", "tar", "setx", "reg", "icacls", "xcopy", "robocopy", "certutil", "certoc",
    "msiexec",
];

impl Tree {
    /// Base with Windows.
    pub(super) fn windows() -> Self {
        let mut tree = Self::default();
        for folder in FOLDERS {
            tree.put(&folder.parse().unwrap(), Node::Folder);
        }
        let others = ["sc", "node", "npm", "pwsh", "redis-server"];
        for program in PROGRAMS.into_iter().chain(others) {
            tree.file(&format!(r"C:\Windows\System32\{program}.exe"), None);
        }
        tree.file(r"C:\Windows\System32\inetsrv\appcmd.exe", None);
        tree.file(
            r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe",
            None,
        );
        tree.file(
            r"C:\inetpub\wwwroot\iisstart.htm",
            Some(b"<html></html>".to_vec()),
        );
        let environment = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment";
        tree.with_value(
            environment,
            "Path",
            RegistryData::expand_sz(
                r"%SystemRoot%\System32\WindowsPowerShell\v1.0;%SystemRoot%\system32;%SystemRoot%",
            ),
        );
        tree
    }

    pub(super) fn file(&mut self, path: &str, content: Option<Vec<u8>>) {
        self.put(&path.parse().unwrap(), Node::File(content));
    }

    /// Adds a file, or a link, with attributes.
    pub(super) fn file_with(&mut self, path: &str, attributes: u32) {
        let path: ImagePath = path.parse().unwrap();
        let node = match attributes & 0x400 {
            0 => Node::File(Some(b"x".to_vec())),
            _ => Node::Link,
        };
        self.put(&path, node);
        self.attributes.insert(lower(&path), attributes);
    }

    pub(super) fn folder(&mut self, path: &ImagePath) {
        self.put(path, Node::Folder);
    }

    pub(super) fn with_value(&mut self, key: &str, name: &str, data: RegistryData) {
        let key: KeyPath = key.parse().unwrap();
        self.set(&key, name, data);
    }

    fn set(&mut self, key: &KeyPath, name: &str, data: RegistryData) {
        self.make_key(key);
        self.values.insert((lower(key), name.to_lowercase()), data);
    }

    fn make_key(&mut self, key: &KeyPath) {
        let mut key = key.clone();
        while !key.components().is_empty() {
            self.keys.insert(lower(&key), true);
            key.pop();
        }
    }

    fn put(&mut self, path: &ImagePath, node: Node) {
        let mut above: ImagePath = r"C:\".parse().unwrap();
        for name in &path.components()[..path.components().len().saturating_sub(1)] {
            above = above.join(name).unwrap();
            let is_there = matches!(self.node(&above), Some(Node::Folder | Node::Deferred));
            if !is_there {
                self.nodes
                    .insert(lower(&above), (above.clone(), Node::Folder));
            }
        }
        self.nodes.insert(lower(path), (path.clone(), node));
    }

    fn node(&self, path: &ImagePath) -> Option<&Node> {
        self.nodes.get(&lower(path)).map(|(_, node)| node)
    }

    fn below(&self, path: &ImagePath) -> Vec<(ImagePath, Node)> {
        let prefix = format!("{}\\", lower(path).trim_end_matches('\\'));
        let found = self.nodes.range(prefix.clone()..);
        found
            .take_while(|(name, _)| name.starts_with(&prefix))
            .map(|(_, node)| node.clone())
            .collect()
    }

    fn is_in_later(&self, path: &ImagePath) -> bool {
        let mut text = lower(path);
        loop {
            if self.loose.contains(&text)
                || matches!(self.nodes.get(&text), Some((_, Node::Deferred)))
            {
                return true;
            }
            match text.rsplit_once('\\') {
                Some((above, _)) => text = above.to_owned(),
                None => return false,
            }
        }
    }

    fn remove(&mut self, path: &ImagePath) {
        for (below, _) in self.below(path) {
            self.nodes.remove(&lower(&below));
        }
        let own = lower(path);
        self.loose
            .retain(|loose| !(*loose == own || loose.starts_with(&format!("{own}\\"))));
        self.nodes.insert(own, (path.clone(), Node::Gone));
    }

    fn copy_tree(&mut self, from: &ImagePath, to: &ImagePath) {
        let nodes = self.below(from);
        let mut own = self.node(from).cloned().unwrap_or(Node::Deferred);
        if self.is_in_later(from) {
            own = Node::Deferred;
        }
        let depth = from.components().len();
        let is_folder = matches!(self.node(to), Some(Node::Folder));
        if !(is_folder && own == Node::Folder) {
            self.put(to, own);
        }
        for (path, node) in nodes {
            let mut target = to.clone();
            for name in &path.components()[depth..] {
                target = target.join(name).unwrap();
            }
            self.put(&target, node);
        }
    }

    /// Files and folders below a folder.
    pub(super) fn listing(&self, folder: &str) -> Vec<String> {
        self.below(&folder.parse().unwrap())
            .into_iter()
            .filter(|(_, node)| *node != Node::Gone)
            .map(|(path, node)| match node {
                Node::Folder => format!("{path}\\"),
                Node::Deferred => format!("{path} ?"),
                _ => path.to_string(),
            })
            .collect()
    }
}

fn lower(path: &impl ToString) -> String {
    path.to_string().trim_end_matches('\\').to_lowercase()
}

impl ImageState for Tree {
    fn entry(&self, path: &ImagePath) -> Lookup<EntryKind> {
        match self.node(path) {
            Some(Node::Folder) => Lookup::Present(EntryKind::Folder),
            Some(Node::File(_)) => Lookup::Present(EntryKind::File(())),
            Some(Node::Deferred) => Lookup::Deferred(PendingDownload),
            Some(Node::Link) => Lookup::Unknown,
            None if self.is_in_later(path) => Lookup::Deferred(PendingDownload),
            Some(Node::Gone) | None => Lookup::Absent,
        }
    }

    fn setup_program(&self, path: &ImagePath) -> Lookup<InstallerProgram> {
        let is_downloaded = |action: &ImageAction| matches!(action, ImageAction::Download { path: own, .. } if own == path);
        if self.actions.iter().any(is_downloaded) {
            Lookup::Deferred(PendingDownload)
        } else {
            Lookup::Absent
        }
    }

    fn names(&self, folder: &ImagePath) -> Lookup<Vec<String>> {
        if self.is_in_later(folder) {
            return Lookup::Deferred(PendingDownload);
        }
        let depth = folder.components().len() + 1;
        let below = self.below(folder);
        if below
            .iter()
            .any(|(path, node)| *node == Node::Deferred && path.components().len() == depth)
        {
            return Lookup::Deferred(PendingDownload);
        }
        Lookup::Present(
            below
                .into_iter()
                .filter(|(path, node)| path.components().len() == depth && *node != Node::Gone)
                .map(|(path, _)| path.components()[depth - 1].clone())
                .collect(),
        )
    }

    fn attributes(&self, path: &ImagePath) -> u32 {
        let found = self.attributes.get(&lower(path));
        found.copied().unwrap_or_default()
    }

    fn content(&self, file: &ImagePath) -> Lookup<Vec<u8>> {
        match self.node(file) {
            Some(Node::File(Some(content))) => Lookup::Present(content.clone()),
            Some(Node::File(None) | Node::Deferred) => Lookup::Deferred(PendingDownload),
            _ if self.is_in_later(file) => Lookup::Deferred(PendingDownload),
            _ => Lookup::Absent,
        }
    }

    fn user_variable(&self, _: &ImagePath, name: &str) -> Lookup<RegistryData> {
        let found = self.variables.get(&name.to_lowercase());
        found.cloned().map_or(Lookup::Absent, Lookup::Present)
    }

    fn value(&self, key: &KeyPath, name: &str) -> Lookup<RegistryData> {
        let found = self.values.get(&(lower(key), name.to_lowercase()));
        found.cloned().map_or(Lookup::Absent, Lookup::Present)
    }

    fn key(&self, key: &KeyPath) -> Lookup<()> {
        match self.keys.get(&lower(key)) {
            Some(true) => Lookup::Present(()),
            None if key.root() == Root::System && key.components().len() < 4 => Lookup::Present(()),
            None if key.components().is_empty() => Lookup::Present(()),
            Some(false) | None => Lookup::Absent,
        }
    }

    fn feed(&self) -> PackageFeed {
        if self.packages.is_empty() {
            return PackageFeed::None;
        }
        PackageFeed::Folder(self.packages.keys().cloned().collect())
    }

    fn chocolatey_feature(&self, name: &str) -> Option<bool> {
        let mut actions = self.actions.iter().rev();
        actions.find_map(|action| match action {
            ImageAction::ChocolateyFeature {
                name: own,
                is_enabled,
            } if *own == name => Some(*is_enabled),
            _ => None,
        })
    }

    /// That of `restart.msi` does.
    fn restart_required(&self) -> bool {
        matches!(self.actions.last(), Some(ImageAction::Install(install))
            if lower(&install.package).ends_with("restart.msi"))
    }

    fn is_own(&self, path: &ImagePath) -> bool {
        self.own.contains(&lower(path))
    }

    /// Applies an action. The package `refused.msi` fails.
    fn apply(&mut self, action: ImageAction) -> Result<(), ScriptError> {
        if let ImageAction::Install(install) = &action
            && lower(&install.package).ends_with("refused.msi")
        {
            return Err(ScriptError::fails("the package refuses this system"));
        }
        if let ImageAction::MakeFolder(path)
        | ImageAction::Write { path, .. }
        | ImageAction::Download { path, .. } = &action
        {
            self.own.insert(lower(path));
        }
        match &action {
            ImageAction::MakeFolder(path) => self.put(path, Node::Folder),
            ImageAction::Write { path, content } => {
                self.put(path, Node::File(Some(content.clone())));
            }
            ImageAction::Append { path, content } => {
                let mut whole = match self.content(path) {
                    Lookup::Present(content) => content,
                    _ => Vec::new(),
                };
                whole.extend_from_slice(content);
                self.put(path, Node::File(Some(whole)));
            }
            ImageAction::Download { path, .. } | ImageAction::Log(path) => {
                self.put(path, Node::File(None));
            }
            ImageAction::CopyPackage { file, path } => {
                self.put(path, Node::File(None));
                self.archives
                    .insert(lower(path), self.packages[file].clone());
            }
            ImageAction::Unpack(unpack)
                if let Some(files) = self.archives.get(&lower(&unpack.archive)) =>
            {
                for (name, content) in files.clone() {
                    let path = format!(r"{}\{name}", unpack.into);
                    self.file(&path, Some(content.into_bytes()));
                }
            }
            ImageAction::Unpack(unpack) => {
                if self.entry(&unpack.into) != Lookup::Deferred(PendingDownload)
                    && !unpack.into.components().is_empty()
                {
                    self.put(&unpack.into, Node::Folder);
                }
                self.loose.insert(lower(&unpack.into));
            }
            ImageAction::Link(link) => {
                self.put(&link.path, Node::Link);
                let attributes = if link.to_folder { 0x410 } else { 0x420 };
                self.attributes.insert(lower(&link.path), attributes);
            }
            ImageAction::Copy { from, to } => self.copy_tree(from, to),
            ImageAction::Move { from, to } if lower(from) == lower(to) => {}
            ImageAction::Move { from, to } => {
                self.copy_tree(from, to);
                self.remove(from);
            }
            ImageAction::Delete(path) => self.remove(path),
            ImageAction::Unclear(path) => {
                if path.components().is_empty() {
                    self.loose.insert(lower(path));
                } else {
                    self.put(path, Node::Deferred);
                }
            }
            ImageAction::UserVariable { name, data, .. } => {
                self.variables.insert(name.to_lowercase(), data.clone());
            }
            ImageAction::Registry(edit) => match edit {
                RegistryEdit::SetValue { key, name, data } => {
                    self.set(key, name, data.clone());
                }
                RegistryEdit::CreateKey { key, .. } | RegistryEdit::SetSecurity { key, .. } => {
                    self.make_key(key);
                }
                RegistryEdit::DeleteKey { key } => {
                    self.keys.insert(lower(key), false);
                }
                RegistryEdit::DeleteValue { key, name } => {
                    self.values.remove(&(lower(key), name.to_lowercase()));
                }
            },
            _ => {}
        }
        self.actions.push(action);
        Ok(())
    }
}
