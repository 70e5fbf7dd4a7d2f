//! `AppSearch` and `Upgrade` tables: what the image has.

use wincimg_registry::{DataType, KeyPath, Presence, RegistryData, TypedData};
use wincimg_windows::path::ImagePath;
use wincimg_windows::variables::expanded;

use super::database::Row;
use super::error::MsiError;
use super::registration::{CLASSES, INSTALLER, USER_DATA, packed, unpacked, version_number};
use super::registry::{is_outside_hives, named_key, parse_key};
use super::session::{Session, image_path, long_name};

/// What a value of `RegLocator` is, besides a path of a file.
const KIND: u32 = 3;
const FOLDER: u32 = 0;
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
const LANGUAGES_EXCLUSIVE: u32 = 0x400;

impl<'a> Session<'a> {
    /// `AppSearch`: properties from the registry, components, `.ini` files and files.
    pub(crate) fn search(&mut self) -> Result<(), MsiError> {
        let database = self.database;
        for row in database.rows("AppSearch") {
            let (property, signature) = (row.text("Property"), row.text("Signature_"));
            let before = self.unknown.len();
            if let Some(found) = self.located(signature, 0)? {
                self.set(property, found);
            }
            if self.unknown.len() > before {
                self.unknown_searches.insert(property.to_owned());
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
            Err(MsiError::Unsupported(_)) if is_outside_hives(root, &path) => return Ok(None),
            // No hive of an image has it, but a running Windows may.
            Err(MsiError::Unsupported(_)) => {
                self.unknown.push(format!("the value {name:?} of {path}"));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some(data) = self.value_in_image(&key, &name) else {
            return Ok(None);
        };
        let value = self.read_value(&data);
        let path = unquoted(&value);
        Ok(match kind & KIND {
            RAW => Some(value),
            FOLDER => self.inside(path, signature),
            _ => self.named_file(path, signature),
        })
    }

    /// The file of a signature, whose own name does not count, or the folder of a file.
    fn named_file(&mut self, path: &str, signature: &str) -> Option<String> {
        let mut path = image_path(path).ok()?;
        if self.signature(signature).is_none() {
            path = path.parent().unwrap_or(path);
        }
        self.existing(&path, signature)
    }

    /// The file of a signature in a folder, or the folder.
    fn inside(&mut self, folder: &str, signature: &str) -> Option<String> {
        let mut path = image_path(folder).ok()?;
        if let Some(row) = self.signature(signature) {
            path = path.join(long_name(row.text("FileName"))).ok()?;
        }
        self.existing(&path, signature)
    }

    /// The path of a file of a signature, or of a folder without one, if the image has it.
    fn existing(&mut self, path: &ImagePath, signature: &str) -> Option<String> {
        let row = self.signature(signature);
        let found = self.system.entry(path);
        let is_folder = self.known(found, || format!("whether {path} exists"))?;
        if is_folder == row.is_some() {
            return None;
        }
        let is_set = |limit: &&str| {
            row.is_some_and(|row| row.optional(limit).is_some() || row.number(limit).is_some())
        };
        if LIMITS.iter().any(is_set) {
            self.unknown.push(format!(
                "whether {path} has the version of the search {signature}"
            ));
        }
        let mut path = path.to_string();
        if is_folder && !path.ends_with('\\') {
            path.push('\\');
        }
        Some(path)
    }

    fn signature(&self, signature: &str) -> Option<Row<'a>> {
        let database = self.database;
        database.find("Signature", "Signature", signature)
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
        } else if path.get(1..2) != Some(":") && !path.starts_with(r"\\") {
            // Windows searches all fixed drives.
            path = format!(r"C:\{}", path.trim_start_matches(['\\', '/']));
        }
        let levels = row.number("Depth").unwrap_or_default();
        if levels > 0 {
            self.search_below(&path, signature, levels);
            return Ok(None);
        }
        Ok(self.inside(&path, signature))
    }

    /// Searches a folder and those in it. Which of several files Windows finds is unknown.
    fn search_below(&mut self, path: &str, signature: &str, levels: i32) {
        let Ok(folder) = image_path(path) else {
            return;
        };
        let name = self.signature(signature);
        let name = name.map(|row| long_name(row.text("FileName")));
        let may_exist = match name {
            Some(name) => self.may_have(&folder, name, levels),
            None => self.system.entry(&folder) != Presence::Absent,
        };
        if may_exist {
            let what = name.unwrap_or(signature);
            self.unknown.push(format!("where {what} is below {folder}"));
        }
    }

    /// False for a folder that has no such name, down to some levels.
    fn may_have(&self, folder: &ImagePath, name: &str, levels: i32) -> bool {
        let mut names = match self.system.names(folder) {
            Presence::Present(names) => names.into_iter(),
            Presence::Absent => return false,
            Presence::Unknown => return true,
        };
        let may_be_inside = |below: ImagePath| {
            self.system.entry(&below) != Presence::Present(false)
                && self.may_have(&below, name, levels - 1)
        };
        names.any(|own| {
            own.eq_ignore_ascii_case(name)
                || levels > 0 && folder.join(&own).is_ok_and(may_be_inside)
        })
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
                let (Some(code), Some(version)) =
                    (unpacked(&product), self.product_number(&key, "Version"))
                else {
                    continue;
                };
                let language = self.product_number(&key, "Language").unwrap_or_default();
                if !is_in_range(&row, version) || !is_of_language(&row, language) {
                    continue;
                }
                if row.flags("Attributes") & ONLY_DETECT == 0 {
                    let name = self.system.value(&key, "ProductName").present();
                    let name = name.map_or(code, |name| self.read_value(&name));
                    let why = format!(
                        "the package replaces {name}, which the image has: only Windows can remove it"
                    );
                    return Err(MsiError::unsupported(why));
                }
                self.add_product(row.text("ActionProperty"), code);
            }
        }
        Ok(())
    }

    fn product_number(&self, product: &KeyPath, name: &str) -> Option<u32> {
        self.system.value(product, name).present()?.number()
    }

    /// Adds a product to those of a property.
    fn add_product(&mut self, property: &str, code: String) {
        let own = self.property(property);
        if own.split(';').any(|own| own == code) {
            return;
        }
        let codes = if own.is_empty() {
            code
        } else {
            format!("{own};{code}")
        };
        self.set(property, codes);
    }

    /// A value as `AppSearch` sets it. Windows fills in variables, by wine's tests.
    fn read_value(&self, data: &RegistryData) -> String {
        match data.typed() {
            TypedData::Text(text) if data.kind() == DataType::EXPAND_SZ => {
                expanded(&text, |name| {
                    Some(self.environment(name)).filter(|value| !value.is_empty())
                })
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
}

/// The text between the first quotes, if there are any: a command line begins with its program.
fn unquoted(text: &str) -> &str {
    let mut parts = text.split('"').skip(1);
    match (parts.next(), parts.next()) {
        (Some(inside), Some(_)) => inside,
        _ => text,
    }
}

/// True if a row is for products of a language.
fn is_of_language(row: &Row<'_>, language: u32) -> bool {
    let Some(listed) = row.optional("Language") else {
        return true;
    };
    let mut listed = listed.split(',').map(|it| it.trim().parse::<u32>());
    let is_exclusive = row.flags("Attributes") & LANGUAGES_EXCLUSIVE != 0;
    listed.any(|listed| listed == Ok(language)) != is_exclusive
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
