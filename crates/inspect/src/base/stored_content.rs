//! The files whose content is stored, because wincimg writes new versions of them.

/// Longer files are not stored; the longest of IIS is its schema, with 70 KiB.
pub(super) const LONGEST: u64 = 4 << 20;

/// Folders below `Files` and the suffixes of the file names.
const KEPT: [(&str, &str); 3] = [
    ("Windows/System32/inetsrv/config", ".config"),
    ("Windows/System32/inetsrv/config/schema", ".xml"),
    ("inetpub/wwwroot", "web.config"),
];

/// Names in Windows' component store, of which those above may be hard links.
const IN_STORE: [&str; 3] = ["_schema.xml", "rscaext.xml", ".config"];

pub(super) fn has_stored_content(path: &str) -> bool {
    let Some((folder, name)) = path.rsplit_once('/') else {
        return false;
    };
    KEPT.iter()
        .any(|(kept, ending)| folder.eq_ignore_ascii_case(kept) && ends_with(name, ending))
}

/// Returns true if a file with stored content may be a hard link to this one.
pub(super) fn may_have_stored_content(path: &str) -> bool {
    const STORE: &str = "Windows/WinSxS/";
    path.get(..STORE.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(STORE))
        && IN_STORE.iter().any(|ending| ends_with(path, ending))
}

fn ends_with(name: &str, ending: &str) -> bool {
    let start = name.len().checked_sub(ending.len());
    start
        .and_then(|start| name.get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_configures_iis_is_kept() {
        for path in [
            "Windows/System32/inetsrv/config/applicationHost.config",
            "windows/system32/INETSRV/Config/Schema/IIS_schema.XML",
            "inetpub/wwwroot/web.config",
        ] {
            assert!(has_stored_content(path), "{path}");
        }
        for path in [
            "Windows/System32/inetsrv/config/x.dll",
            "Windows/System32/inetsrv/config/Export/x.config",
            "web.config",
            "inetpub/wwwroot/iisstart.htm",
        ] {
            assert!(!has_stored_content(path), "{path}");
        }
        let may = |name: &str| may_have_stored_content(&format!("Windows/WinSxS/iis_31bf/{name}"));
        assert!(may("iis_schema.xml") && !may("iis.dll"));
    }
}
