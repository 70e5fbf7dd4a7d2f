//! Login and logout: a credential is verified and stored where Docker's tools find it, by the
//! configured helper or in the file itself.

use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use wincimg_common::files;
use wincimg_common::files::AtomicFile;
use wincimg_common::progress::Progress;
use wincimg_http::file_error;

use super::client::RegistryClient;
use super::credentials::{
    AuthKey, Credentials, LARGEST_FILE, default_file, find, lookup_error, server, servers,
};
use super::error::RegistryError;
use super::helper;
use super::ping::Ping;
use super::secret::Secret;

/// Location of a stored credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialStore {
    /// The file.
    pub file: PathBuf,
    /// The helper that is configured in it, without `docker-credential-`; none for the file itself.
    pub helper: Option<String>,
}

impl fmt::Display for CredentialStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.helper {
            Some(name) => write!(f, "docker-credential-{name}"),
            None => self.file.display().fmt(f),
        }
    }
}

impl RegistryClient {
    /// Pings a host with this user and password instead of the stored ones.
    pub async fn try_login(
        &self,
        host: &str,
        user: &str,
        password: &Secret,
    ) -> Result<Ping, RegistryError> {
        let typed = Credentials::from_input(user.to_owned(), password.clone());
        // Not set yet: this is the client's first use of the host.
        let _ = self.0.host(host).credentials.set(typed);
        self.ping(host).await
    }
}

/// Stores a user and password for a host. `file` is the one given by the user; without it, Docker's
/// own. Blocks while a helper runs.
pub fn store(
    host: &str,
    user: &str,
    password: &Secret,
    file: Option<&Path>,
    progress: &dyn Progress,
) -> Result<CredentialStore, RegistryError> {
    let config = Config::open(host, file)?;
    let server = server(host);
    let helper = config.helper();
    let entry = match &helper {
        Some(name) => {
            helper::store(name, server, user, password, &CancellationToken::new())
                .map_err(|reason| config.helper_failed(name, reason))?;
            // Docker's tools expect an empty entry.
            json!({})
        }
        None => {
            let pair = format!("{user}:{}", password.expose_secret());
            json!({ "auth": BASE64_STANDARD.encode(pair) })
        }
    };
    let file = Config::change(host, file, progress, |config| {
        config.remove_entries();
        config.entries().insert(server.to_owned(), entry);
    })?;
    Ok(CredentialStore { file, helper })
}

/// Erases the stored credential of a host; returns its location, or `None` if there was none.
pub fn erase(
    host: &str,
    file: Option<&Path>,
    progress: &dyn Progress,
) -> Result<Option<CredentialStore>, RegistryError> {
    let stopped = CancellationToken::new();
    let config = Config::open(host, file)?;
    // An entry that cannot be parsed is removed too.
    let is_none = || find(host, Some(&config.path), &stopped).is_ok_and(|it| it.are_none());
    if !config.path.exists() || is_none() {
        return Ok(None);
    }
    let helper = config.helper();
    if let Some(name) = &helper {
        for server in servers(host) {
            helper::erase(name, server, &stopped)
                .map_err(|reason| config.helper_failed(name, reason))?;
        }
    }
    let file = Config::change(host, file, progress, Config::remove_entries)?;
    Ok(Some(CredentialStore { file, helper }))
}

/// Docker's `config.json`, including the keys of other tools.
struct Config<'h> {
    host: &'h str,
    path: PathBuf,
    document: Map<String, Value>,
}

impl<'h> Config<'h> {
    fn open(host: &'h str, file: Option<&Path>) -> Result<Self, RegistryError> {
        let Some(path) = file.map(Path::to_owned).or_else(default_file) else {
            let origin = "Docker's config.json".to_owned();
            return Err(lookup_error(host, origin, "no home directory".to_owned()));
        };
        // A symbolic link is kept and its target is written. Other paths are not normalised.
        let path = if path.is_symlink() {
            let found = path.canonicalize().or_else(|_| files::link_target(&path));
            found.unwrap_or(path)
        } else {
            path
        };
        let shown = path.display().to_string();
        let document = match files::read(&path, LARGEST_FILE) {
            Ok(text) if text.trim_ascii().is_empty() => Map::new(),
            Ok(text) => serde_json::from_slice(&text).map_err(|_| {
                let reason = "it is not a JSON object, so no credential can be stored in it";
                lookup_error(host, shown, reason.to_owned())
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Map::new(),
            Err(error) => return Err(lookup_error(host, shown, error.to_string())),
        };
        Ok(Self {
            host,
            path,
            document,
        })
    }

    /// Changes the file and returns its path. Of several processes at once, each waits for the
    /// others, so that none loses another's change; Docker's tools do not wait.
    fn change(
        host: &'h str,
        file: Option<&Path>,
        progress: &dyn Progress,
        edit: impl FnOnce(&mut Self),
    ) -> Result<PathBuf, RegistryError> {
        let folder = files::folder_of(&Self::open(host, file)?.path).to_owned();
        if !folder.exists() {
            files::create_private_folder(&folder).map_err(file_error("create", &folder))?;
        }
        let _held = files::lock_folder(&folder, progress);
        let mut config = Self::open(host, file)?;
        edit(&mut config);
        config.write()?;
        Ok(config.path)
    }

    /// The helper for this host, else the default one.
    fn helper(&self) -> Option<String> {
        let helpers = self.document.get("credHelpers").and_then(Value::as_object);
        let own = helpers.into_iter().flatten();
        let own = own
            .filter(|(key, _)| AuthKey::is_of_host(key, self.host))
            .map(|(_, name)| name);
        let all = self.document.get("credsStore");
        let mut names = own.chain(all).filter_map(Value::as_str);
        names.find(|name| !name.is_empty()).map(str::to_owned)
    }

    /// The file's own credentials; replaces a value that is not a table.
    fn entries(&mut self) -> &mut Map<String, Value> {
        let auths = self.document.entry("auths").or_insert_with(|| json!({}));
        if !auths.is_object() {
            *auths = json!({});
        }
        match auths {
            Value::Object(entries) => entries,
            _ => unreachable!("it was made an object"),
        }
    }

    fn remove_entries(&mut self) {
        let host = self.host;
        self.entries()
            .retain(|key, _| !AuthKey::is_of_host(key, host));
    }

    fn helper_failed(&self, name: &str, reason: String) -> RegistryError {
        let origin = format!("docker-credential-{name} ({})", self.path.display());
        lookup_error(self.host, origin, reason)
    }

    /// Writes the file atomically, readable only by the user.
    fn write(&self) -> Result<(), RegistryError> {
        let mut text = Vec::new();
        let tabs = PrettyFormatter::with_indent(b"\t");
        let mut serializer = serde_json::Serializer::with_formatter(&mut text, tabs);
        let written = serde::Serialize::serialize(&self.document, &mut serializer)
            .map_err(io::Error::from)
            .and_then(|()| self.replace(&text));
        Ok(written.map_err(file_error("write", &self.path))?)
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let mut draft = AtomicFile::in_folder(files::folder_of(&self.path))?;
        let file = draft.file();
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        file.write_all(text)?;
        draft.persist_durable(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wincimg_common::progress::Silent;

    use super::*;

    fn log_in(host: &str, file: &Path) -> Result<CredentialStore, RegistryError> {
        let password = Secret::new("open sesame".to_owned());
        store(host, "bob", &password, Some(file), &Silent)
    }

    fn kept(before: &str, host: &str) -> (Value, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        fs::write(&file, before).unwrap();
        log_in(host, &file).unwrap();
        let after = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        (after, folder)
    }

    #[test]
    fn everything_else_in_the_file_stays_as_it_is_and_where_it_is() {
        let before = r#"{"HttpHeaders":{"b":"1","a":"2"},"auths":{"other:1":{"auth":"eA=="},
            "https://repo.lan:5000":{"auth":"old"},"repo.lan:5000/team":{"auth":"eDp5"}},
            "credHelpers":{"x":"y"},"detachKeys":"ctrl-e,e","n":1.50}"#;
        let (after, folder) = kept(before, "repo.lan:5000");
        let auth = BASE64_STANDARD.encode("bob:open sesame");
        let expected = json!({
            "HttpHeaders": {"b": "1", "a": "2"},
            "auths": {
                "other:1": {"auth": "eA=="},
                "repo.lan:5000/team": {"auth": "eDp5"},
                "repo.lan:5000": {"auth": auth},
            },
            "credHelpers": {"x": "y"},
            "detachKeys": "ctrl-e,e",
            "n": 1.5,
        });
        assert_eq!(after.to_string(), expected.to_string());

        let file = folder.path().join("config.json");
        let forgotten = erase("repo.lan:5000", Some(&file), &Silent).unwrap();
        assert_eq!(
            forgotten,
            Some(CredentialStore {
                file: file.canonicalize().unwrap(),
                helper: None,
            })
        );
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("other:1") && !text.contains(&auth), "{text}");
    }

    #[test]
    fn docker_hub_is_kept_under_the_name_that_docker_looks_for() {
        let (after, _folder) = kept("", "docker.io");
        assert!(after["auths"]["https://index.docker.io/v1/"]["auth"].is_string());
    }

    #[test]
    fn what_cannot_be_read_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        for text in ["{", "[]", "\"x\""] {
            fs::write(&file, text).unwrap();
            assert!(log_in("repo.lan", &file).is_err());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(
            erase("repo.lan", Some(&folder.path().join("none")), &Silent).unwrap(),
            None
        );
    }

    #[cfg(unix)]
    #[test]
    fn twenty_logins_at_once_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("docker/config.json");
        std::thread::scope(|scope| {
            for number in 0..20 {
                let file = &file;
                scope.spawn(move || log_in(&format!("repo{number}.lan"), file).unwrap());
            }
        });
        let kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(kept["auths"].as_object().unwrap().len(), 20);
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_for_its_owner_alone_and_a_link_stays_one() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("home/.docker/config.json");
        log_in("repo.lan", &new).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&new), mode(new.parent().unwrap())), (0o600, 0o700));

        fs::set_permissions(&new, PermissionsExt::from_mode(0o644)).unwrap();
        let link = folder.path().join("config.json");
        symlink(&new, &link).unwrap();
        log_in("other.lan", &link).unwrap();
        assert!(link.is_symlink());
        assert_eq!(mode(&new), 0o600);
        assert!(fs::read_to_string(&new).unwrap().contains("other.lan"));

        // One whose target does not exist yet.
        fs::remove_file(&new).unwrap();
        log_in("third.lan", &link).unwrap();
        assert!(link.is_symlink());
        assert!(fs::read_to_string(&new).unwrap().contains("third.lan"));
    }
}
