//! Services, certificates and users' variables that a line sets.
//!
//! No layer has a delta of a user's hive: it is a file of the profile, which the layer has in full.

use wincimg_layer::ContentSource;
use wincimg_recipe::{FileSource, PlannedContent, certificates_in_file};
use wincimg_registry::hive::{FileTime, Hive, set_value};
use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_registry::{KeyPath, RegistryData, RegistryEdit, TypedData};
use wincimg_scripts::{ImageState as _, Lookup, PendingDownload, ScriptError, ServiceChange};
use wincimg_windows::certificate::{CertificateStore, TrustedCertificate};
use wincimg_windows::path::ImagePath;
use wincimg_windows::service::{FailureActions, ServiceName};

use super::keys::is_same;
use super::{Result, RunState, unknown_content};

/// Value of a service's key.
const DISPLAY_NAME: &str = "DisplayName";

impl RunState<'_> {
    pub(super) fn service(&mut self, service: ServiceChange) -> Result<()> {
        let ServiceChange { name, settings, .. } = service;
        if let Some(display_name) = &settings.display_name {
            self.check_display_name(display_name.as_str(), &name)?;
        }
        let key = name.key();
        let mut edits = match (self.key(&key), service.is_new) {
            (Lookup::Present(()), true) => {
                let why = format!("the service {name} already exists");
                return Err(ScriptError::fails(why));
            }
            (_, true) => settings.new_service(&name),
            (_, false) => {
                self.check_service_exists(&name)?;
                let delayed = self.value(&key, "DelayedAutostart");
                let was_delayed = matches!(&delayed, Lookup::Present(data)
                    if !matches!(data.typed(), TypedData::Dword(0)));
                settings.changes(&name, was_delayed)
            }
        };
        if let Some(failure) = &service.on_failure {
            self.check_failure_command(failure, &name)?;
            edits.extend(failure.edits(&name));
        }
        if service.fails_on_error {
            edits.push(RegistryEdit::SetValue {
                key,
                name: "FailureActionsOnNonCrashFailures".to_owned(),
                data: RegistryData::dword(1),
            });
        }
        self.registry.edit(edits);
        Ok(())
    }

    pub(super) fn delete_service(&mut self, name: &ServiceName) -> Result<()> {
        self.check_service_exists(name)?;
        let edit = RegistryEdit::DeleteKey { key: name.key() };
        self.registry.edit([edit]);
        Ok(())
    }

    /// A display name is that of one service, and no other service has it as its name. Those of the
    /// base are mostly in resources of its programs.
    fn check_display_name(&self, text: &str, name: &ServiceName) -> Result<()> {
        let own = name.key();
        let is_name = text.parse::<ServiceName>().is_ok_and(|other| {
            !is_same(&other.key(), &own) && self.key(&other.key()) == Lookup::Present(())
        });
        let has_it = |key: &KeyPath| matches!(self.value(key, DISPLAY_NAME), Lookup::Present(data) if matches!(data.typed(), TypedData::Text(other) if eq_ignore_case(&other, text)));
        let above = |key: &KeyPath| {
            let mut above = key.clone();
            above.pop();
            above
        };
        let is_other = |key: &KeyPath| !is_same(key, &own) && is_same(&above(key), &above(&own));
        let mut keys = self.registry.with_value(DISPLAY_NAME);
        if is_name || keys.any(|key| is_other(key) && has_it(key)) {
            let why = format!("another service has the name or display name {text:?}");
            return Err(ScriptError::fails(why));
        }
        Ok(())
    }

    fn check_service_exists(&self, name: &ServiceName) -> Result<()> {
        match self.key(&name.key()) {
            Lookup::Present(()) => Ok(()),
            Lookup::Absent => Err(ScriptError::fails(format!("service {name} not found"))),
            Lookup::Unknown | Lookup::Deferred(PendingDownload) => {
                let why = format!("it is unknown whether the base has the service {name}");
                Err(ScriptError::unknown(why))
            }
        }
    }

    /// The command of a service stays where none is given, and only Windows knows how the actions
    /// say so.
    fn check_failure_command(&self, failure: &FailureActions, name: &ServiceName) -> Result<()> {
        let has = |value: &str| self.value(&name.key(), value) != Lookup::Absent;
        if has("RebootMessage") || failure.command.is_none() && has("FailureCommand") {
            let why = format!("the service {name} has a failure command or message already");
            return Err(ScriptError::unclear(why).help("give the command, too"));
        }
        Ok(())
    }
}

impl RunState<'_> {
    /// Adds the certificates of a file to a store.
    pub(super) fn trust(&mut self, store: &str, file: &ImagePath) -> Result<()> {
        let store = match store {
            "ROOT" => CertificateStore::Root,
            "CA" => CertificateStore::Ca,
            "TrustedPublisher" => CertificateStore::TrustedPublisher,
            "TrustedPeople" => CertificateStore::TrustedPeople,
            other => {
                let why = format!("unsupported certificate store {other}");
                return Err(ScriptError::unclear(why)
                    .help("use Root, CA, TrustedPublisher or TrustedPeople"));
            }
        };
        let bytes = match self.content(file) {
            Lookup::Present(bytes) => bytes,
            Lookup::Deferred(PendingDownload) => return Ok(()),
            Lookup::Absent | Lookup::Unknown => return Err(unknown_content(file)),
        };
        let begins = b"-----BEGIN ";
        let parts = bytes.windows(begins.len()).filter(|it| it == begins);
        if parts.count() > 1 {
            let why =
                format!("{file} contains several certificates, of which Windows imports the first");
            return Err(ScriptError::unclear(why).help("put each certificate in a file of its own"));
        }
        let found = certificates_in_file(bytes, &file.to_string())
            .map_err(|unusable| ScriptError::unclear(unusable.to_string()))?;
        let trusted = found
            .into_iter()
            .map(|certificate| TrustedCertificate { store, certificate });
        self.registry.edit(trusted.map(|trusted| trusted.edit()));
        Ok(())
    }
}

/// Key of a user's variables.
const ENVIRONMENT: &str = "Environment";

/// Maximum size of a hive.
const LONGEST: u64 = 32 << 20;

/// Time of the change, the beginning of 1970: the same inputs give the same bytes.
const CHANGED: FileTime = FileTime(116_444_736_000_000_000);

impl RunState<'_> {
    pub(super) fn set_user_variable(
        &mut self,
        hive: &ImagePath,
        name: &str,
        data: &RegistryData,
    ) -> Result<()> {
        let content = match self.hive_bytes(hive) {
            // It is extracted first.
            None => PlannedContent::File(FileSource::Text("".into())),
            Some(bytes) => {
                let changed = set_value(&bytes?, ENVIRONMENT, name, data, CHANGED);
                let changed = changed.map_err(|error| {
                    let why = format!("cannot set a variable in {hive}: {error}");
                    ScriptError::unclear(why).help("set it for the machine or with ENV")
                })?;
                self.count_written(hive, changed.len())?;
                PlannedContent::File(FileSource::Bytes(changed.into()))
            }
        };
        self.put(hive.clone(), content)
    }

    /// Content of a hive; `None` if it must be extracted first.
    fn hive_bytes(&self, hive: &ImagePath) -> Option<Result<Vec<u8>>> {
        let source = match self.created_file(hive) {
            Some(source) => source.clone(),
            None => match self.base.source(hive)? {
                Ok(source) => source,
                Err(error) => return Some(Err(error)),
            },
        };
        let bytes = ContentSource::from(&source).read(LONGEST);
        Some(bytes.map_err(|error| ScriptError::unclear(format!("cannot read {hive}: {error}"))))
    }

    /// Variable in a hive that a line, or an image below, changed.
    pub(super) fn variable_of_hive(&self, hive: &ImagePath, name: &str) -> Lookup<RegistryData> {
        if self.created_file(hive).is_none() && !self.base.has_user_variables {
            return Lookup::Absent;
        }
        let Some(bytes) = self.hive_bytes(hive) else {
            return Lookup::Deferred(PendingDownload);
        };
        let found = bytes.ok().and_then(|bytes| {
            let hive = Hive::read(&bytes).ok()?;
            hive.root.subkey(ENVIRONMENT)?.value(name)
        });
        found.map_or(Lookup::Absent, Lookup::Present)
    }
}
