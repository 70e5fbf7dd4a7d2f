//! Prerequisites of updates: servicing stacks that are separate, or in the update but to be
//! installed first.

use std::sync::LazyLock;

use super::table::{TableError, TableRow, embedded};
use super::update::Kb;
use super::version::WindowsVersion;

/// Prerequisite of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prerequisite {
    build: u32,
    from: u32,
    /// The update that contains it, if it is separate.
    pub kb: Option<Kb>,
    /// The required servicing stack.
    pub stack: Option<WindowsVersion>,
}

static PREREQUISITES: LazyLock<Vec<Prerequisite>> =
    LazyLock::new(|| embedded(include_str!("data/prerequisites.tsv"), read_row));

/// The prerequisite of the update to a version.
pub fn for_version(version: WindowsVersion) -> Option<&'static Prerequisite> {
    PREREQUISITES.iter().rfind(|row| {
        row.build == version.build && version.revision.is_some_and(|own| own >= row.from)
    })
}

fn read_row(row: &mut TableRow<'static>) -> Result<Prerequisite, TableError> {
    let prerequisite = Prerequisite {
        build: row.value("build")?,
        from: row.value("revision")?,
        kb: row.optional("KB number")?,
        stack: row.optional("servicing stack")?,
    };
    // The source is for readers of the table.
    row.text("source")?;
    Ok(prerequisite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::Updates;

    #[test]
    fn every_row_is_of_a_listed_build_and_needs_something() {
        assert!(!PREREQUISITES.is_empty());
        for row in PREREQUISITES.iter() {
            let first = WindowsVersion::new(row.build, row.from);
            assert!(Updates::embedded().exact(first).is_some(), "{row:?}");
            assert!(row.kb.is_some() || row.stack.is_some(), "{row:?}");
            let order = |row: &Prerequisite| (row.build, row.from);
            assert!(PREREQUISITES.is_sorted_by(|a, b| order(a) < order(b)));
            assert!(
                row.stack.is_none_or(|stack| stack.build == row.build),
                "{row:?}"
            );
        }
    }

    #[test]
    fn updates_need_the_stack_of_their_time() {
        let needed = |build, revision| {
            for_version(WindowsVersion::new(build, revision))
                .map(|row| (row.kb.map(|kb| kb.to_string()), row.stack))
        };
        assert_eq!(needed(17763, 1158), None);
        let kb = |article: &str| Some((Some(article.to_owned()), None));
        assert_eq!(needed(17763, 1879), None);
        assert_eq!(needed(17763, 1911), kb("KB5001407"));
        assert_eq!(needed(17763, 1971), kb("KB5003243"));
        assert_eq!(needed(17763, 2091), kb("KB5003243"));
        assert_eq!(needed(17763, 9245), kb("KB5005112"));
        assert_eq!(needed(14393, 2273), None);
        assert_eq!(needed(14393, 2312), kb("KB4132216"));
        assert_eq!(needed(14393, 3929), kb("KB4550994"));
        assert_eq!(needed(14393, 9514), kb("KB5073447"));
        let stack = Some(WindowsVersion::new(20348, 1960));
        assert_eq!(needed(20348, 5622), Some((None, stack)));
        assert_eq!(needed(26100, 33451), None);
    }
}
