//! The files of one update in install order: prerequisites, checkpoints, the update itself.

use serde::{Deserialize, Serialize};
use wincimg_common::diagnose::Problem;
use wincimg_windows::update::Kb;

use super::dialog::UpdateFile;
use super::msu::kb_from_filename;
use super::product::Arch;

/// Role of a file in its update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A servicing stack that the update requires.
    ServicingStack,
    /// An earlier update on which the target builds.
    Checkpoint,
    /// The update itself.
    Target,
}

/// One file of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateSetFile {
    /// The file, as the catalog lists it.
    pub file: UpdateFile,
    /// Role in the update.
    pub role: Role,
    /// Size, if the catalog lists it.
    pub size: Option<u64>,
}

/// Of several files, those that are not named after another architecture.
fn for_arch(mut files: Vec<UpdateFile>, arch: Arch) -> Vec<UpdateFile> {
    if files.len() > 1 {
        files.retain(|file| arch_from_filename(&file.name).is_none_or(|found| found == arch));
    }
    files
}

/// The architecture in `windows11.0-kb5120233-arm64_….msu`.
fn arch_from_filename(name: &str) -> Option<Arch> {
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.find_map(|word| word.parse().ok())
}

/// Orders an update's files for an architecture and its prerequisites. The size is that of the
/// search result, which is unknown for one file of several.
pub fn in_order(
    kb: Kb,
    arch: Arch,
    own: Vec<UpdateFile>,
    size: Option<u64>,
    before: Vec<UpdateFile>,
) -> Result<Vec<UpdateSetFile>, Problem> {
    let size = size.filter(|_| own.len() == 1);
    let names: Vec<String> = own.iter().map(|file| file.name.clone()).collect();
    let own = for_arch(own, arch);
    let alone = own.len() == 1;
    let is_target = |file: &UpdateFile| alone || kb_from_filename(&file.name) == Some(kb);
    let targets = own.iter().filter(|file| is_target(file)).count();
    if targets != 1 {
        let names = names.join(", ");
        let problem = format!(
            "{targets} of the update's files are named after {kb} ({arch}), expected 1: {names}"
        );
        return Err(Problem::new("updates/no-target", problem));
    }
    let before = for_arch(before, arch);
    let stacks = before.into_iter().map(|file| (Role::ServicingStack, file));
    let own = own.into_iter().map(|file| {
        let role = if is_target(&file) {
            Role::Target
        } else {
            Role::Checkpoint
        };
        (role, file)
    });
    let mut members: Vec<UpdateSetFile> = stacks
        .chain(own)
        .map(|(role, file)| UpdateSetFile {
            size: size.filter(|_| role == Role::Target),
            role,
            file,
        })
        .collect();
    members.sort_by_key(|member| {
        let article = kb_from_filename(&member.file.name);
        (member.role, article.map(Kb::number))
    });
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> UpdateFile {
        UpdateFile {
            name: name.to_owned(),
            url: format!("http://download.windowsupdate.com/c/{name}"),
            digest: None,
        }
    }

    #[test]
    fn stacks_come_before_checkpoints_and_the_target_last() {
        let own = ["a-kb5120233.msu", "a-kb5043080.msu"].map(file).to_vec();
        let before = vec![file("a-kb5005112.msu")];
        let kb = "KB5120233".parse().unwrap();
        let members = in_order(kb, Arch::X64, own, Some(7), before).unwrap();
        let expected = [
            (Role::ServicingStack, "a-kb5005112.msu"),
            (Role::Checkpoint, "a-kb5043080.msu"),
            (Role::Target, "a-kb5120233.msu"),
        ];
        let expected = expected.map(|(role, name)| UpdateSetFile {
            file: file(name),
            role,
            size: None,
        });
        assert_eq!(members, expected);
    }

    #[test]
    fn a_lone_file_is_the_update_whatever_its_name() {
        let kb = "KB5120233".parse().unwrap();
        let ordered = |names: &[&str]| {
            let files = names.iter().map(|name| file(name)).collect();
            in_order(kb, Arch::X64, files, Some(7), Vec::new())
        };
        let members = ordered(&["x.msu"]).unwrap();
        assert_eq!((members[0].role, members[0].size), (Role::Target, Some(7)));
        let refused = |names: &[&str]| ordered(names).unwrap_err().to_string();
        let none =
            "0 of the update's files are named after KB5120233 (x64), expected 1: x.msu, y.msu";
        assert_eq!(refused(&["x.msu", "y.msu"]), none);
        let two = ["a-kb5120233.msu", "b-kb5120233.msu"];
        assert!(refused(&two).starts_with("2 of "), "{}", refused(&two));
    }

    #[test]
    fn of_the_files_for_several_architectures_one_is_the_update() {
        let names = [
            "a-kb5120233-x64.msu",
            "a-kb5120233-arm64_1f.msu",
            "a-kb5043080-arm64.msu",
            "a-kb5043080-x64.msu",
        ];
        for (arch, own) in [(Arch::X64, [3, 0]), (Arch::Arm64, [2, 1])] {
            let kb = "KB5120233".parse().unwrap();
            let files = names.map(file).to_vec();
            let members = in_order(kb, arch, files, None, Vec::new()).unwrap();
            let found = members.iter().map(|member| member.file.name.as_str());
            assert_eq!(found.collect::<Vec<_>>(), own.map(|place| names[place]));
        }
    }
}
