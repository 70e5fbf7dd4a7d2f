//! Build arguments: given with the request, declared before the first stage, or predefined.

use std::collections::HashMap;

use wincimg_common::untrusted::UntrustedText;
use wincimg_windows::quoting::Escape;

use crate::expand::{ExpandedWord, Lexer};

/// Build arguments of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct BuildArguments {
    /// Values of the request.
    pub(crate) given: Vec<(String, String)>,
    /// Declared before the first stage.
    global: HashMap<String, Option<String>>,
    /// True if names have no case, as for a daemon on Windows. The lint, with the default, tells them
    /// apart like `BuildKit` on Linux.
    pub(super) ignores_case: bool,
}

impl BuildArguments {
    pub(crate) fn new(given: Vec<(String, String)>) -> Self {
        Self {
            given,
            global: HashMap::new(),
            ignores_case: true,
        }
    }

    /// Declares an argument before the first stage.
    pub(crate) fn declare(
        &mut self,
        name: &str,
        default: Option<&str>,
        escape: Escape,
    ) -> Result<(), String> {
        let value = match (self.argument(name), default) {
            (Some(given), _) => Some(given),
            (None, Some(text)) => Some(self.expand(text, escape)?.text),
            // BuildKit keeps what it has, also a predefined value.
            (None, None) => self.global(name),
        };
        self.global.insert(name.to_owned(), value);
        Ok(())
    }

    /// Expands a word before or in `FROM`, where only these arguments are set.
    pub(crate) fn expand(&self, text: &str, escape: Escape) -> Result<ExpandedWord, String> {
        let value = |name: &str| self.global(name);
        let expanded = Lexer::new(escape).expand(text, &value);
        expanded.map_err(|error| format!("{}: {error}", UntrustedText(text)))
    }

    /// True if an argument is declared before the first stage.
    pub(crate) fn is_declared(&self, name: &str) -> bool {
        self.global.contains_key(name)
    }

    /// Own spelling of an argument before the first stage, by its name in any case.
    pub(crate) fn spelling(&self, name: &str) -> Option<&str> {
        let mut names = self.global.keys();
        let found = names.find(|known| known.eq_ignore_ascii_case(name));
        found.map(String::as_str)
    }

    /// Value of the request.
    pub(crate) fn argument(&self, name: &str) -> Option<String> {
        let mut given = self.given.iter().rev();
        given
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    }

    /// Value of an argument before the first stage whose name differs in its case.
    fn in_any_case(&self, name: &str) -> Option<String> {
        let all = self.global.iter();
        let named = all.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        // The map has no order, and builds are to be the same.
        named.filter_map(|(_, value)| value.clone()).min()
    }

    /// Value of an argument before the first stage, or of a predefined one.
    pub(crate) fn global(&self, name: &str) -> Option<String> {
        if let Some(value) = self.global.get(name) {
            return value.clone();
        }
        let own = match std::env::consts::OS {
            "windows" => "windows",
            _ => "linux",
        };
        let always = match name {
            "TARGETPLATFORM" => "windows/amd64",
            "TARGETOS" => "windows",
            "TARGETARCH" | "BUILDARCH" => "amd64",
            "TARGETVARIANT" | "BUILDVARIANT" => "",
            "BUILDPLATFORM" if own == "windows" => "windows/amd64",
            "BUILDPLATFORM" => "linux/amd64",
            "BUILDOS" => own,
            _ => return self.in_any_case(name).filter(|_| self.ignores_case),
        };
        Some(self.argument(name).unwrap_or_else(|| always.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_that_is_declared_without_a_value_keeps_its_own() {
        let given = [("TARGETARCH".to_owned(), "arm64".to_owned())];
        let mut arguments = BuildArguments::new(given.to_vec());
        for (name, default) in [
            ("TARGETPLATFORM", None),
            ("TARGETARCH", None),
            ("TARGETOS", Some("other")),
            ("OWN", Some("1")),
            ("OWN", None),
            ("NONE", None),
        ] {
            let declared = arguments.declare(name, default, Escape::Backslash);
            declared.unwrap();
        }
        for (name, expected) in [
            ("TARGETPLATFORM", Some("windows/amd64")),
            ("TARGETARCH", Some("arm64")),
            ("TARGETOS", Some("other")),
            ("OWN", Some("1")),
            ("NONE", None),
        ] {
            assert_eq!(arguments.global(name).as_deref(), expected, "{name}");
        }
    }
}
