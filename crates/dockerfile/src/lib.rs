//! Dockerfiles for Windows images: parsed, evaluated, converted, linted, and rendered from plans.
//!
//! `source` joins lines as the daemon does, [`instruction`] parses instructions, [`expand`]
//! expands variables, and [`stages`] evaluates the instructions; `wincimg_scripts` determines the
//! effects of `RUN` lines without running them.
//!
//! [`convert`] writes the equivalent recipe.
//!
//! [`render()`] fills the templates and returns the build context. Commands are in exec form with
//! full paths, so that they do not depend on a shell or the base image.
//!
//! ```
//! use wincimg_dockerfile::lint::{LintOptions, lint};
//!
//! let file = r#"
//! FROM mcr.microsoft.com/windows/servercore:ltsc2022
//! SHELL ["powershell", "-Command"]
//! RUN appcmd set config "Default Web Site" /section:httpLogging /dontLog:true
//! "#;
//! let findings = lint(file, &LintOptions::default()).findings;
//! let rules: Vec<_> = findings.iter().map(|finding| finding.rule.name).collect();
//! assert!(rules.contains(&"quotes-under-powershell"));
//! ```

// `#[test]` of the test kit.
#[cfg(test)]
#[macro_use]
extern crate wincimg_testkit;

mod context;
pub mod convert;
pub mod expand;
pub mod instruction;
pub mod lint;
mod names;
mod output;
mod quote;
mod registry;
mod render;
mod source;
pub mod stages;
mod templates;

pub use context::{ContextContent, ContextEntry};
pub use names::DockerfileNames;
pub use output::{DOCKERFILE, foreign_file};
pub use render::{RenderedDockerfile, check_renderable, render};
pub use source::has_from;

#[cfg(test)]
mod tests;

#[cfg(test)]
fn main() -> std::process::ExitCode {
    wincimg_testkit::harness::main()
}
