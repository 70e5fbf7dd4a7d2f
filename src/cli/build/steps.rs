//! Steps of a Dockerfile that run on Windows: where each step runs.

use wincimg_dockerfile::stages::{StepEngine, StepPlacement};
use wincimg_engine::hybrid::CacheRepository;

use super::daemon::Worker;
use crate::cli::prelude::*;

/// Parses `HOST[:PORT]/REPOSITORY`.
pub(super) fn cache_repository(text: &str) -> Result<CacheRepository, String> {
    let expected = || {
        format!(
            "invalid repository {}: expected HOST[:PORT]/REPOSITORY",
            QuotedText(text)
        )
    };
    let name = text.rsplit('/').next().unwrap_or_default();
    if name.contains([':', '@']) || !text.contains('/') {
        return Err(expected());
    }
    let reference = parse_reference(text).map_err(|error| error.to_string())?;
    CacheRepository::of_reference(&reference).ok_or_else(expected)
}

/// Writes where each step runs, if one of them does not run here; the daemon; and where the images
/// below and above those are.
pub(super) fn write_steps(
    steps: &[StepPlacement],
    worker: Option<&Worker>,
    place: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if steps.iter().all(|step| step.engine == StepEngine::Direct) {
        return Ok(());
    }
    let width = steps.iter().map(|step| step.line.to_string().len()).max();
    let width = width.unwrap_or_default();
    for step in steps {
        let engine = step.engine.name();
        let text = UntrustedText(&step.text);
        writeln!(out, "line {:>width$}  {engine:<7}  {text}", step.line)?;
        if let Some(reason) = &step.reason {
            writeln!(out, "{:>width$}  {:<12}  {}", "", "", UntrustedText(reason))?;
        }
    }
    if let Some(worker) = worker {
        writeln!(out, "windows: {}", UntrustedText(worker))?;
    }
    if let Some(place) = place {
        writeln!(out, "images below and above these lines: {place}")?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_has_no_tag() {
        let name = |text: &str| cache_repository(text).map(|it| (it.registry.to_string(), it.name));
        assert_eq!(
            name("repo.lan:5000/apps/web"),
            Ok(("repo.lan:5000/apps".to_owned(), "web".to_owned()))
        );
        assert_eq!(
            name("repo.lan:5000/web"),
            Ok(("repo.lan:5000".to_owned(), "web".to_owned()))
        );
        for text in ["repo.lan:5000/web:1.4", "repo.lan:5000/", "Repo/Web"] {
            assert!(cache_repository(text).is_err(), "{text}");
        }
    }
}
