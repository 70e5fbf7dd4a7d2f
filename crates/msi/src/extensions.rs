//! Tables of the extensions of `WiX`, which actions of their libraries read: firewall rules, native
//! images, certificates and shortcuts to addresses.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use wincimg_common::x509::Certificate;
use wincimg_windows::certificate::{CertificateStore, TrustedCertificate};

use super::builder::Builder;
use super::database::{Database, Row};
use super::error::MsiError;
use super::files::REMOVE_ON_INSTALL;
use super::plan::Shortcut;
use super::session::{Session, image_path, join, long_name};

/// Firewall rules of `WiX` 3, 4 and 5.
const FIREWALL_RULES: [&str; 3] = [
    "WixFirewallException", "Wix4FirewallException", "Wix5FirewallException",
];
/// Entry points that configure what is in a table, and the column with its name.
const CONFIGURED: [(&str, &str, &str); 5] = [
    ("ConfigureIIs", "IIsAppPool", "Name"),
    ("ConfigureIIs", "IIsWebSite", "Description"),
    ("ConfigureIIs", "IIsWebVirtualDir", "Alias"),
    ("SchedXmlConfig", "XmlConfig", "File"),
    ("SchedXmlFile", "XmlFile", "File"),
];
/// Native images of `WiX` 3 and later.
const NATIVE_IMAGES: [&str; 2] = ["NetFxNativeImage", "Wix4NetFxNativeImage"];
/// Entry points that remove folders and keys with what is in them, and their tables.
const REMOVED: [(&str, &str); 3] = [
    ("WixRemoveFoldersEx", "WixRemoveFolderEx"),
    ("WixRemoveFoldersEx", "Wix4RemoveFolderEx"),
    ("WixRemoveRegistryKeysEx", "Wix4RemoveRegistryKeyEx"),
];
/// Certificates of `WiX` 3 and later.
const CERTIFICATES: [&str; 2] = ["Certificate", "Wix4Certificate"];

/// Shortcuts of `WiX` 3 and later.
const INTERNET_SHORTCUTS: [&str; 2] = ["WixInternetShortcut", "Wix4InternetShortcut"];
/// Attribute of those that are `.url` files.
const IS_URL: u32 = 1;

/// The computer's stores, among the locations of stores.
const LOCAL_MACHINE: i32 = 2;
/// Attributes of certificates.
const REQUEST: u32 = 1;
const IS_BINARY: u32 = 2;

fn certificates(database: &Database) -> impl Iterator<Item = Row<'_>> {
    CERTIFICATES.iter().flat_map(|table| database.rows(table))
}

/// Names of the streams with certificates.
pub(crate) fn certificate_streams(database: &Database) -> Vec<String> {
    let names = certificates(database).filter_map(|row| row.optional("Binary_"));
    names.map(|name| format!("Binary.{name}")).collect()
}

impl Session<'_> {
    /// Notes the firewall's rules. The firewall's service is off in containers, so they have no
    /// effect; there the action of Windows fails with 0x800706d9, unless a rule ignores that.
    /// <https://github.com/MicrosoftDocs/windowsserverdocs/issues/622>
    pub(crate) fn note_firewall_rules(&mut self) -> Result<(), MsiError> {
        let rules = FIREWALL_RULES.iter().flat_map(|it| self.installed_rows(it));
        let rules: Vec<Row<'_>> = rules.collect();
        for row in rules {
            let (port, program) = (row.text("Port"), row.text("Program"));
            let what = match (self.format(port)?, self.format(program)?) {
                (port, program) if port.is_empty() => program,
                (port, program) if program.is_empty() => format!("port {port}"),
                (port, program) => format!("port {port}, {program}"),
            };
            let name = self.format(row.text("Name"))?;
            self.notes.push(format!(
                "firewall rule {name} ({what}) is left out: containers run no firewall"
            ));
        }
        Ok(())
    }

    /// The names of what an entry point configures.
    pub(crate) fn configured_names(&self, target: &str) -> Result<Vec<String>, MsiError> {
        let mut names = BTreeSet::new();
        let tables = CONFIGURED.iter().filter(|(entry, ..)| *entry == target);
        for (_, table, column) in tables {
            for table in [(*table).to_owned(), format!("Wix4{table}")] {
                for row in self.installed_rows(&table) {
                    names.insert(self.format(row.text(column))?);
                }
            }
        }
        Ok(names.into_iter().collect())
    }

    /// Notes native images, without which .NET Framework compiles an assembly as it is loaded.
    /// <https://docs.firegiant.com/wix3/xsd/netfx/nativeimage>
    pub(crate) fn note_native_images(&mut self) {
        if NATIVE_IMAGES.iter().any(|it| self.has_installed_rows(it)) {
            let note = "native images (ngen) are left out: programs start more slowly";
            self.notes.push(note.to_owned());
        }
    }

    /// True if an entry point may remove something during an installation, not only with the product:
    /// it runs before components are selected.
    /// <https://docs.firegiant.com/wix/schema/util/removefolderex/>
    pub(crate) fn removes(&self, target: &str) -> bool {
        let tables = REMOVED.iter().filter(|(entry, _)| *entry == target);
        let mut rows = tables.flat_map(|(_, table)| self.database.rows(table));
        rows.any(|row| row.flags("InstallMode") & REMOVE_ON_INSTALL != 0)
    }

    /// True for an entry point whose table may be applied here.
    pub(crate) fn may_apply(&self, target: &str) -> bool {
        let has_certificates = || certificates(self.database).next().is_some();
        target == "WixSchedInternetShortcuts"
            || target == "InstallCertificates" && has_certificates()
    }

    /// Applies the table of an entry point.
    pub(crate) fn apply(&self, target: &str, plan: &mut Builder) -> Result<(), MsiError> {
        if target != "InstallCertificates" {
            return self.create_internet_shortcuts(plan);
        }
        let trusted = self.certificates()?;
        trusted.iter().try_for_each(|it| plan.edit(it.edit()))
    }

    /// Creates `.url` files. `WiX` creates none on a Windows without the class of such shortcuts,
    /// where nothing opens them.
    /// <https://docs.firegiant.com/wix/schema/util/internetshortcut/>
    fn create_internet_shortcuts(&self, plan: &mut Builder) -> Result<(), MsiError> {
        let rows = INTERNET_SHORTCUTS.iter();
        for row in rows.flat_map(|table| self.installed_rows(table)) {
            let name = long_name(row.text("Name"));
            let target = self.format(row.text("Target"))?;
            let icon = self.format(row.text("IconFile"))?;
            let is_plain = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            let has_scheme = target.find(':').is_some_and(|end| end > 1);
            let is_url = row.flags("Attributes") & IS_URL != 0 && has_scheme;
            if !is_url || !is_plain(&target) || !is_plain(&icon) {
                let why = format!("the shortcut {name} to {target}");
                return Err(MsiError::unsupported(why));
            }
            let icon = match icon.as_str() {
                "" => String::new(),
                file => {
                    let index = row.number("IconIndex").unwrap_or_default();
                    format!("IconFile={file}\r\nIconIndex={index}\r\n")
                }
            };
            let text = format!("[InternetShortcut]\r\nURL={target}\r\n{icon}");
            let shortcut = Shortcut {
                path: join(&self.folder(row.text("Directory_"))?, name)?,
                target,
                arguments: String::new(),
            };
            plan.bytes(shortcut.path.clone(), text.into_bytes())?;
            plan.rest.shortcuts.push(shortcut);
        }
        Ok(())
    }

    /// The certificates that are installed, without the friendly names by which they are removed.
    fn certificates(&self) -> Result<Vec<TrustedCertificate>, MsiError> {
        certificates(self.database)
            .filter(|row| self.installed(row.text("Component_")).is_some())
            .map(|row| self.certificate(&row))
            .collect()
    }

    fn certificate(&self, row: &Row<'_>) -> Result<TrustedCertificate, MsiError> {
        let unsupported = |why: String| {
            let name = row.text("Certificate");
            MsiError::unsupported(format!("certificate {name}: {why}"))
        };
        let location = row.number("StoreLocation").unwrap_or_default();
        if location != LOCAL_MACHINE {
            let why = format!("the store is not the computer's (location {location})");
            return Err(unsupported(why));
        }
        let store = match row.text("StoreName").to_ascii_lowercase().as_str() {
            "root" => CertificateStore::Root,
            "ca" => CertificateStore::Ca,
            "trustedpublisher" => CertificateStore::TrustedPublisher,
            "trustedpeople" => CertificateStore::TrustedPeople,
            other => return Err(unsupported(format!("unsupported store {other}"))),
        };
        let (place, bytes) = match row.flags("Attributes") {
            own if own & REQUEST == 0 && own & IS_BINARY != 0 => {
                let stream = format!("Binary.{}", row.text("Binary_"));
                let bytes = self.database.stream(&stream).map(<[u8]>::to_vec);
                (stream, bytes)
            }
            // Read before the files of the package are there.
            0 => {
                let path = image_path(&self.format(row.text("CertificatePath"))?)?;
                (path.to_string(), self.system.content(&path).present())
            }
            other => return Err(unsupported(format!("unsupported attributes {other}"))),
        };
        let bytes =
            bytes.ok_or_else(|| unsupported(format!("the content of {place} is unknown")))?;
        let certificate = Certificate::parse(der(bytes)).map_err(|_| {
            let why = "is not one certificate in DER or PEM: a PFX, with its key, is not supported";
            unsupported(format!("{place} {why}"))
        })?;
        Ok(TrustedCertificate { store, certificate })
    }
}

/// The content of PEM with one certificate; other bytes as they are.
fn der(bytes: Vec<u8>) -> Vec<u8> {
    let text = str::from_utf8(&bytes).unwrap_or_default().trim();
    let digits = text
        .strip_prefix("-----BEGIN CERTIFICATE-----")
        .and_then(|rest| rest.strip_suffix("-----END CERTIFICATE-----"))
        .map(|digits| digits.split_whitespace().collect::<String>());
    let decoded = digits.and_then(|digits| BASE64_STANDARD.decode(digits).ok());
    decoded.unwrap_or(bytes)
}

#[cfg(test)]
mod tests;
