//! `AppSearch` and `Upgrade` tables: what the image has.

use wincimg_registry::{DataType, KeyPath, Presence, RegistryData, TypedData};

use super::database::Row;
use super::error::MsiError;
use super::registration::{CLASSES, INSTALLER, USER_DATA, packed, version_number};
use super::registry::{named_key, parse_key};
use super::session::{Session, image_path, long_name};

const RAW: u32 = 2;
const KEYS_OF_64_BIT: u32 = 16;

/// Columns of `Signature` with limits of a file.
const LIMITS: [&str; 7] = [
    "Languages", "MaxDate", "MaxSize", "MaxVersion", "MinDate", "MinSize", "MinVersion",
];

/// Maximum depth of searches inside others.
const DEPTH: usize = 16;

/// Attributes of the `Upgrade` table.
const ONLY_DETECT: u32 = 2;
const MIN_INCLUSIVE: u32 = 0x100;
const MAX_INCLUSIVE: u32 = 0x200;

impl Session<'_> {
    /// `AppSearch`: properties from the registry, components, `.ini` files and files.
    pub(crate) fn search(&mut self) -> Result<(), MsiError> {
        let database = self.database;
        for row in database.rows("AppSearch") {
            let (property, signature) = (row.text("Property"), row.text("Signature_"));
            if let Some(found) = self.located(signature, 0)? {
                self.set(property, found);
            }
        }
        Ok(())
    }

    /// What a search finds.
    fn located(&mut self, signature: &str, depth: usize) -> Result<Option<String>, MsiError> {
        if depth > DEPTH {
            let why = format!("the search {signature:?} is inside itself");
            return Err(MsiError::damaged(why));
        }
        if let Some(found) = self.search_registry(signature)? {
            return Ok(Some(found));
        }
        self.search_records(signature)?;
        self.search_folder(signature, depth)
    }

    /// Searches of components and `.ini` files, which find nothing if the image lacks them.
    fn search_records(&mut self, signature: &str) -> Result<(), MsiError> {
        let database = self.database;
        let component = database.find("CompLocator", "Signature_", signature);
        if let Some(id) = component.and_then(|row| packed(row.text("ComponentId"))) {
            let key = parse_key(&format!(r"{USER_DATA}\Components\{id}"))?;
            if self.system.key(&key) != Presence::Absent {
                self.unknown.push(format!("the values of {key}"));
            }
        }
        if let Some(row) = database.find("IniLocator", "Signature_", signature) {
            let file = image_path(&format!(r"C:\Windows\{}", long_name(row.text("FileName"))))?;
            if self.system.entry(&file) != Presence::Absent {
                self.unknown.push(format!("an entry of {file}"));
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
        let root = self.root(&row).unwrap_or_default();
        let key = match named_key(root, &path, kind & KEYS_OF_64_BIT != 0) {
            Ok(Some(key)) => key,
            Ok(None) => return Ok(None),
            // No hive of an image has it.
            Err(MsiError::Unsupported(_)) => {
                self.unknown.push(format!("the value {name:?} of {path}"));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some(data) = self.value_in_image(&key, &name) else {
            return Ok(None);
        };
        let value = located(&data);
        if kind & 3 == RAW {
            return Ok(Some(value));
        }
        let path = value.trim_matches('"').trim_end_matches('\\');
        Ok(self.existing(path, signature))
    }

    /// A file or folder, if the image has it.
    fn existing(&mut self, path: &str, signature: &str) -> Option<String> {
        let mut path = image_path(path).ok()?;
        let row = self.database.find("Signature", "Signature", signature);
        if let Some(row) = row {
            path = path.join(long_name(row.text("FileName"))).ok()?;
        }
        let found = self.system.entry(&path);
        let is_folder = self.known(found, || format!("whether {path} exists"))?;
        let is_set = |limit: &&str| {
            row.is_some_and(|row| row.optional(limit).is_some() || row.number(limit).is_some())
        };
        if LIMITS.iter().any(is_set) {
            self.unknown.push(format!(
                "whether {path} has the version of the search {signature}"
            ));
        }
        let end = if is_folder { r"\" } else { "" };
        Some(format!("{path}{end}"))
    }

    fn search_folder(&mut self, signature: &str, depth: usize) -> Result<Option<String>, MsiError> {
        let database = self.database;
        let Some(row) = database.find("DrLocator", "Signature_", signature) else {
            return Ok(None);
        };
        let mut path = self.format(row.text("Path"))?;
        if let Some(parent) = row.optional("Parent") {
            let Some(above) = self.located(parent, depth + 1)? else {
                return Ok(None);
            };
            path = format!(r"{}\{path}", above.trim_end_matches('\\'));
        }
        if row.number("Depth").unwrap_or_default() > 0 {
            self.unknown
                .push(format!("the result of the search {signature}"));
            return Ok(None);
        }
        Ok(self.existing(path.trim_end_matches('\\'), signature))
    }

    /// `FindRelatedProducts`: products of the image that the package knows.
    pub(crate) fn find_related_products(&mut self) -> Result<(), MsiError> {
        let database = self.database;
        for row in database.rows("Upgrade") {
            let Some(code) = packed(row.text("UpgradeCode")) else {
                continue;
            };
            let key = parse_key(&format!(r"{INSTALLER}\UpgradeCodes\{code}"))?;
            let found = self.system.value_names(&key);
            let products = self.known(found, || format!("whether {key} exists"));
            for product in products.into_iter().flatten() {
                let key = parse_key(&format!(r"{CLASSES}\Products\{product}"))?;
                let Some(version) = self.product_version(&key) else {
                    continue;
                };
                if !is_in_range(&row, version) {
                    continue;
                }
                let name = self.system.value(&key, "ProductName").present();
                let name = name.map_or(product, |name| located(&name));
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
        match self.system.value(product, "Version").present()?.typed() {
            TypedData::Dword(version) => Some(version),
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
