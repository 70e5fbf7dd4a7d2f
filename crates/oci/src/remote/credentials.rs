//! The user's credentials for a registry: Docker's `config.json` and the helpers it names.
//!
//! Many programs write the file: keys are hosts, URLs or, with podman, paths of repositories;
//! values may be null or empty. The origin of each credential is recorded for error messages.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use wincimg_common::diagnose::Excerpt;
use wincimg_common::files;

use super::error::RegistryError;
use super::helper;
use super::secret::Secret;

/// Larger than any real file.
pub(super) const LARGEST_FILE: u64 = 16 * 1024 * 1024;
/// Keys of the file that are not secret.
const WORDS: [&str; 13] = [
    "auths", "auth", "username", "password", "identitytoken", "credsStore", "credHelpers",
    "currentContext", "HttpHeaders", "proxies", "true", "false", "null",
];
/// User name that helpers return with an identity token.
const TOKEN_USER: &str = "<token>";

/// Credential for a registry or its token server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Authentication {
    /// A user's name and password.
    Password { user: String, password: Secret },
    /// A refresh token of an OAuth token server.
    IdentityToken(Secret),
}

/// The outcome of the search for one host's credential.
#[derive(Debug, Clone)]
pub(super) struct Credential {
    /// The credential, if any.
    pub(super) proof: Option<Authentication>,
    /// The file or helper that was read.
    origin: String,
}

/// "user NAME from PATH", without the secret.
impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.proof {
            None => write!(f, "no credential (none in {})", self.origin),
            Some(Authentication::Password { user, .. }) => {
                write!(f, "user {user:?} from {}", self.origin)
            }
            Some(Authentication::IdentityToken(_)) => {
                write!(f, "an identity token from {}", self.origin)
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Credentials {
    /// For the whole host.
    host: Credential,
    /// For some of its repositories, by prefix of their names, longest first.
    paths: Vec<(String, Credential)>,
}

impl Credentials {
    pub(super) fn from_input(user: String, password: Secret) -> Self {
        let proof = Some(Authentication::Password { user, password });
        Self::of_host(proof, "your input".to_owned())
    }

    fn of_host(proof: Option<Authentication>, origin: String) -> Self {
        Self {
            host: Credential { proof, origin },
            paths: Vec::new(),
        }
    }

    /// Returns true if there are none for the host and its repositories.
    pub(super) fn are_none(&self) -> bool {
        self.host.proof.is_none() && self.paths.is_empty()
    }

    /// The credential for a repository; without a name, for the host itself.
    pub(super) fn for_repository(&self, repository: &str) -> &Credential {
        let lies_in = |path: &str| {
            let rest = repository.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let narrower = self.paths.iter().find(|(path, _)| lies_in(path));
        narrower.map_or(&self.host, |(_, credential)| credential)
    }
}

/// The credentials part of `config.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConfigFile {
    auths: Option<BTreeMap<String, Option<AuthEntry>>>,
    creds_store: Option<String>,
    cred_helpers: Option<BTreeMap<String, Option<String>>>,
}

/// A credential in the file itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AuthEntry {
    auth: Option<Secret>,
    username: Option<String>,
    password: Option<Secret>,
    identitytoken: Option<Secret>,
}

/// Meaning of a key in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AuthKey<'k> {
    Host(&'k str),
    /// A repository prefix.
    Path(&'k str, &'k str),
}

impl<'k> AuthKey<'k> {
    /// Parses a key. Docker's keys are hosts and URLs, whose path is ignored; podman's may be
    /// repositories.
    pub(super) fn of(key: &'k str) -> Self {
        let bare = key
            .strip_prefix("https://")
            .or_else(|| key.strip_prefix("http://"));
        let (host, path) = match bare.unwrap_or(key).split_once('/') {
            Some((host, path)) => (host, path.trim_end_matches('/')),
            None => (bare.unwrap_or(key), ""),
        };
        match path {
            "" | "v1" | "v2" => Self::Host(host),
            _ if bare.is_some() => Self::Host(host),
            path => Self::Path(host, path),
        }
    }

    pub(super) fn is_of_host(key: &str, host: &str) -> bool {
        matches!(AuthKey::of(key), AuthKey::Host(own) if is_name_of(own, host))
    }
}

impl AuthEntry {
    /// Returns the credential, if any; fails if it cannot be decoded.
    fn proof(&self) -> Result<Option<Authentication>, &'static str> {
        let filled =
            |secret: &Option<Secret>| secret.clone().filter(|it| !it.expose_secret().is_empty());
        if let Some(token) = filled(&self.identitytoken) {
            return Ok(Some(Authentication::IdentityToken(token)));
        }
        if let Some(auth) = filled(&self.auth) {
            let (user, password) =
                decode(&auth).ok_or("its auth is not USER:PASSWORD in base64")?;
            return Ok((!user.is_empty()).then_some(Authentication::Password { user, password }));
        }
        let user = self.username.clone().filter(|user| !user.is_empty());
        let password = self.password.clone();
        Ok(user
            .zip(password)
            .map(|(user, password)| Authentication::Password { user, password }))
    }
}

fn decode(auth: &Secret) -> Option<(String, Secret)> {
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = GeneralPurpose::new(&STANDARD, lenient).decode(auth.expose_secret().trim());
    let text = String::from_utf8(bytes.ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    // Old versions of Docker padded the password.
    let password = password.trim_end_matches('\0');
    Some((user.to_owned(), Secret::new(password.to_owned())))
}

/// Finds a host's credentials. `file` is the one given by the user; without it, Docker's own is
/// read, which need not exist. Blocks while a helper runs, which is stopped soon after `stopped` is
/// cancelled.
pub(super) fn find(
    host: &str,
    file: Option<&Path>,
    stopped: &CancellationToken,
) -> Result<Credentials, RegistryError> {
    if let Some(file) = file {
        return look_in(host, file, stopped);
    }
    let named = path_in(AUTH_FILE);
    let mut places = default_file().into_iter().chain(containers_files());
    let Some(first) = places.next() else {
        let origin = "Docker's config.json: no home directory".to_owned();
        return Ok(Credentials::of_host(None, origin));
    };
    let look = |path: &Path| match path.try_exists() {
        Ok(false) => Ok(None),
        _ => look_in(host, path, stopped).map(Some),
    };
    let mut found = match look(&first)? {
        Some(found) => found,
        None => {
            let origin = format!("{}, which does not exist", first.display());
            Credentials::of_host(None, origin)
        }
    };
    for path in places {
        if !found.are_none() {
            break;
        }
        match look(&path)? {
            Some(mut next) => {
                if next.are_none() {
                    let origins = [found.host.origin, next.host.origin];
                    next.host.origin = origins.join(", ");
                }
                found = next;
            }
            // The others need not exist.
            None if named.as_ref() == Some(&path) => {
                let absent = format!(", {AUTH_FILE} {}, which does not exist", path.display());
                found.host.origin.push_str(&absent);
            }
            None => {}
        }
    }
    Ok(found)
}

/// Finds a host's credentials in one file and its helpers.
fn look_in(
    host: &str,
    path: &Path,
    stopped: &CancellationToken,
) -> Result<Credentials, RegistryError> {
    let shown = path.display().to_string();
    let text = files::read(path, LARGEST_FILE)
        .map_err(|error| lookup_error(host, shown.clone(), error.to_string()))?;
    let text = files::without_mark(text);
    // The parser's message would quote a value of the wrong type.
    let config: ConfigFile = serde_json::from_slice(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let text = String::from_utf8_lossy(&text);
        RegistryError::Credential {
            host: host.to_owned(),
            origin: shown.clone(),
            reason: format!("it is not Docker's config.json: line {line}, column {column}"),
            excerpt: Some(Box::new(Excerpt::redacted(&text, line, column, &WORDS))),
        }
    })?;
    Lookup {
        host,
        config: &config,
        file: &shown,
        stopped,
    }
    .run()
}

/// The search in one file for one host.
struct Lookup<'a> {
    host: &'a str,
    config: &'a ConfigFile,
    file: &'a str,
    stopped: &'a CancellationToken,
}

impl Lookup<'_> {
    fn run(&self) -> Result<Credentials, RegistryError> {
        let is_this = |host: &str| is_name_of(host, self.host);
        let mut paths = Vec::new();
        let mut own = Vec::new();
        for (key, entry) in self.config.auths.iter().flatten() {
            let Some(entry) = entry else { continue };
            match AuthKey::of(key) {
                AuthKey::Host(host) if is_this(host) => own.push((key, entry)),
                AuthKey::Path(host, path) if is_this(host) => {
                    if let Some(credential) = self.entry(key, entry)? {
                        paths.push((path.to_owned(), credential));
                    }
                }
                _ => {}
            }
        }
        paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        // The key that Docker writes takes precedence over its variants.
        let servers = servers(self.host);
        own.sort_by_key(|(key, _)| {
            let place = servers.iter().position(|server| server == key);
            place.unwrap_or(usize::MAX)
        });
        let host = self.of_host(&own)?;
        Ok(Credentials { host, paths })
    }

    /// Tries the helper for this host, then the file, then the default helper.
    fn of_host(&self, own: &[(&String, &AuthEntry)]) -> Result<Credential, RegistryError> {
        let helpers = self.config.cred_helpers.iter().flatten();
        let helper = helpers
            .filter(|(key, _)| AuthKey::is_of_host(key, self.host))
            .find_map(|(_, helper)| helper.as_deref().filter(|name| !name.is_empty()));
        if let Some(helper) = helper {
            return self.ask_helper(helper);
        }
        for (key, entry) in own {
            if let Some(credential) = self.entry(key, entry)? {
                return Ok(credential);
            }
        }
        match self.config.creds_store.as_deref() {
            None | Some("") => Ok(Credential {
                proof: None,
                origin: self.file.to_owned(),
            }),
            Some(store) => self.ask_helper(store),
        }
    }

    fn entry(&self, key: &str, entry: &AuthEntry) -> Result<Option<Credential>, RegistryError> {
        let proof = entry.proof().map_err(|reason| {
            let origin = format!("{}, entry {key:?}", self.file);
            lookup_error(self.host, origin, reason.to_owned())
        })?;
        Ok(proof.map(|proof| Credential {
            proof: Some(proof),
            origin: self.file.to_owned(),
        }))
    }

    fn ask_helper(&self, helper: &str) -> Result<Credential, RegistryError> {
        let origin = format!("docker-credential-{helper} ({})", self.file);
        for server in servers(self.host) {
            let found = helper::get(helper, server, self.stopped)
                .map_err(|reason| lookup_error(self.host, origin.clone(), reason))?;
            let proof = found.and_then(proof);
            if proof.is_some() {
                return Ok(Credential { proof, origin });
            }
        }
        let proof = None;
        Ok(Credential { proof, origin })
    }
}

pub(super) fn lookup_error(host: &str, origin: String, reason: String) -> RegistryError {
    RegistryError::Credential {
        host: host.to_owned(),
        origin,
        reason,
        excerpt: None,
    }
}

/// Folder of Docker's settings: `$DOCKER_CONFIG`, else `~/.docker`.
pub fn docker_folder() -> Option<PathBuf> {
    match std::env::var_os("DOCKER_CONFIG") {
        Some(folder) if !folder.is_empty() => Some(PathBuf::from(folder)),
        _ => Some(std::env::home_dir()?.join(".docker")),
    }
}

pub(super) fn default_file() -> Option<PathBuf> {
    Some(docker_folder()?.join("config.json"))
}

/// Variable with the credentials file of podman, buildah and skopeo.
const AUTH_FILE: &str = "REGISTRY_AUTH_FILE";

fn path_in(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// Credentials files of podman, buildah and skopeo.
fn containers_files() -> Vec<PathBuf> {
    if let Some(file) = path_in(AUTH_FILE) {
        return vec![file];
    }
    let own = || Some(std::env::home_dir()?.join(".config"));
    let folders = [
        path_in("XDG_RUNTIME_DIR"),
        path_in("XDG_CONFIG_HOME").or_else(own),
    ];
    let folders = folders.into_iter().flatten();
    folders
        .map(|folder| folder.join("containers/auth.json"))
        .collect()
}

fn is_name_of(name: &str, host: &str) -> bool {
    let mut servers = servers(host).into_iter();
    servers.any(|server| AuthKey::of(server) == AuthKey::Host(name))
}

/// The name under which Docker stores a host's credential.
pub(super) fn server(host: &str) -> &str {
    servers(host).first().copied().unwrap_or(host)
}

/// The names under which a host's credential may be stored, Docker's first.
pub(super) fn servers(host: &str) -> Vec<&str> {
    match host {
        "docker.io" => vec![
            "https://index.docker.io/v1/",
            "docker.io",
            "registry-1.docker.io",
        ],
        other => vec![other],
    }
}

/// Interprets a helper's response: for an unknown host, its fields may be empty.
fn proof(found: helper::HelperCredential) -> Option<Authentication> {
    let helper::HelperCredential { user, secret } = found;
    match user.as_str() {
        TOKEN_USER => {
            (!secret.expose_secret().is_empty()).then_some(Authentication::IdentityToken(secret))
        }
        "" => None,
        _ => Some(Authentication::Password {
            user,
            password: secret,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn with_config(json: &str, host: &str) -> (Result<Credential, RegistryError>, PathBuf) {
        with_config_for(json, host, "")
    }

    fn with_config_for(
        json: &str,
        host: &str,
        repository: &str,
    ) -> (Result<Credential, RegistryError>, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        fs::write(&file, json).unwrap();
        let found = find(host, Some(&file), &CancellationToken::new())
            .map(|all| all.for_repository(repository).clone());
        (found, file)
    }

    fn user(json: &str, host: &str, repository: &str) -> Option<String> {
        match with_config_for(json, host, repository).0.unwrap().proof {
            Some(Authentication::Password { user, .. }) => Some(user),
            _ => None,
        }
    }

    // "bob:sesame"
    const AUTH: &str = r#"{"auths":{"repo.lan:5000":{"auth":"Ym9iOnNlc2FtZQ=="},"https://index.docker.io/v1/":{"auth":"Ym9iOnNlc2FtZQ=="}}}"#;

    #[test]
    fn a_credential_tells_where_it_is_from_and_keeps_its_secret() {
        let (found, file) = with_config(AUTH, "repo.lan:5000");
        let found = found.unwrap();
        let expected = format!("user \"bob\" from {}", file.display());
        assert_eq!(found.to_string(), expected);
        assert!(!format!("{found:?}").contains("sesame"));
    }

    #[test]
    fn docker_hub_is_kept_under_its_old_name() {
        let (found, _) = with_config(AUTH, "docker.io");
        assert!(found.unwrap().proof.is_some());
    }

    #[test]
    fn dockers_own_key_comes_before_other_names_of_docker_hub() {
        let json = r#"{"auths":{
            "docker.io":{"username":"other","password":"x"},
            "https://index.docker.io/v1/":{"username":"bob","password":"x"},
            "index.docker.io":{"username":"other","password":"x"}}}"#;
        assert_eq!(user(json, "docker.io", "").as_deref(), Some("bob"));
    }

    #[test]
    fn another_host_has_none() {
        let (found, _) = with_config(AUTH, "repo.lan:5001");
        let found = found.unwrap();
        assert_eq!(found.proof, None);
        assert!(found.to_string().starts_with("no credential (none in "));
    }

    #[test]
    fn an_identity_token_is_distinguished_from_a_password() {
        let json = r#"{"auths":{"repo.lan":{"identitytoken":"abc"}}}"#;
        let expected = Authentication::IdentityToken(Secret::new("abc".into()));
        // Editors on Windows begin the file with a mark.
        for json in [json, &format!("\u{feff}{json}")] {
            let (found, _) = with_config(json, "repo.lan");
            assert_eq!(found.unwrap().proof.as_ref(), Some(&expected));
        }
    }

    #[test]
    fn what_is_null_or_empty_is_as_if_it_did_not_exist() {
        let auth = "\"auth\":\"Ym9iOnNlc2FtZQ\"";
        for json in [
            format!(
                r#"{{"credHelpers":null,"credsStore":null,"auths":{{"repo.lan":{{{auth}}}}}}}"#
            ),
            format!(r#"{{"credHelpers":{{"repo.lan":""}},"auths":{{"repo.lan":{{{auth}}}}}}}"#),
            format!(r#"{{"credsStore":"","auths":{{"a":null,"repo.lan":{{{auth}}}}}}}"#),
            format!(r#"{{"auths":{{"repo.lan":{{{auth},"identitytoken":"","email":null}}}}}}"#),
            format!(r#"{{"auths":{{"repo.lan":{{{auth},"identitytoken":null}}}}}}"#),
        ] {
            assert_eq!(
                user(&json, "repo.lan", "").as_deref(),
                Some("bob"),
                "{json}"
            );
        }
        assert_eq!(user(r#"{"auths":null}"#, "repo.lan", ""), None);
        assert_eq!(user(r#"{"auths":{"repo.lan":{}}}"#, "repo.lan", ""), None);
    }

    #[test]
    fn a_key_may_be_a_url_or_have_a_path() {
        for key in [
            "repo.lan:5000/",
            "repo.lan:5000/v1/",
            "repo.lan:5000/v2/",
            "repo.lan:5000/v2",
            "https://repo.lan:5000",
            "https://repo.lan:5000/v2/",
            "http://repo.lan:5000/artifactory/api/docker/x",
        ] {
            let json = format!(r#"{{"auths":{{"{key}":{{"auth":"Ym9iOnNlc2FtZQ=="}}}}}}"#);
            let found = user(&json, "repo.lan:5000", "any");
            assert_eq!(found.as_deref(), Some("bob"), "{key}");
            assert_eq!(user(&json, "repo.lan", "any"), None, "{key}");
        }
    }

    #[test]
    fn a_repository_may_have_a_credential_of_its_own() {
        let json = r#"{"auths":{
            "repo.lan":{"username":"all","password":"x"},
            "repo.lan/team":{"username":"team","password":"x"},
            "repo.lan/team/app":{"username":"app","password":"x"}}}"#;
        for (repository, expected) in [
            ("", "all"),
            ("teams/app", "all"),
            ("team", "team"),
            ("team/web", "team"),
            ("team/app", "app"),
            ("team/app/sub", "app"),
        ] {
            let found = user(json, "repo.lan", repository);
            assert_eq!(found.as_deref(), Some(expected), "{repository}");
        }
    }

    #[test]
    fn an_entry_that_cannot_be_decoded_is_named_without_its_content() {
        let json = r#"{"auths":{"repo.lan":{"auth":"se-cret!"}}}"#;
        let message = with_config(json, "repo.lan").0.unwrap_err().to_string();
        assert!(message.contains("entry \"repo.lan\""), "{message}");
        assert!(!message.contains("se-cret"), "{message}");
    }

    #[test]
    fn a_helper_that_is_missing_is_named() {
        let json = r#"{"credHelpers":{"repo.lan":"wincimg-test-missing"}}"#;
        let (found, _) = with_config(json, "repo.lan");
        let message = found.unwrap_err().to_string();
        let expected = "docker-credential-wincimg-test-missing";
        assert!(message.contains(expected), "{message}");
        assert!(message.contains("cannot be run"), "{message}");
    }

    #[test]
    fn a_file_that_was_named_must_be_there_and_be_json() {
        let named = Path::new("/nonexistent/config.json");
        let missing = find("repo.lan", Some(named), &CancellationToken::new()).unwrap_err();
        let message = missing.to_string();
        assert!(message.contains("/nonexistent/config.json"), "{message}");
        let (broken, _) = with_config("{", "repo.lan");
        let message = broken.unwrap_err().to_string();
        assert!(message.contains("not Docker's config.json"), "{message}");
    }
}
