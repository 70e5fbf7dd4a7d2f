//! Errors of images in local files: layouts and docker-archives.

use std::fmt::Display;
use std::io;
use std::path::Path;

use wincimg_common::diagnose::Problem;
use wincimg_common::shell::{command_line, quote};

pub(super) struct LocalImages {
    noun: &'static str,
    scheme: &'static str,
    /// Code of errors for what is of another kind, or damaged.
    pub(super) code: &'static str,
    not_found_code: &'static str,
    several_code: &'static str,
}

pub(super) static LAYOUT: LocalImages = LocalImages {
    noun: "an OCI layout",
    scheme: "oci",
    code: "layout/invalid",
    not_found_code: "layout/not-found",
    several_code: "layout/several-images",
};

pub(super) static ARCHIVE: LocalImages = LocalImages {
    noun: "a docker-archive",
    scheme: "docker-archive",
    code: "archive/invalid",
    not_found_code: "archive/not-found",
    several_code: "archive/several-images",
};

impl LocalImages {
    /// Error for what is of another kind, or damaged.
    pub(super) fn invalid(&self, path: &Path, reason: impl Display) -> Problem {
        self.unusable(path, format!("is not {}: {reason}", self.noun))
    }

    /// Error for a problem that follows the path in a sentence.
    pub(super) fn unusable(&self, path: &Path, problem: impl Display) -> Problem {
        Problem::new(self.code, format!("{} {problem}", path.display()))
    }

    /// Error for a tag or digest that is missing, or if there are no images at all.
    pub(super) fn not_found(&self, path: &Path, wanted: Option<&str>, known: &str) -> Problem {
        let path = path.display();
        let Some(wanted) = wanted else {
            let output = format!("{}:{path}", self.scheme);
            let build = command_line(&["wincimg", "build", "IMAGE", "--output", &output]);
            let hint = format!("write one: {build}");
            return Problem::new(self.not_found_code, format!("{path} has {known}")).hint(hint);
        };
        let problem = format!("{path} has no image {wanted:?}: it has {known}");
        Problem::new(self.not_found_code, problem)
    }

    /// Error for several images of which none was selected.
    pub(super) fn several_images(&self, path: &Path, known: &str) -> Problem {
        let path = path.display();
        let problem = format!("{path} contains several images: select one of {known}");
        let selected = quote(&format!("{}:{path}:NAME", self.scheme));
        Problem::request(self.several_code, problem).hint(format!("select an image: {selected}"))
    }

    pub(super) fn document(&self, what: impl Display, source: Problem) -> Problem {
        Problem::context(format!("cannot use {what}"), source).code(self.code)
    }

    /// Error for a file that cannot be read.
    pub(super) fn unreadable(&self, path: &Path) -> impl Fn(io::Error) -> Problem + use<> {
        let (code, problem) = (self.code, format!("cannot read {}", path.display()));
        move |error| Problem::new(code, problem.as_str()).source(error)
    }
}
