//! `wincimg build --all`: builds every recipe and Dockerfile below a folder.

use wincimg_common::files::{TextFile, folder_of};
use wincimg_engine::definition::{DOCKERFILES, dockerfile_in, is_dockerfile};

use super::image_name::ImageName;
use super::{Build, ReviewFormat};
use crate::cli::prelude::*;
use crate::cli::shutdown;

pub(super) const RECIPE: &str = "recipe.toml";

impl Build {
    /// Builds all of them, also after one fails; the exit code is the highest.
    pub(super) fn run_all(mut self, session: &Session) -> Result<CommandOutcome> {
        let found = self.definitions()?;
        self.check_names(&found)?;
        let mut highest = 0;
        let mut documents: Vec<Value> = Vec::new();
        for path in found {
            if shutdown::reason().is_some() {
                break;
            }
            let image = path.display().to_string();
            session.note(format_args!("building {image}"));
            if let Some(hidden) = hidden_dockerfile(&path) {
                let hidden = hidden.path().display();
                session.note(format_args!(
                    "{hidden} is not built: the recipe next to it is"
                ));
            }
            self.recipe.image.clone_from(&image);
            let built = match path.to_str() {
                Some(_) => self.build(session),
                None => Err(not_utf8(&image)),
            };
            let (code, document) = match built {
                Ok((outcome, document)) => (outcome.code(), document.unwrap_or_default()),
                Err(failure) => {
                    if self.format == ReviewFormat::Github {
                        failure.print_annotations(self.format);
                    }
                    let document = json!({"error": failure.document()});
                    let code = failure.code();
                    failure.report(session.colour);
                    (code, document)
                }
            };
            highest = highest.max(code);
            documents.push(extended(&json!({"from": image}), document));
        }
        if self.format == ReviewFormat::Json {
            write_result(None, |out| write_json(&json!({"builds": documents}), out))?;
        }
        Ok(CommandOutcome::Code(highest))
    }

    /// The recipes and Dockerfiles below the folder.
    fn definitions(&self) -> Result<Vec<PathBuf>> {
        if self.format == ReviewFormat::Gitlab {
            let problem = "--format gitlab cannot be combined with --all";
            return Err(
                Failure::usage(problem).hint("build each image alone, or use --format json")
            );
        }
        if let Some((name, tag)) = self.tag.iter().find_map(ImageName::name_and_tag) {
            let problem = format!(
                "-t {name}:{tag} cannot be combined with --all: each image has its own name"
            );
            return Err(Failure::usage(problem).hint(format!("use --tag {tag} and --registry")));
        }
        let top = Path::new(&self.recipe.image);
        if !top.is_dir() {
            let problem = format!("{} is not a folder, which --all requires", top.display());
            return Err(Failure::usage(problem).hint("name the folder above the recipes"));
        }
        let mut found = Vec::new();
        find_below(top, &mut found).with_context(|| format!("cannot read {}", top.display()))?;
        if found.is_empty() {
            let problem = format!("{} has no recipe.toml and no Dockerfile", top.display());
            return Err(Failure::usage(problem).hint("name the folder above the recipes"));
        }
        Ok(found)
    }

    /// Rejects two images of the same name, of which one would replace the other.
    fn check_names(&mut self, found: &[PathBuf]) -> Result<()> {
        let arguments = self.daemon.arguments();
        let mut names = BTreeMap::new();
        for image in found.iter().filter_map(|path| path.to_str()) {
            image.clone_into(&mut self.recipe.image);
            let name = self.recipe.default_name(&self.dockerfile, &arguments)?;
            if let Some(other) = names.insert(name.clone(), image) {
                let problem = format!("{other} and {image} have the same image name {name}");
                return Err(
                    Failure::usage(problem).hint("build each of them alone, with --name NAME")
                );
            }
        }
        Ok(())
    }
}

/// Error for a path that no argument could name.
fn not_utf8(path: &str) -> Failure {
    let problem = Problem::new("file/io", format!("the path {path} is not UTF-8"));
    problem.hint("rename its folder").into()
}

/// Finds recipes and Dockerfiles, sorted by path. Hidden folders are skipped, and a `Dockerfile` next
/// to a recipe, which takes precedence.
fn find_below(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_unstable_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let name = name.to_string_lossy();
        if kind.is_dir() && !name.starts_with('.') {
            find_below(&entry.path(), found)?;
        } else if kind.is_file() && is_definition(&entry.path()) {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// The Dockerfile next to a recipe.
fn hidden_dockerfile(file: &Path) -> Option<TextFile> {
    let is_recipe = file.ends_with(RECIPE);
    is_recipe.then(|| dockerfile_in(folder_of(file))).flatten()
}

fn is_definition(file: &Path) -> bool {
    let is_of_folder = DOCKERFILES.iter().any(|name| file.ends_with(name));
    let is_hidden = is_of_folder && file.with_file_name(RECIPE).is_file();
    file.ends_with(RECIPE) || is_dockerfile(file) && !is_hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_below_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        for file in [
            "a/Dockerfile",
            "a/Dockerfile.dockerignore",
            "b/c/recipe.toml",
            "b/c/Dockerfile",
            "b/c/Dockerfile.dev",
            "b/other.toml",
            ".git/Dockerfile",
            "win.dockerfile",
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mut found = Vec::new();
        find_below(folder.path(), &mut found).unwrap();
        let inside = found
            .iter()
            .map(|path| path.strip_prefix(folder.path()).unwrap());
        let expected = [
            "a/Dockerfile", "b/c/Dockerfile.dev", "b/c/recipe.toml", "win.dockerfile",
        ];
        assert_eq!(inside.collect::<Vec<_>>(), expected.map(Path::new));
    }
}
