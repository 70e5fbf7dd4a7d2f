//! Layers that are safe on any base, without reading one.

use wincimg_inspect::LayerChange;
use wincimg_inspect::layer_diff::{FileDiff, LayerDiff};
use wincimg_windows::path::{TOP_FOLDERS, name_problem};
use wincimg_windows::version::WindowsVersion;

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
/// alone that is enough: servicing has nothing there. Files at the top level, deletions, keys and
/// files of the base's Windows must be compared.
pub(in crate::update) fn is_independent(touched: &LayerDiff, base: Option<WindowsVersion>) -> bool {
    touched.strange.is_empty()
        && touched.keys.is_empty()
        && touched
            .files
            .iter()
            .all(|file| is_in_own_folder(file) && !is_of_windows(file, base))
}

/// Returns true if servicing of a base most likely changes files like this one. Windows' development
/// kits have files of Windows that programs bring along, of the first revision.
pub(super) fn is_of_windows(file: &FileDiff, base: Option<WindowsVersion>) -> bool {
    const WINDOWS: &str = "windows/";
    let version = file.windows.as_deref().and_then(|text| text.parse().ok());
    let (Some(version), Some(base)) = (version, base) else {
        return false;
    };
    let version: WindowsVersion = version;
    let start = file.path.get(..WINDOWS.len()).unwrap_or_default();
    let is_at_home = start.eq_ignore_ascii_case(WINDOWS);
    version.build == base.build && (is_at_home || version.revision > Some(1))
}

fn is_in_own_folder(file: &FileDiff) -> bool {
    let (top, below) = file.path.split_once('/').unwrap_or((&file.path, ""));
    let mut known = TOP_FOLDERS.iter().chain(&OTHERS);
    let is_own = !top.starts_with('$')
        // `PROGRA~1` is another name of a folder of Windows.
        && !top.contains('~')
        && name_problem(top).is_none()
        && !known.any(|known| known.eq_ignore_ascii_case(top));
    let is_within = !below.is_empty() || matches!(file.touch, LayerChange::Folder(_));
    match &file.touch {
        LayerChange::HardLink(target) => {
            let target = target.split('/').next().unwrap_or_default();
            is_own && is_within && target.eq_ignore_ascii_case(top)
        }
        // A deletion below an own folder is of a lower layer's file.
        _ => is_own && is_within,
    }
}

#[cfg(test)]
mod tests {
    use wincimg_inspect::layer_diff::ContentHash;

    use super::*;

    type Touch = LayerChange<ContentHash, (), Option<ContentHash>>;

    fn layer(paths: &[(&str, Touch)]) -> LayerDiff {
        let files = paths.iter().map(|(path, touch)| FileDiff {
            path: (*path).into(),
            touch: touch.clone(),
            windows: None,
        });
        LayerDiff {
            files: files.collect(),
            ..LayerDiff::default()
        }
    }

    fn folder() -> Touch {
        LayerChange::Folder(None)
    }

    #[test]
    fn what_stays_in_folders_of_its_own_is_distinguished_from_what_does_not() {
        let app = layer(&[("app", folder()), ("app/a.dll", LayerChange::Link(()))]);
        assert!(is_independent(&app, None));
        for (path, touch) in [
            ("Windows", folder()),
            ("windows/System32/a.dll", LayerChange::Link(())),
            ("PROGRA~1/a", LayerChange::Link(())),
            ("$Recycle.Bin/a", LayerChange::Link(())),
            ("license.txt", LayerChange::Link(())),
            ("app.exe", LayerChange::Link(())),
            ("app", LayerChange::Deleted),
            (
                "app/b",
                LayerChange::HardLink("Windows/explorer.exe".into()),
            ),
            ("Users/ContainerUser/a", LayerChange::Link(())),
        ] {
            assert!(!is_independent(&layer(&[(path, touch)]), None), "{path}");
        }
        let link = LayerChange::HardLink("app/a".into());
        let linked = layer(&[("app/b", link), ("app/c", LayerChange::Deleted)]);
        assert!(is_independent(&linked, None));
    }

    #[test]
    fn a_file_of_the_bases_windows_is_distinguished_from_one_that_programs_include() {
        let base = Some(WindowsVersion::new(17763, 973));
        for (path, version, expected) in [
            ("app/gdi32.dll", "10.0.17763.973", true),
            ("app/gdi32.dll", "10.0.17763.1", false),
            ("app/gdi32.dll", "10.0.20348.587", false),
            ("app/gdi32.dll", "not a version", false),
            ("WINDOWS/System32/netapi32.dll", "10.0.17763.1", true),
        ] {
            let mut layer = layer(&[(path, LayerChange::File(ContentHash::from_bytes(b"x")))]);
            layer.files[0].windows = Some(version.into());
            let found = is_of_windows(&layer.files[0], base);
            assert_eq!(found, expected, "{path} {version}");
            assert!(!(found && is_independent(&layer, base)));
        }
    }
}
