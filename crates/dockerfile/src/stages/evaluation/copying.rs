//! `COPY` and `ADD`.

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use wincimg_common::diagnose::error_chain;
use wincimg_common::digest::{Digest, Hasher};
use wincimg_common::untrusted::{QuotedText, public_url};
use wincimg_http::{download_url, name_in};
use wincimg_inspect::ExtractedEntry;
use wincimg_layer::dockerignore::IgnoreRules;
use wincimg_recipe::{DownloadRequest, FileSource, PlannedContent, PlannedDownload, PlannedLayer};
use wincimg_registry::Presence;
use wincimg_windows::path::ImagePath;
use wincimg_windows::quoting::Escape;

use super::super::copy::Draft;
use super::super::error::{StepError, Workaround};
use super::super::files::{Files, Folder, ImageSource, StageSource, fixed_part};
use super::super::paths::CopyTarget;
use super::super::run::downloads::check;
use super::super::run::{BaseFiles, ENTRY_SIZE, MOST_WRITTEN, WRITTEN_LIMIT};
use super::super::state::StageState;
use super::super::{copy, paths};
use super::Evaluation;
use crate::expand::Lexer;
use crate::instruction::{CopyInstruction, ParsedInstruction};

/// What `COPY` copies from.
enum CopyOrigin<'a> {
    Context,
    Folder(&'a Folder),
    Image(&'a str),
    Stage(Rc<StageState>),
}

impl<'a> Evaluation<'a> {
    pub(super) fn copy_or_postpone(
        &mut self,
        state: &mut StageState,
        step: &ParsedInstruction,
        copy: &CopyInstruction,
    ) -> Result<(), StepError> {
        let target = self.copy_target(state, step, copy);
        match target.and_then(|target| self.copy_to(state, step, copy, target)) {
            Err(error) if !error.is_independent => {
                let error = StepError {
                    is_independent: copy.from.is_none(),
                    ..error
                };
                self.postpone(state, step, copy_history(copy), error)
            }
            done => done,
        }
    }

    fn copy_to(
        &mut self,
        state: &mut StageState,
        step: &ParsedInstruction,
        copy: &CopyInstruction,
        target: CopyTarget,
    ) -> Result<(), StepError> {
        let stages = self.stages;
        let excluded = IgnoreRules::read(&copy.excluded.join("\n"), Path::new("--exclude"))
            .map_err(|error| error_chain(&error))?;
        let origin = self.copy_origin(state.index, copy)?;
        let mut made_there = None;
        let taken;
        let files: &dyn Files = match &origin {
            CopyOrigin::Context => &stages.context,
            CopyOrigin::Folder(folder) => *folder,
            CopyOrigin::Image(name) => {
                let Some(source) = self.image_source(name, copy)? else {
                    state.add_layer(copy_history(copy), PlannedLayer::default());
                    return Ok(());
                };
                taken = source;
                &taken
            }
            CopyOrigin::Stage(there) => {
                state.has_failed |= there.has_failed;
                state.is_postponed |= there.is_postponed;
                self.check_drive(there, copy)?;
                &*made_there.insert(StageSource {
                    tree: &there.tree,
                    name: &stages.all[there.index].name,
                    base: BaseFiles::of(there, self.inputs),
                })
            }
        };
        let mut draft = Draft::new(&state.tree, target, excluded);
        let done = self.copy_sources(&mut draft, files, step, copy);
        let lacking = made_there.map(|there| there.base.lacking.take());
        let lacking = lacking.filter(|lacking| !lacking.is_empty());
        if let (CopyOrigin::Stage(there), Some(lacking)) = (&origin, lacking) {
            self.copy_later(state, step, copy, &there.base_name, lacking);
            return Ok(());
        }
        done?;
        self.copy_documents(&mut draft, state, copy)?;
        let unknown = draft.unknown.take();
        let layer = PlannedLayer {
            entries: draft.into_entries(),
            ..PlannedLayer::default()
        };
        if matches!(origin, CopyOrigin::Stage(_)) {
            // Stages that copy each other's folders twice would double them.
            self.written += (layer.entries.len() * ENTRY_SIZE) as u64;
            if self.written > MOST_WRITTEN {
                return Err(format!("RUN and COPY --from write more than {WRITTEN_LIMIT}").into());
            }
        }
        let Some(path) = unknown else {
            state.add_layer(copy_history(copy), layer);
            return Ok(());
        };
        self.add_copy(state, step, copy, path, layer)
    }

    /// Adds a layer with a file at a path, unless the result of steps on Windows has a folder there:
    /// then the file is copied into it.
    fn add_copy(
        &mut self,
        state: &mut StageState,
        step: &ParsedInstruction,
        copy: &CopyInstruction,
        path: ImagePath,
        layer: PlannedLayer,
    ) -> Result<(), StepError> {
        if state.base_name == self.stages.base_of(state.index) {
            let problem = format!("it is unknown whether the base has the folder {path}");
            let written = &copy.target;
            let hint = format!("end the target with a separator if it is a folder: \"{written}/\"");
            return Err(StepError {
                workaround: Workaround::IndexBase(state.index),
                ..StepError::hinted(problem, hint)
            });
        }
        match self.is_folder_of_result(state, step, copy, &path) {
            Some(false) => state.add_layer(copy_history(copy), layer),
            Some(is_folder) => {
                return self.copy_to(state, step, copy, CopyTarget { path, is_folder });
            }
            None => {}
        }
        Ok(())
    }

    /// Returns whether steps on Windows made a folder at the target of a copy, which waits if that
    /// is not known yet.
    fn is_folder_of_result(
        &mut self,
        state: &mut StageState,
        step: &ParsedInstruction,
        copy: &CopyInstruction,
        path: &ImagePath,
    ) -> Option<bool> {
        let below = BaseFiles::of(state, self.inputs);
        let place = path.components().join("/");
        if let Some(files) = below.extracted(&place) {
            let found = files.get(&place);
            return Some(matches!(found, Some((_, ExtractedEntry::Folder))));
        }
        let (base, lacking) = (below.image.to_owned(), below.lacking.take());
        if self.pending.contains(&base) {
            self.make_unclear(state, step, copy_history(copy), path);
        } else {
            self.copy_later(state, step, copy, &base, lacking);
        }
        None
    }

    /// Adds a copy whose files are not known yet: those of a base are requested, those of steps on
    /// Windows come with a later evaluation.
    fn copy_later(
        &mut self,
        state: &mut StageState,
        step: &ParsedInstruction,
        copy: &CopyInstruction,
        base: &str,
        lacking: BTreeSet<String>,
    ) {
        if self.pending.contains(base) {
            self.make_unclear(state, step, copy_history(copy), &ImagePath::drive());
        } else {
            let all = self.result.lacking.entry(base.to_owned()).or_default();
            all.extend(lacking);
            state.add_layer(copy_history(copy), PlannedLayer::default());
        }
    }

    /// The target of a copy, with a note if only `BuildKit` takes it.
    fn copy_target(
        &mut self,
        state: &StageState,
        step: &ParsedInstruction,
        copy: &CopyInstruction,
    ) -> Result<CopyTarget, StepError> {
        let target = copy::any_target(state, copy).map_err(StepError::independent)?;
        let (target, is_for_buildkit) = target;
        if is_for_buildkit {
            let (place, written) = (self.stages.position(step), QuotedText(&copy.target));
            self.result.notes.push(format!(
                "{place}: several files to the folder {written} require BuildKit: end it with a \
                 separator"
            ));
        }
        Ok(target)
    }

    /// The files of another image; `None` if some must be extracted first, which is recorded.
    fn image_source<'c>(
        &mut self,
        name: &'c str,
        copy: &CopyInstruction,
    ) -> Result<Option<ImageSource<'c>>, StepError>
    where
        'a: 'c,
    {
        let known = self.inputs.files.get(name);
        let mut is_lacking = false;
        for source in &copy.sources {
            let pattern = paths::source(source)?;
            let place = fixed_part(&pattern);
            if place.is_empty() {
                let problem = format!("{} is the whole drive of {name}", QuotedText(source));
                return Err(StepError::hinted(problem, "specify a folder"));
            }
            if known.is_none_or(|known| !known.contains(place)) {
                let lacking = self.result.lacking.entry(name.to_owned()).or_default();
                lacking.insert(place.to_owned());
                is_lacking = true;
            }
        }
        let is_windows = self.stages.platform_of(name).is_none();
        Ok(known.filter(|_| !is_lacking).map(|files| ImageSource {
            files,
            name,
            is_windows,
        }))
    }

    /// Finds what an instruction copies from, and evaluates the stage if it is one.
    fn copy_origin<'c>(
        &mut self,
        index: usize,
        copy: &'c CopyInstruction,
    ) -> Result<CopyOrigin<'c>, StepError>
    where
        'a: 'c,
    {
        let stages = self.stages;
        let Some(from) = &copy.from else {
            return Ok(CopyOrigin::Context);
        };
        let Some(other) = stages.stage_before(index, from) else {
            stages.check_copy(index, copy)?;
            return Ok(CopyOrigin::Image(from));
        };
        let stage = &stages.all[other];
        if let Some(folder) = &stage.folder {
            return Ok(CopyOrigin::Folder(folder));
        }
        if stage.platform.is_some() {
            // A stage that is only a source of files stands for its image.
            return Ok(CopyOrigin::Image(stages.base_of(other)));
        }
        Ok(CopyOrigin::Stage(self.evaluate_stage(other)))
    }

    /// Refuses a source that requires listing the whole drive of a stage's base, or of what Windows
    /// made, which is never listed.
    fn check_drive(&self, state: &StageState, copy: &CopyInstruction) -> Result<(), StepError> {
        let name = &self.stages.all[state.index].name;
        let is_of_windows = self.is_of_windows_steps(&state.base_name);
        for source in &copy.sources {
            let pattern = paths::source(source)?;
            if pattern.is_empty() {
                let source = QuotedText(source);
                let problem = format!("{source} is the whole drive of the stage {name:?}");
                return Err(StepError {
                    is_independent: true,
                    ..StepError::hinted(problem, "specify a folder")
                });
            }
            let listed = state.tree.list_known(&ImagePath::drive());
            let listed = listed.map_err(|error| error_chain(&error))?;
            if fixed_part(&pattern).is_empty() && listed == Presence::Unknown {
                let problem = format!(
                    "what {} matches is unknown: the stage {name:?} has the drive of its base",
                    QuotedText(source)
                );
                let workaround = if is_of_windows {
                    Workaround::None
                } else {
                    Workaround::IndexBase(state.index)
                };
                return Err(StepError {
                    workaround,
                    is_independent: is_of_windows,
                    ..StepError::hinted(problem, "specify a folder or file")
                });
            }
        }
        Ok(())
    }

    /// Adds the here-documents of an instruction.
    fn copy_documents(
        &self,
        draft: &mut Draft<'_>,
        state: &StageState,
        copy: &CopyInstruction,
    ) -> Result<(), String> {
        for document in &copy.documents {
            let mut text = document.text.clone();
            if document.expands {
                let lexer = Lexer {
                    escape: Escape::Backslash,
                    keeps_quotes: true,
                };
                text = state.expand(lexer, &text, &self.stages.arguments)?.text;
            }
            let path = draft.file_target(&document.name)?;
            draft.insert(path, PlannedContent::File(FileSource::Text(text.into())))?;
        }
        Ok(())
    }

    /// Copies all sources. Of patterns, one has to match.
    fn copy_sources(
        &mut self,
        draft: &mut Draft<'_>,
        files: &dyn Files,
        step: &ParsedInstruction,
        copy: &CopyInstruction,
    ) -> Result<(), StepError> {
        let mut done = Ok(());
        let mut is_found = !copy.documents.is_empty();
        for source in &copy.sources {
            let copied = self.copy_source(draft, files, source, step, copy);
            done = done.and(copied.map(|found| is_found |= found));
        }
        done?;
        if !is_found {
            let sources = QuotedText(copy.sources.join(" "));
            return Err(StepError::independent(format!("{sources} matches nothing")));
        }
        Ok(())
    }

    /// Copies a source; false if it is a pattern that matches nothing.
    fn copy_source(
        &mut self,
        draft: &mut Draft<'_>,
        files: &dyn Files,
        source: &str,
        step: &ParsedInstruction,
        copy: &CopyInstruction,
    ) -> Result<bool, StepError> {
        if is_url(source) {
            self.add_url(draft, source, step, copy)?;
            return Ok(true);
        }
        checksum(copy)?;
        let pattern = paths::source(source)?;
        // As in Docker, a pattern may match nothing beside another source.
        let is_only = copy.sources.len() + copy.documents.len() == 1;
        let is_optional = !is_only && fixed_part(&pattern) != pattern;
        let found = if is_optional {
            files.search(&pattern)
        } else {
            files.matching(&pattern)
        };
        let found = found.map_err(|problem| match copy.from {
            // No line adds what the context lacks.
            None => StepError::independent(problem),
            Some(_) => problem.into(),
        })?;
        if copy.unpack.unwrap_or(copy.is_add) {
            let mut unpacked = Vec::new();
            for found in &found {
                let added = copy::unpacked(&self.stages.archives, &found.content);
                unpacked.extend(added.map_err(|error| error_chain(&error))?);
            }
            if !unpacked.is_empty() && unpacked.len() < found.len() {
                let source = QuotedText(source);
                return Err(format!(
                    "{source} matches archives and other files: ADD them one by one"
                )
                .into());
            }
            if !unpacked.is_empty() {
                for entries in unpacked {
                    draft.unpack(entries)?;
                }
                return Ok(true);
            }
        }
        let is_found = !found.is_empty();
        draft.copy(files, &pattern, found)?;
        Ok(is_found)
    }
}

/// Entry of a copy in an image's history.
fn copy_history(copy: &CopyInstruction) -> String {
    let keyword = if copy.is_add { "ADD" } else { "COPY" };
    let sources = copy.sources.iter().cloned();
    let documents = copy.documents.iter();
    let documents = documents.map(|document| format!("<<{}", document.name));
    let sources: Vec<String> = sources.chain(documents).collect();
    format!("{keyword} {} {} # buildkit", sources.join(" "), copy.target)
}

impl Evaluation<'_> {
    /// The reason if Windows runs an `ADD`, of URLs only: no digest pins one of them.
    pub(super) fn not_pinned_urls(
        &self,
        state: &StageState,
        copy: &CopyInstruction,
    ) -> Option<String> {
        let windows = self.inputs.windows.as_ref()?;
        state.place?;
        let is_plain = copy.is_add && !copy.has_flags && copy.documents.is_empty();
        let mut sources = copy.sources.iter();
        let url = sources.find(|source| windows.not_pinned.contains(*source))?;
        let is_sent = is_plain && copy.sources.iter().all(|source| is_url(source));
        is_sent.then(|| format!("no digest pins {}", public_url(url)))
    }

    /// Adds the file of a URL to the target, under the URL's file name if the target is a folder.
    pub(super) fn add_url(
        &mut self,
        draft: &mut Draft<'_>,
        text: &str,
        step: &ParsedInstruction,
        copy: &CopyInstruction,
    ) -> Result<(), StepError> {
        if !copy.is_add {
            return Err(format!("COPY does not support URLs: use ADD for {text}").into());
        }
        let place = text.split(['#', '?']).next().unwrap_or(text);
        let place = place.trim_end_matches('/');
        let has_scheme = text.starts_with("git@") || text.starts_with("git://");
        if has_scheme || place.strip_suffix(".git").is_some() {
            return Err(StepError::hinted(
                format!("{text} is a Git repository, which is unsupported"),
                "clone it beforehand, and COPY the folder",
            ));
        }
        let url = download_url(text)?;
        if copy.unpack == Some(true) {
            let problem = "--unpack supports only archives of the context";
            return Err(problem.to_owned().into());
        }
        let checksum = checksum(copy)?;
        let name = name_in(&url);
        let path = draft.file_target(name.as_deref().unwrap_or_default());
        let path = path
            .ok()
            .filter(|path| name.is_some() || draft.is_target(path))
            .ok_or_else(|| {
                let problem = format!("{text} has no file name that Windows supports");
                StepError::hinted(problem, "end the target with the file's name")
            })?;
        let mut download = PlannedDownload::at(text);
        if let Some(here) = self.inputs.downloads.get(text) {
            download.set_content(here.digest.clone(), here.size, here.content.clone());
        }
        if let Some(expected) = &checksum {
            check(&download, expected)?;
        }
        let want = DownloadRequest {
            digests: checksum.into_iter().collect(),
            name: path.name().to_owned(),
            follows: true,
            place: self.stages.position(step),
        };
        want.add_to(&mut self.result.wants, text);
        let content = PlannedContent::File(FileSource::Download(Box::new(download)));
        Ok(draft.insert(path, content)?)
    }
}

/// Digest of `--checksum`, which requires one URL.
fn checksum(copy: &CopyInstruction) -> Result<Option<Digest>, String> {
    let Some(text) = &copy.checksum else {
        return Ok(None);
    };
    if copy.sources.len() + copy.documents.len() > 1 || !copy.sources.iter().all(|it| is_url(it)) {
        return Err("--checksum requires exactly one URL".to_owned());
    }
    let digest: Option<Digest> = text.parse().ok();
    let is_strong =
        |digest: &Digest| digest.algorithm() != "sha1" && Hasher::matching(digest).is_some();
    digest.filter(is_strong).map(Some).ok_or_else(|| {
        format!(
            "invalid checksum {text:?}: expected sha256:, sha384: or sha512: and hexadecimal digits"
        )
    })
}

/// Returns true if a source is a URL.
fn is_url(source: &str) -> bool {
    source.contains("://") || source.starts_with("git@")
}
