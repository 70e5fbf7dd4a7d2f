//! The security descriptors of the entries, in the base64 of `MSWINDOWS.rawsd`.

use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use wincimg_registry::security::{
    DIRECTORY_SDDL, DescriptorLayout, FILE_SDDL, SecurityDescriptor, UnreadableDescriptor,
    layer_descriptor,
};

pub(super) static DIRECTORY: LazyLock<Security> =
    LazyLock::new(|| Security::from(layer_descriptor(DIRECTORY_SDDL).as_slice()));

pub(super) static FILE: LazyLock<Security> =
    LazyLock::new(|| Security::from(layer_descriptor(FILE_SDDL).as_slice()));

/// The security descriptor of an entry; many entries share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Security(Arc<str>);

impl Security {
    pub(super) fn base64(&self) -> &str {
        &self.0
    }

    /// Decodes the descriptor.
    pub(super) fn descriptor(&self) -> Result<SecurityDescriptor, UnreadableDescriptor> {
        SecurityDescriptor::from_bytes(&self.bytes())
    }

    /// The self-relative form.
    pub(super) fn bytes(&self) -> Vec<u8> {
        BASE64_STANDARD
            .decode(self.0.as_bytes())
            .unwrap_or_default()
    }
}

impl From<&[u8]> for Security {
    /// From the self-relative form.
    fn from(bytes: &[u8]) -> Self {
        Self(BASE64_STANDARD.encode(bytes).into())
    }
}

impl From<&SecurityDescriptor> for Security {
    fn from(descriptor: &SecurityDescriptor) -> Self {
        Self::from(descriptor.to_bytes(DescriptorLayout::OwnerFirst).as_slice())
    }
}

#[cfg(test)]
mod tests {
    /// The texts that `BuildKit` writes, whose images are known to run.
    const DIRECTORY: &str = "AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgCoAAcAAAAAAxgA/wEfAAECAAAAAAAFIAAAACACAAAAAxQA/wEfAAEBAAAAAAAFEgAAAAAAGAD/AR8AAQIAAAAAAAUgAAAAIAIAAAALFAAAAAAQAQEAAAAAAAMAAAAAAAMYAKkAEgABAgAAAAAABSAAAAAhAgAAAAIYAAQAAAABAgAAAAAABSAAAAAhAgAAAAIYAAIAAAABAgAAAAAABSAAAAAhAgAA";
    const FILE: &str = "AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgBMAAMAAAAAABgA/wEfAAECAAAAAAAFIAAAACACAAAAABQA/wEfAAEBAAAAAAAFEgAAAAAAGACpABIAAQIAAAAAAAUgAAAAIQIAAA==";

    #[test]
    fn the_descriptors_are_those_that_windows_is_known_to_take() {
        assert_eq!(super::DIRECTORY.base64(), DIRECTORY);
        assert_eq!(super::FILE.base64(), FILE);
    }
}
