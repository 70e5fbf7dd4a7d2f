//! Origin of an image: its base, and the repository and the commit of its definition, as labels
//! and annotations of OCI.
//!
//! The repository is read from the files of git, without running it: a checkout can set programs
//! that git runs. Changes that are not committed are therefore not noticed.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use wincimg_common::files::read_text;
use wincimg_oci::document::{BASE_DIGEST, BASE_NAME, CREATED, ImageConfig, REVISION, SOURCE};

use super::plans::PlannedBase;

/// Size limit of git's files; a list of packed references is the largest.
const MAX_GIT_FILE: u64 = 64 << 20;
const MAX_LABEL: usize = 2048;

/// Variables of CI systems: the parts of the repository's URL, and the commit.
const CI: [(&[&str], &str); 5] = [
    // GitHub, Gitea, Forgejo.
    (&["GITHUB_SERVER_URL", "GITHUB_REPOSITORY"], "GITHUB_SHA"),
    // GitLab.
    (&["CI_PROJECT_URL"], "CI_COMMIT_SHA"),
    // Azure Pipelines.
    (&["BUILD_REPOSITORY_URI"], "BUILD_SOURCEVERSION"),
    // Bitbucket.
    (&["BITBUCKET_GIT_HTTP_ORIGIN"], "BITBUCKET_COMMIT"),
    // Jenkins.
    (&["GIT_URL"], "GIT_COMMIT"),
];

/// Repository and commit of an image's definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    source: Option<String>,
    revision: Option<String>,
}

impl Origin {
    /// Reads the git repository around a folder. What it lacks is taken from the variables of a CI
    /// system, if that is not about another commit.
    pub(crate) fn of_folder(folder: &Path, variable: impl Fn(&str) -> Option<String>) -> Self {
        let own = Self::from_git(folder).unwrap_or_default();
        let told = Self::from_ci(variable);
        match own.revision {
            Some(_) if own.revision != told.revision => own,
            _ => Self {
                source: own.source.or(told.source),
                revision: own.revision.or(told.revision),
            },
        }
    }

    fn from_ci(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
        let found = CI.iter().find_map(|(url, commit)| {
            let parts: Option<Vec<String>> = url.iter().map(set).collect();
            Some(Self {
                source: parts.and_then(|parts| public_url(&parts.join("/"))),
                revision: set(commit).filter(|text| is_commit(text))?.into(),
            })
        });
        found.unwrap_or_default()
    }

    fn from_git(folder: &Path) -> Option<Self> {
        let git = git_folder(&folder.canonicalize().ok()?)?;
        // A worktree shares references and settings with its repository.
        let common =
            read(&git.join("commondir")).and_then(|path| git.join(path.trim()).canonicalize().ok());
        let common = common.unwrap_or_else(|| git.clone());
        let head = read(&git.join("HEAD"))?;
        let revision = match head.trim().strip_prefix("ref: ") {
            Some(name) => commit_of(&git, &common, name),
            None => Some(head.trim().to_owned()),
        };
        Some(Self {
            source: read(&common.join("config")).and_then(|text| public_url(&remote_url(&text)?)),
            revision: revision.filter(|text| is_commit(text)),
        })
    }

    pub(crate) fn labels(&self, base: &PlannedBase) -> BTreeMap<String, String> {
        // A base that wincimg makes itself is in no registry.
        let reference = base.reference();
        let name = reference.map(|_| (BASE_NAME, base.display_name()));
        let digest = reference.map(|_| (BASE_DIGEST, base.digest().to_string()));
        let source = self.source.clone().map(|url| (SOURCE, url));
        let revision = self.revision.clone().map(|commit| (REVISION, commit));
        let labels = [name, digest, source, revision].into_iter().flatten();
        labels.map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// The labels of an image that are also annotations of its manifest.
pub(crate) fn annotations(config: &ImageConfig) -> BTreeMap<String, String> {
    let labels = config.config.labels.iter();
    let wanted = [BASE_NAME, BASE_DIGEST, CREATED, SOURCE, REVISION];
    labels
        .filter(|(key, value)| wanted.contains(&key.as_str()) && !value.is_empty())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn read(path: &Path) -> Option<String> {
    read_text(path, MAX_GIT_FILE).ok()
}

/// The `.git` folder of the repository around a folder; a worktree has a file with its path.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let git = folder
        .ancestors()
        .map(|above| above.join(".git"))
        .find(|path| path.exists())?;
    if git.is_dir() {
        return Some(git);
    }
    let text = read(&git)?;
    let path = text.trim().strip_prefix("gitdir: ")?;
    Some(git.parent()?.join(path))
}

fn commit_of(git: &Path, common: &Path, name: &str) -> Option<String> {
    let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !Path::new(name).components().all(is_inside) {
        return None;
    }
    let loose = [git, common].iter().find_map(|root| read(&root.join(name)));
    if let Some(commit) = loose {
        return Some(commit.trim().to_owned());
    }
    let packed = read(&common.join("packed-refs"))?;
    let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
    let (commit, _) = lines.find(|(_, known)| *known == name)?;
    Some(commit.to_owned())
}

/// The URL of the remote `origin` in a configuration of git, or of the first remote.
pub fn remote_url(config: &str) -> Option<String> {
    let mut remote = None;
    let mut urls: Vec<(&str, &str)> = Vec::new();
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            let name = line.strip_prefix("[remote \"");
            remote = name.and_then(|name| name.strip_suffix("\"]"));
        } else if let (Some(remote), Some((key, value))) = (remote, line.split_once('='))
            && key.trim().eq_ignore_ascii_case("url")
        {
            urls.push((remote, value.trim()));
        }
    }
    let origin = urls.iter().find(|(name, _)| *name == "origin");
    let (_, url) = origin.or(urls.first())?;
    Some((*url).to_owned())
}

/// The URL without user and password; none for a path on this machine.
fn public_url(url: &str) -> Option<String> {
    let is_plain = !url.chars().any(|c| c.is_control() || c.is_whitespace());
    if !is_plain || url.len() > MAX_LABEL {
        return None;
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        // The form of scp, `git@host:path`, has no password.
        let (host, path) = url.split_once(':')?;
        let is_remote = host.contains('@') && !host.contains(['/', '\\']) && !path.is_empty();
        return is_remote.then(|| url.to_owned());
    };
    if !["http", "https", "ssh", "git"].contains(&scheme) {
        return None;
    }
    let end = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = match host.rsplit_once('@') {
        // A name without a password is required for SSH, and may be a token for HTTP.
        Some((user, host)) if scheme == "ssh" => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{name}@{host}")
        }
        Some((_, host)) => host.to_owned(),
        None => host.to_owned(),
    };
    // A query can contain a token too.
    let path = path.split(['?', '#']).next().unwrap_or_default();
    Some(format!("{scheme}://{host}{path}"))
}

fn is_commit(text: &str) -> bool {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    matches!(text.len(), 40 | 64) && is_hex
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use wincimg_windows::table::read_rows;

    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    const OTHER: &str = "89abcdef0123456789abcdef0123456789abcdef";

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn origin(source: Option<&str>, revision: Option<&str>) -> Origin {
        Origin {
            source: source.map(str::to_owned),
            revision: revision.map(str::to_owned),
        }
    }

    fn no_variable(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn the_commit_is_found_however_git_stores_it() {
        let config = "[core]\n\tbare = false\n[remote \"up\"]\n\turl = https://git.lan/up\n\
                      [remote \"origin\"]\n\turl = https://bob:secret@git.lan/shop.git\n";
        let packed =
            format!("# pack-refs with: peeled\n{OTHER} refs/heads/b\n{COMMIT} refs/heads/main\n");
        let loose = format!("{COMMIT}\n");
        let cases: [&[(&str, &str)]; 4] = [
            &[
                (".git/HEAD", "ref: refs/heads/main\n"),
                (".git/refs/heads/main", &loose),
            ],
            &[
                (".git/HEAD", "ref: refs/heads/main\n"),
                (".git/packed-refs", &packed),
            ],
            &[(".git/HEAD", &loose)],
            &[
                ("app/.git", "gitdir: ../.git/worktrees/app\n"),
                (".git/worktrees/app/HEAD", "ref: refs/heads/main\n"),
                (".git/worktrees/app/commondir", "../..\n"),
                (".git/refs/heads/main", &loose),
                (".git/HEAD", "ref: refs/heads/b\n"),
            ],
        ];
        for files in cases {
            let folder = tempfile::tempdir().unwrap();
            write(folder.path(), files);
            write(
                folder.path(),
                &[(".git/config", config), ("app/recipe.toml", "")],
            );
            let found = Origin::of_folder(&folder.path().join("app"), no_variable);
            let expected = origin(Some("https://git.lan/shop.git"), Some(COMMIT));
            assert_eq!(found, expected, "{files:?}");
        }
    }

    #[test]
    fn a_pipeline_completes_what_the_checkout_lacks() {
        let github = |name: &str| {
            let value = match name {
                "GITHUB_SERVER_URL" => "https://github.com",
                "GITHUB_REPOSITORY" => "acme/shop",
                "GITHUB_SHA" => COMMIT,
                _ => return None,
            };
            Some(value.to_owned())
        };
        let folder = tempfile::tempdir().unwrap();
        let told = origin(Some("https://github.com/acme/shop"), Some(COMMIT));
        assert_eq!(Origin::of_folder(folder.path(), github), told);
        write(folder.path(), &[(".git/HEAD", COMMIT)]);
        assert_eq!(Origin::of_folder(folder.path(), github), told);
        // Another repository than the pipeline's.
        write(folder.path(), &[(".git/HEAD", OTHER)]);
        let own = origin(None, Some(OTHER));
        assert_eq!(Origin::of_folder(folder.path(), github), own);
    }

    #[test]
    fn a_reference_cannot_lead_out_of_the_repository() {
        for head in ["ref: ../../secret", "ref: /etc/passwd", "ref: ", "x"] {
            let folder = tempfile::tempdir().unwrap();
            write(
                folder.path(),
                &[("app/.git/HEAD", head), ("secret", COMMIT)],
            );
            let found = Origin::of_folder(&folder.path().join("app"), no_variable);
            assert_eq!(found, Origin::default(), "{head}");
        }
    }

    #[test]
    fn a_url_has_no_password_and_a_path_is_none() {
        let table = include_str!("../tests/data/git-urls.tsv");
        let rows = read_rows(table, |row| Ok((row.text("url")?, row.text("public")?)));
        for (url, expected) in rows.unwrap() {
            let expected = Some(expected).filter(|expected| *expected != "-");
            assert_eq!(public_url(url).as_deref(), expected, "{url}");
        }
    }

    proptest! {
        #[test]
        fn no_password_is_left(user in "[a-z]{1,8}", secret in "[A-Z0-9@/:]{6,12}", host in "[a-z]{1,8}\\.lan") {
            let secret = secret.replace('/', "%2F");
            let url = format!("https://{user}:{secret}@{host}/shop.git");
            prop_assert_eq!(public_url(&url), Some(format!("https://{host}/shop.git")));
        }

        #[test]
        fn any_config_is_read(text in "(?s).{0,200}") {
            let _ = remote_url(&text).and_then(|url| public_url(&url));
        }
    }
}
