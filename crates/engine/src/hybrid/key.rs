//! Key of the result of steps on Windows.

use serde_json::json;
use wincimg_common::digest::{Digest, sha256};
use wincimg_dockerfile::stages::WindowsSegment;

/// Raised when the same inputs are run in another way.
const EDITION: u32 = 2;

/// Digest of the image below, the Dockerfile with its escape directive, and the values of its build
/// arguments. It reads no other files: those of the build context are in the image below.
pub(super) fn segment_key(below: &Digest, segment: &WindowsSegment) -> Digest {
    let inputs = json!({
        "edition": EDITION,
        "below": below,
        "dockerfile": segment.dockerfile("").dockerfile,
        "arguments": segment.arguments,
    });
    sha256(inputs.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wincimg_common::files::TextFile;
    use wincimg_dockerfile::stages::{DockerfileRequest, Inputs, StageBase, Stages, WindowsInputs};
    use wincimg_oci::document::ContainerConfig;
    use wincimg_registry::UnknownBase;

    use super::*;

    const BASE: &str = "repo.lan/base:ltsc2022";

    /// The key of the only segment of a Dockerfile with these instructions.
    fn key(below: &str, text: &str, argument: &str) -> Digest {
        key_of_file(below, &format!("FROM {BASE}\n{text}"), argument)
    }

    fn key_of_file(below: &str, text: &str, argument: &str) -> Digest {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("Dockerfile");
        std::fs::write(&file, text).unwrap();
        let request = DockerfileRequest {
            skipped_actions: Vec::new(),
            choco_feed: None,
            file: TextFile::named(file),
            folder: folder.path().to_owned(),
            context: folder.path().to_owned(),
            target: None,
            arguments: vec![("A".to_owned(), argument.to_owned())],
            replacements: std::collections::BTreeMap::new(),
        };
        let stages = Stages::read(&request).unwrap();
        let base = StageBase {
            config: ContainerConfig::default(),
            inside: Arc::new(UnknownBase),
            has_user_variables: false,
        };
        let inputs = Inputs {
            bases: [(BASE.to_owned(), base)].into(),
            windows: Some(WindowsInputs::default()),
            ..Inputs::default()
        };
        let result = stages.evaluate(&inputs).unwrap();
        assert_eq!(result.segments.len(), 1);
        segment_key(&sha256(below.as_bytes()), &result.segments[0])
    }

    #[test]
    fn what_decides_the_result_decides_the_key() {
        let text = "ARG A\nRUN one.exe %A%\nLABEL x=y\n";
        let known = key("below", text, "1");
        // Neither the folder, nor comments, nor what follows.
        let commented = "ARG A\n# a comment\nRUN one.exe %A%\nLABEL x=z\n";
        assert_eq!(key("below", commented, "1"), known);
        for other in [
            key("other", text, "1"),
            key("below", text, "2"),
            key("below", "ARG A\nRUN two.exe %A%\n", "1"),
            key("below", "ARG A\nENV B=1\nRUN one.exe %A%\n", "1"),
        ] {
            assert_ne!(other, known);
        }
        // An argument that no line declares does not count.
        let plain = "RUN one.exe\n";
        assert_eq!(key("below", plain, "1"), key("below", plain, "2"));
    }

    #[test]
    fn an_escape_directive_is_another_key() {
        // Without the directive, the backslash joins the lines.
        let text = format!("FROM {BASE}\nRUN x.exe C:\\dir\\\nRUN x.exe two\n");
        let corrected = format!("# escape=`\n{text}");
        let key = |text: &str| key_of_file("below", text, "1");
        assert_ne!(key(&text), key(&corrected));
    }
}
