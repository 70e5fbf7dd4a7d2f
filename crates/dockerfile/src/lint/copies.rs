//! Sources of `COPY` and `ADD`.

use wincimg_layer::dockerignore::FILE_NAME;
use wincimg_windows::quoting::exec_form;

use super::arrays::with_slashes;
use super::buildkit::requires_buildkit;
use super::comments::is_commented;
use super::prelude::*;
use super::words::has_drive;
use crate::instruction::CopyInstruction;
use crate::stages::{copy_target, count_matches, is_excluded, source_path};

/// Reports sources outside of the context.
pub(super) fn check_copy_source(it: &EvaluatedStep<'_>) -> Vec<Finding> {
    let InstructionKind::Copy(copy) = it.kind else {
        return Vec::new();
    };
    // The comment is why.
    if is_commented(it.step.instruction.text()) {
        return Vec::new();
    }
    if copy.from.is_some() {
        return Vec::from_iter(super::copied_files::check_stage_source(it, copy));
    }
    if let Some(message) = split_target(it.step, copy) {
        return vec![it.step.finding(message)];
    }
    if let Some(message) = weak_checksum(copy) {
        return vec![it.step.finding(message).of("invalid-instruction")];
    }
    let found = copy.sources.iter().filter_map(|source| {
        let problem = source_problem(it, copy, source);
        let found = problem.map(|message| it.step.finding(message));
        found.or_else(|| excluded_source(it, source))
    });
    found.chain(several_matches(it, copy)).collect()
}

/// Reports a source that the Dockerfile's folder has, and that its `.dockerignore` excludes.
fn excluded_source(it: &EvaluatedStep<'_>, source: &str) -> Option<Finding> {
    let file = it.linted.options.file.as_deref()?;
    // Few folders have one, and listing the context takes longer.
    if !file.with_file_name(FILE_NAME).is_file() {
        return None;
    }
    let expanded = it.expand(source)?;
    let is_literal = expanded.unset.is_empty() && !expanded.text.contains(['*', '?', '[']);
    // The trigger of a later build reads its context.
    if !is_literal || it.step.instruction.trigger().is_some() {
        return None;
    }
    let path = source_path(&expanded.text).ok()?;
    is_excluded(file, it.linted.file.text(), &path).then(|| {
        let message = format!("the .dockerignore excludes {path}, and the build does not find it");
        it.step.finding(message).warning()
    })
}

/// Reports a pattern with several matches in the Dockerfile's folder that is copied to one name.
fn several_matches(it: &EvaluatedStep<'_>, copy: &CopyInstruction) -> Option<Finding> {
    let file = it.linted.options.file.as_deref()?;
    let [source] = copy.sources.as_slice() else {
        return None;
    };
    let is_pattern = source.contains(['*', '?']) && !source.contains('[');
    let is_later = it.step.instruction.trigger().is_some();
    // BuildKit copies into a folder that the image has.
    if !is_pattern || is_later || requires_buildkit(it.linted) {
        return None;
    }
    let copy = it.expand_copy(copy)?;
    if copy_target(it.state, &copy).ok()?.is_folder {
        return None;
    }
    let pattern = source_path(copy.sources.first()?).ok()?;
    let count = count_matches(file, it.linted.file.text(), &pattern);
    let message = format!(
        "{source} matches {count} files and folders, and Docker copies several only into a folder: \
         name one file, or end {} with /",
        copy.target
    );
    (count > 1).then(|| it.step.finding(message).warning())
}

/// Message about a target in the image that ends at its first space.
fn split_target(step: &LintStep<'_>, copy: &CopyInstruction) -> Option<String> {
    let (_, others) = copy.sources.split_first()?;
    let at = others.iter().position(|source| has_drive(source))? + 1;
    let (sources, path) = copy.sources.split_at(at);
    let (begin, rest) = path.split_first()?;
    let rest = rest.iter().chain([&copy.target]);
    let is_rest =
        |word: &String| !has_drive(word) && !word.starts_with(['.', '/', '\\', '$', '"', '\'']);
    // A folder or a file is a path of its own, and not the begin of a longer one.
    let is_whole = begin.ends_with(['/', '\\']) || file_name(begin).contains('.');
    if step.instruction.exec_form().is_some() || is_whole || !rest.clone().all(is_rest) {
        return None;
    }
    let target = rest.fold(begin.clone(), |path, word| format!("{path} {word}"));
    let mut words = sources.to_vec();
    words.push(target);
    let keyword = &step.instruction.keyword;
    let array = with_slashes(step, exec_form(&words));
    Some(format!(
        "{keyword} separates its arguments at spaces, and a path with one requires an array: write \
         {keyword} {array}"
    ))
}

/// Message about an algorithm that `--checksum` does not take.
fn weak_checksum(copy: &CopyInstruction) -> Option<String> {
    let (algorithm, _) = copy.checksum.as_deref()?.split_once(':')?;
    let is_known = matches!(algorithm, "sha256" | "sha384" | "sha512") || algorithm.contains('$');
    let message = || format!("--checksum takes sha256, sha384 or sha512, and not {algorithm}");
    (!is_known).then(message)
}

/// Reason why an instruction cannot read a source.
fn source_problem(it: &EvaluatedStep<'_>, copy: &CopyInstruction, source: &str) -> Option<String> {
    let keyword = &it.step.instruction.keyword;
    let expanded = it.expand(source)?;
    let text = expanded.text.replace('\\', "/");
    let is_known = expanded.unset.is_empty();
    let is_share = source.starts_with("\\\\") && text.starts_with("//");
    let is_address = text.starts_with("https://") || text.starts_with("http://");
    let is_repository = if is_address {
        has_extension(&text, &["git"])
    } else {
        text.starts_with("git@") && text.contains(':')
    };
    Some(if is_repository && !copy.is_add {
        format!(
            "COPY reads files of the build context, and not the repository {source}: clone it before \
             the build, and copy its folder"
        )
    } else if is_address && !copy.is_add {
        format!("COPY does not download {source}: write ADD")
    } else if text.starts_with("file://") {
        format!(
            "{keyword} takes \"{source}\" for a path of the build context: write one relative to the \
             context"
        )
    } else if has_drive(&text) && is_known {
        format!(
            "{keyword} reads \"{source}\" from the build context, which has no drives: write a \
             path relative to the context"
        )
    } else if is_share && is_known {
        format!(
            "{keyword} reads \"{source}\" from the build context, and not from a share: copy the \
             file into the context"
        )
    } else if matches!(source, "-r" | "-R" | "-rf" | "-a") {
        format!(
            "{keyword} takes {source} for the name of a file: omit it, as folders are copied whole"
        )
    } else if text == ".." || text.starts_with("../") {
        format!("\"{source}\" is outside of the build context, where {keyword} cannot read")
    } else {
        return None;
    })
}

/// Reports zip files that `ADD` puts into a folder, where it unpacks only tar archives.
pub(super) fn check_zip(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let is_zip = |word: &&str| word.to_ascii_lowercase().ends_with(".zip");
    let mut words = step.instruction.text().split_whitespace();
    let source = words.next().filter(is_zip).filter(|_| step.is("ADD"))?;
    let name = file_name(source).to_ascii_lowercase();
    let uses = stage.steps.iter().filter(|other| {
        let text = other.lower_text();
        text.contains(&name) || text.contains("expand-archive") || text.contains("*.zip")
    });
    let is_named = words.next_back().is_some_and(|target| is_zip(&target));
    let message = "ADD unpacks tar archives and copies a zip as it is: unpack it with tar -xf, or \
        Expand-Archive";
    (!is_named && uses.take(2).count() == 1).then(|| step.finding(message))
}
