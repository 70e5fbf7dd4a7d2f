//! Layers that can be told to be safe without a look into any base.

use crate::inspect::touched::{Touch, Touched, TouchedFile};
use crate::oci::reference::Reference;
use crate::windows::path::{TOP_FOLDERS, name_problem};

/// Repositories of Windows alone, with no program above it.
const PLAIN: [&str; 4] = [
    "windows/nanoserver",
    "windows/servercore",
    "windows/server",
    "windows",
];

/// What Windows has at the top of its drive besides [`TOP_FOLDERS`].
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

/// Whether a layer stays in folders of its own at the top of the drive, above a base that is Windows
/// alone: servicing has nothing there. Files right at the top, deletions and keys want a look.
pub(in crate::engine::update) fn is_apart(touched: &Touched, base: &Reference) -> bool {
    let path = base.repository();
    let is_plain = PLAIN.iter().any(|plain| {
        let before = path.strip_suffix(plain);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    });
    is_plain
        && touched.strange.is_empty()
        && touched.keys.is_empty()
        && touched.files.iter().all(is_in_own_folder)
}

fn is_in_own_folder(file: &TouchedFile) -> bool {
    let (top, below) = file.path.split_once('/').unwrap_or((&file.path, ""));
    let mut known = TOP_FOLDERS.iter().chain(&OTHERS);
    let is_own = !top.starts_with('$')
        // `PROGRA~1` is another name of a folder of Windows.
        && !top.contains('~')
        && name_problem(top).is_none()
        && !known.any(|known| known.eq_ignore_ascii_case(top));
    let is_within = !below.is_empty() || matches!(file.touch, Touch::Folder { .. });
    match &file.touch {
        Touch::HardLink(target) => {
            let target = target.split('/').next().unwrap_or_default();
            is_own && is_within && target.eq_ignore_ascii_case(top)
        }
        // What is deleted below a folder of its own is of a layer below.
        _ => is_own && is_within,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::oci::reference::parse_reference;

    fn layer(paths: &[(&str, Touch)]) -> Touched {
        let files = paths.iter().map(|(path, touch)| TouchedFile {
            path: (*path).into(),
            touch: touch.clone(),
        });
        Touched {
            files: files.collect(),
            ..Touched::default()
        }
    }

    fn folder() -> Touch {
        Touch::Folder { rights: None }
    }

    #[test]
    fn a_layer_in_folders_of_its_own_over_windows_alone_needs_no_look() {
        let nano = parse_reference("mcr.microsoft.com/windows/nanoserver:ltsc2019").unwrap();
        let aspnet = parse_reference("mcr.microsoft.com/dotnet/aspnet:8.0").unwrap();
        let app = layer(&[("app", folder()), ("app/a.dll", Touch::Link)]);
        assert!(is_apart(&app, &nano));
        assert!(!is_apart(&app, &aspnet), "a base may have programs there");
        for (path, touch) in [
            ("Windows", folder()),
            ("windows/System32/a.dll", Touch::Link),
            ("PROGRA~1/a", Touch::Link),
            ("$Recycle.Bin/a", Touch::Link),
            ("license.txt", Touch::Link),
            ("app.exe", Touch::Link),
            ("app", Touch::Deleted),
            ("app/b", Touch::HardLink("Windows/explorer.exe".into())),
            ("Users/ContainerUser/a", Touch::Link),
        ] {
            assert!(!is_apart(&layer(&[(path, touch)]), &nano), "{path}");
        }
        let link = Touch::HardLink("app/a".into());
        assert!(is_apart(
            &layer(&[("app/b", link), ("app/c", Touch::Deleted)]),
            &nano
        ));
    }
}
