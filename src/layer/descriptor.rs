//! The security descriptors of the entries, in the base64 that `MSWINDOWS.rawsd` carries.

use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::windows::security;

pub(super) static DIRECTORY: LazyLock<String> =
    LazyLock::new(|| BASE64_STANDARD.encode(security::directory_descriptor()));

pub(super) static FILE: LazyLock<String> =
    LazyLock::new(|| BASE64_STANDARD.encode(security::file_descriptor()));

#[cfg(test)]
mod tests {
    /// The texts that `BuildKit` writes, whose images run.
    const DIRECTORY: &str = "AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgCoAAcAAAAAAxgA/wEfAAECAAAAAAAFIAAAACACAAAAAxQA/wEfAAEBAAAAAAAFEgAAAAAAGAD/AR8AAQIAAAAAAAUgAAAAIAIAAAALFAAAAAAQAQEAAAAAAAMAAAAAAAMYAKkAEgABAgAAAAAABSAAAAAhAgAAAAIYAAQAAAABAgAAAAAABSAAAAAhAgAAAAIYAAIAAAABAgAAAAAABSAAAAAhAgAA";
    const FILE: &str = "AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgBMAAMAAAAAABgA/wEfAAECAAAAAAAFIAAAACACAAAAABQA/wEfAAEBAAAAAAAFEgAAAAAAGACpABIAAQIAAAAAAAUgAAAAIQIAAA==";

    #[test]
    fn the_descriptors_are_those_that_windows_is_known_to_take() {
        assert_eq!(super::DIRECTORY.as_str(), DIRECTORY);
        assert_eq!(super::FILE.as_str(), FILE);
    }
}
