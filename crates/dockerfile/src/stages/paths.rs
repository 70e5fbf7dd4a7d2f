//! Paths of instructions, as Docker for Windows reads them: with either separator, with or without
//! the drive, relative to the working directory.

use wincimg_common::untrusted::UntrustedText;
use wincimg_windows::path::ImagePath;

/// Target of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyTarget {
    pub(crate) path: ImagePath,
    /// True if the path is written as a folder.
    pub(crate) is_folder: bool,
}

fn image_path(names: &[&str]) -> Result<ImagePath, String> {
    format!("C:/{}", names.join("/"))
        .parse()
        .map_err(|error: wincimg_windows::path::PathError| error.to_string())
}

/// Resolves a path in the image from the working directory.
pub(crate) fn target(working_dir: &ImagePath, text: &str) -> Result<CopyTarget, String> {
    let plain = without_drive(text)?;
    let mut names: Vec<&str> = Vec::new();
    if !plain.starts_with('/') {
        names.extend(working_dir.components().iter().map(String::as_str));
    }
    walk(&mut names, &plain);
    let last = plain.rsplit('/').next().unwrap_or_default();
    Ok(CopyTarget {
        path: image_path(&names)?,
        is_folder: matches!(last, "" | "." | ".."),
    })
}

/// Normalizes a source path or pattern: with slashes and from its root, which is empty.
pub(crate) fn source(text: &str) -> Result<String, String> {
    let plain = without_drive(text)?;
    let mut names = Vec::new();
    walk(&mut names, &plain);
    Ok(names.join("/"))
}

/// Follows a path name by name; `..` stops at the root.
fn walk<'a>(names: &mut Vec<&'a str>, path: &'a str) {
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
}

/// The path with slashes and without its drive, which must be C:.
fn without_drive(text: &str) -> Result<String, String> {
    let plain = text.replace('\\', "/");
    if plain.starts_with("//") {
        let text = UntrustedText(text);
        return Err(format!(
            "\"{text}\" is a network path: expected a path on C:"
        ));
    }
    match plain.split_once(':') {
        None => Ok(plain),
        Some(("c" | "C", inside)) => Ok(inside.to_owned()),
        Some(_) => Err(format!(
            "\"{}\" is not on C:, the only drive of an image",
            UntrustedText(text)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(working_dir: &str, text: &str) -> String {
        let target = target(&working_dir.parse().unwrap(), text).unwrap();
        let end = if target.is_folder { " folder" } else { "" };
        format!("{}{end}", target.path)
    }

    #[test]
    fn targets_are_read_from_the_working_directory_on_the_one_drive() {
        for (text, expected) in [
            ("app.exe", r"C:\site\app.exe"),
            (".", r"C:\site folder"),
            ("", r"C:\site folder"),
            ("./", r"C:\site folder"),
            (r"bin\", r"C:\site\bin folder"),
            ("bin/.", r"C:\site\bin folder"),
            ("../x", r"C:\x"),
            ("/app", r"C:\app"),
            (r"C:\app\", r"C:\app folder"),
            ("c:/app//x", r"C:\app\x"),
            ("C:x", r"C:\site\x"),
            ("C:", r"C:\site folder"),
            ("/", r"C:\ folder"),
            ("../../../x", r"C:\x"),
        ] {
            assert_eq!(at("/site", text), expected, "{text}");
        }
        for text in ["D:/x", r"\\server\share", "a?b", "x:y:z", "/con"] {
            assert!(target(&ImagePath::drive(), text).is_err(), "{text}");
        }
        let problem = target(&ImagePath::drive(), r"G:\").unwrap_err();
        assert!(problem.starts_with(r#""G:\" is not on C:"#), "{problem}");
    }

    #[test]
    fn sources_are_read_from_their_root() {
        for (text, expected) in [
            (".", ""),
            ("/", ""),
            (r"bin\Release\", "bin/Release"),
            ("../x", "x"),
            (r"C:\app\*.dll", "app/*.dll"),
            ("./a/./b/../c", "a/c"),
        ] {
            assert_eq!(source(text).unwrap(), expected, "{text}");
        }
    }
}
