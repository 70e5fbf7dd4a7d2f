//! Layers that are safe on any base, without reading one.

use wincimg_inspect::layer_diff::{FileChange, FileDiff, LayerDiff};
use wincimg_windows::path::{TOP_FOLDERS, name_problem};

/// Top-level names of Windows' drive in addition to [`TOP_FOLDERS`].
const OTHERS: [&str; 8] = [
    "Boot",
    "Documents and Settings",
    "EFI",
    "License.txt",
    "PerfLogs",
    "Recovery",
    "System Volume Information",
    "WcSandboxState",
];

/// Returns true if a layer only touches top-level folders of its own. On a base that is Windows
/// alone that is enough: servicing has nothing there. Files at the top level, deletions and keys
/// must be compared.
pub(in crate::update) fn is_independent(touched: &LayerDiff) -> bool {
    touched.strange.is_empty()
        && touched.keys.is_empty()
        && touched.files.iter().all(is_in_own_folder)
}

fn is_in_own_folder(file: &FileDiff) -> bool {
    let (top, below) = file.path.split_once('/').unwrap_or((&file.path, ""));
    let mut known = TOP_FOLDERS.iter().chain(&OTHERS);
    let is_own = !top.starts_with('$')
        // `PROGRA~1` is another name of a folder of Windows.
        && !top.contains('~')
        && name_problem(top).is_none()
        && !known.any(|known| known.eq_ignore_ascii_case(top));
    let is_within = !below.is_empty() || matches!(file.touch, FileChange::Folder { .. });
    match &file.touch {
        FileChange::HardLink(target) => {
            let target = target.split('/').next().unwrap_or_default();
            is_own && is_within && target.eq_ignore_ascii_case(top)
        }
        // A deletion below an own folder is of a lower layer's file.
        _ => is_own && is_within,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(paths: &[(&str, FileChange)]) -> LayerDiff {
        let files = paths.iter().map(|(path, touch)| FileDiff {
            path: (*path).into(),
            touch: touch.clone(),
        });
        LayerDiff {
            files: files.collect(),
            ..LayerDiff::default()
        }
    }

    fn folder() -> FileChange {
        FileChange::Folder { rights: None }
    }

    #[test]
    fn what_stays_in_folders_of_its_own_is_told_from_what_does_not() {
        let app = layer(&[("app", folder()), ("app/a.dll", FileChange::Link)]);
        assert!(is_independent(&app));
        for (path, touch) in [
            ("Windows", folder()),
            ("windows/System32/a.dll", FileChange::Link),
            ("PROGRA~1/a", FileChange::Link),
            ("$Recycle.Bin/a", FileChange::Link),
            ("license.txt", FileChange::Link),
            ("app.exe", FileChange::Link),
            ("app", FileChange::Deleted),
            ("app/b", FileChange::HardLink("Windows/explorer.exe".into())),
            ("Users/ContainerUser/a", FileChange::Link),
        ] {
            assert!(!is_independent(&layer(&[(path, touch)])), "{path}");
        }
        let link = FileChange::HardLink("app/a".into());
        assert!(is_independent(&layer(&[
            ("app/b", link),
            ("app/c", FileChange::Deleted)
        ])));
    }
}
