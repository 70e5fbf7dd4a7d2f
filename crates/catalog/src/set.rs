//! The files of one update in install order: prerequisites, checkpoints, the update itself.

use serde::{Deserialize, Serialize};
use wincimg_common::diagnose::Problem;
use wincimg_windows::update::Kb;

use super::dialog::UpdateFile;
use super::msu::kb_from_filename;

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

/// Orders an update's files and its prerequisites. The size is that of the search result, which is
/// unknown for one file of several.
pub fn in_order(
    kb: Kb,
    own: Vec<UpdateFile>,
    size: Option<u64>,
    before: Vec<UpdateFile>,
) -> Result<Vec<UpdateSetFile>, Problem> {
    let alone = own.len() == 1;
    let is_target = |file: &UpdateFile| alone || kb_from_filename(&file.name) == Some(kb);
    if !own.iter().any(is_target) {
        let names: Vec<String> = own.into_iter().map(|file| file.name).collect();
        let problem = format!(
            "none of the update's {} files is named after {kb}: {}",
            names.len(),
            names.join(", ")
        );
        return Err(Problem::new("updates/no-target", problem));
    }
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
            size: size.filter(|_| alone && role == Role::Target),
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
        let members = in_order("KB5120233".parse().unwrap(), own, Some(7), before).unwrap();
        let shown: Vec<_> = members
            .iter()
            .map(|member| (member.role, member.file.name.as_str(), member.size))
            .collect();
        assert_eq!(
            shown,
            [
                (Role::ServicingStack, "a-kb5005112.msu", None),
                (Role::Checkpoint, "a-kb5043080.msu", None),
                (Role::Target, "a-kb5120233.msu", None),
            ]
        );
    }

    #[test]
    fn a_lone_file_is_the_update_whatever_its_name() {
        let kb = "KB5120233".parse().unwrap();
        let members = in_order(kb, vec![file("x.msu")], Some(7), Vec::new()).unwrap();
        assert_eq!((members[0].role, members[0].size), (Role::Target, Some(7)));
        let error = in_order(kb, vec![file("x.msu"), file("y.msu")], None, Vec::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "none of the update's 2 files is named after KB5120233: x.msu, y.msu"
        );
    }
}
