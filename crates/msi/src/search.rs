//! `AppSearch` and `Upgrade` tables: what the image has.

use wincimg_registry::{DataType, KeyPath, Presence, RegistryData, TypedData};

use super::database::Row;
use super::error::MsiError;
use super::registration::{packed, version_number};
use super::registry::{NamedKey, named_key, parse_key};
use super::session::{Session, image_path, long_name};

const RAW: u32 = 2;
const KEYS_OF_64_BIT: u32 = 16;

/// Attributes of the `Upgrade` table.
const ONLY_DETECT: u32 = 2;
const MIN_INCLUSIVE: u32 = 0x100;
const MAX_INCLUSIVE: u32 = 0x200;

impl Session<'_> {
    /// `AppSearch`: properties from the registry and from files.
    pub(crate) fn search(&mut self) -> Result<(), MsiError> {
        let database = self.database;
        for row in database.rows("AppSearch") {
            let (property, signature) = (row.text("Property"), row.text("Signature_"));
            let found = match self.search_registry(signature)? {
                Some(found) => Some(found),
                None => self.search_folder(signature)?,
            };
            if let Some(found) = found {
                self.set(property, found);
            }
        }
        Ok(())
    }

    fn search_registry(&mut self, signature: &str) -> Result<Option<String>, MsiError> {
        let database = self.database;
        let Some(row) = database.find("RegLocator", "Signature_", signature) else {
            return Ok(None);
        };
        let kind = row.number("Type").map_or(1, i32::cast_unsigned);
        let path = self.format(row.text("Key"))?;
        let name = self.format(row.text("Name"))?;
        let root = row.number("Root").unwrap_or_default();
        let key = named_key(
            root,
            &path,
            kind & KEYS_OF_64_BIT != 0,
            self.is_for_machine(),
        )?;
        let NamedKey::Key(key) = key else {
            return Ok(None);
        };
        let data = match self.system.value(&key, &name) {
            Presence::Present(data) => data,
            Presence::Absent => return Ok(None),
            Presence::Unknown => {
                self.unknown.push(format!("the value {name:?} of {key}"));
                return Ok(None);
            }
        };
        let value = located(&data);
        if kind & 3 == RAW {
            return Ok(Some(value));
        }
        let path = value.trim_matches('"').trim_end_matches('\\').to_owned();
        Ok(self.existing(&path, signature))
    }

    /// A file or folder, if the image has it.
    fn existing(&mut self, path: &str, signature: &str) -> Option<String> {
        let Ok(folder) = image_path(path) else {
            return None;
        };
        let database = self.database;
        let file = database.find("Signature", "Signature", signature);
        let path = match file {
            // Its version, size and date are not compared.
            Some(row) => match folder.join(long_name(row.text("FileName"))) {
                Ok(path) => path,
                Err(_) => return None,
            },
            None => folder,
        };
        match self.system.entry(&path) {
            Presence::Present(true) => Some(format!(r"{path}\")),
            Presence::Present(false) => Some(path.to_string()),
            Presence::Absent => None,
            Presence::Unknown => {
                self.unknown.push(format!("whether {path} exists"));
                None
            }
        }
    }

    fn search_folder(&mut self, signature: &str) -> Result<Option<String>, MsiError> {
        let database = self.database;
        let Some(row) = database.find("DrLocator", "Signature_", signature) else {
            return Ok(None);
        };
        if !row.text("Parent").is_empty() || row.number("Depth").unwrap_or_default() > 0 {
            self.unknown
                .push(format!("the result of the search {signature}"));
            return Ok(None);
        }
        let path = self.format(row.text("Path"))?;
        Ok(self.existing(path.trim_end_matches('\\'), signature))
    }

    /// `FindRelatedProducts`: products of the image that the package knows.
    pub(crate) fn find_related_products(&mut self) -> Result<(), MsiError> {
        const UPGRADES: &str =
            r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Installer\UpgradeCodes";
        const PRODUCTS: &str = r"HKLM\SOFTWARE\Classes\Installer\Products";
        let database = self.database;
        for row in database.rows("Upgrade") {
            let Some(code) = packed(row.text("UpgradeCode")) else {
                continue;
            };
            let key = parse_key(&format!(r"{UPGRADES}\{code}"))?;
            let products = match self.system.value_names(&key) {
                Presence::Present(products) => products,
                Presence::Absent => continue,
                Presence::Unknown => {
                    self.unknown.push(format!("whether {key} exists"));
                    continue;
                }
            };
            for product in products {
                let key = parse_key(&format!(r"{PRODUCTS}\{product}"))?;
                let Some(version) = self.product_version(&key) else {
                    continue;
                };
                if !is_in_range(&row, version) {
                    continue;
                }
                let name = match self.system.value(&key, "ProductName") {
                    Presence::Present(name) => located(&name),
                    _ => product,
                };
                if row.flags("Attributes") & ONLY_DETECT == 0 {
                    let why = format!(
                        "the package replaces {name}, which the image has: only Windows can remove it"
                    );
                    return Err(MsiError::unsupported(why));
                }
                self.set(row.text("ActionProperty"), name);
            }
        }
        Ok(())
    }

    fn product_version(&self, product: &KeyPath) -> Option<u32> {
        match self.system.value(product, "Version") {
            Presence::Present(data) => match data.typed() {
                TypedData::Dword(version) => Some(version),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A value as `AppSearch` sets it.
fn located(data: &RegistryData) -> String {
    match data.typed() {
        TypedData::Text(text) if data.kind() == DataType::EXPAND_SZ => {
            format!("#%{text}")
        }
        TypedData::Text(text) if text.starts_with('#') => format!("#{text}"),
        TypedData::Text(text) => text,
        TypedData::List(list) => format!("[~]{}[~]", list.join("[~]")),
        TypedData::Dword(number) => format!("#{}", number.cast_signed()),
        TypedData::Qword(_) | TypedData::Bytes(_) => {
            let digits = data.bytes().iter().map(|byte| format!("{byte:02X}"));
            format!("#x{}", digits.collect::<String>())
        }
    }
}

fn is_in_range(row: &Row<'_>, version: u32) -> bool {
    let attributes = row.flags("Attributes");
    let above = row.optional("VersionMin").is_none_or(|min| {
        let min = version_number(min);
        version > min || version == min && attributes & MIN_INCLUSIVE != 0
    });
    let below = row.optional("VersionMax").is_none_or(|max| {
        let max = version_number(max);
        version < max || version == max && attributes & MAX_INCLUSIVE != 0
    });
    above && below
}
