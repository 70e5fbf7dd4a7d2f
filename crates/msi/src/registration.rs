//! What Windows Installer records of a product, so that programs list it, upgrades find it, and it
//! can be removed.
//!
//! The keys are those that wine's `msiexec` and Windows write; the dates and names that Windows
//! takes from the clock and from chance are derived from the package.

use wincimg_common::digest::sha256;
use wincimg_registry::{KeyMode, KeyPath, RegistryData, RegistryEdit};
use wincimg_windows::path::ImagePath;

use super::builder::Builder;
use super::error::MsiError;
use super::plan::{InstallPlan, InstalledContent, InstalledFile, NEW_INSTANCE, TransformPlace};
use super::registry::{LOCAL_MACHINE, child, named_key, parse_key, software_key};
use super::selection::{Component, OTHER_SELECTIONS};
use super::session::{Session, image_path};

/// Installer's own keys; 64-bit ones for every package.
pub(crate) const USER_DATA: &str =
    r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Installer\UserData\S-1-5-18";
pub(crate) const CLASSES: &str = r"HKLM\SOFTWARE\Classes\Installer";
pub(crate) const INSTALLER: &str = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Installer";

/// Value of a product with the code of its package.
const PACKAGE_CODE: &str = "PackageCode";

/// Marks a feature that is known and not installed.
const ABSENT: &str = "\u{6}";

/// `{12345678-ABCD-…}` with the digits of its fields reversed, as the installer's keys have it.
pub(crate) fn packed(guid: &str) -> Option<String> {
    let guid = guid.to_ascii_uppercase();
    let guid = guid.strip_prefix('{')?.strip_suffix('}')?;
    let lengths = guid.split('-').map(str::len);
    if !lengths.eq([8, 4, 4, 4, 12]) {
        return None;
    }
    reversed(guid.replace('-', ""))
}

/// The code that is so packed.
pub(crate) fn unpacked(packed: &str) -> Option<String> {
    let mut code = reversed(packed.to_ascii_uppercase())?;
    for place in [20, 16, 12, 8] {
        code.insert(place, '-');
    }
    Some(format!("{{{code}}}"))
}

/// The digits of a code, those of each field reversed.
fn reversed(mut digits: String) -> Option<String> {
    if digits.len() != 32 || digits.contains(|c: char| !c.is_ascii_hexdigit()) {
        return None;
    }
    let mut out = String::new();
    // The last two fields are bytes.
    for length in [8, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2] {
        out.extend(digits.drain(..length).rev());
    }
    Some(out)
}

/// `1.2.345` as one number.
pub(crate) fn version_number(version: &str) -> u32 {
    let mut parts = version
        .split('.')
        .map(|it| it.parse::<u32>().unwrap_or_default());
    let mut part = || parts.next().unwrap_or_default();
    (part() & 0xff) << 24 | (part() & 0xff) << 16 | part() & 0xffff
}

fn packed_code(guid: &str, of: &str) -> Result<String, MsiError> {
    packed(guid).ok_or_else(|| MsiError::damaged(format!("invalid {of} {guid:?}")))
}

impl Session<'_> {
    /// The product's code, as the installer's keys have it.
    fn packed_product(&self) -> Result<String, MsiError> {
        packed_code(&self.product.code, "ProductCode")
    }

    /// Path of the package's copy. Windows picks a random name.
    pub(crate) fn cached_package(&self) -> Result<ImagePath, MsiError> {
        let codes = [&*self.product.code, &*self.summary.package_code].concat();
        let hash = sha256(codes.as_bytes());
        let name = hash.digest()[..8].trim_start_matches('0');
        image_path(&format!(r"C:\Windows\Installer\{name}.msi"))
    }

    /// Time of the installation: that of the package, in UTC.
    pub(crate) fn time(&self, format: &str) -> String {
        let time = self.summary.time.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        time.to_zoned(jiff::tz::TimeZone::UTC)
            .strftime(format)
            .to_string()
    }

    /// `RegisterProduct`: the list of programs, and the copy of the package.
    pub(crate) fn register_product(&self, plan: &mut Builder) -> Result<(), MsiError> {
        let packed = self.packed_product()?;
        let cached = self.cached_package()?;
        let product = parse_key(&format!(r"{USER_DATA}\Products\{packed}"))?;
        let properties = child(&product, "InstallProperties")?;
        let path = cached.to_string();
        plan.text(&properties, "LocalPackage", &path)?;
        self.write_properties(&properties, plan)?;
        let is_64_bit = self.summary.platform() != "Intel";
        let code = &self.product.code;
        let below = format!(r"Microsoft\Windows\CurrentVersion\Uninstall\{code}");
        self.write_properties(&software_key(&below, is_64_bit)?, plan)?;
        let upgrade_code = &self.product.upgrade_code;
        if !upgrade_code.is_empty() {
            let upgrade = packed_code(upgrade_code, "UpgradeCode")?;
            let key = parse_key(&format!(r"{INSTALLER}\UpgradeCodes\{upgrade}"))?;
            plan.text(&key, &packed, "")?;
        }
        plan.file(InstalledFile {
            path: cached,
            size: self.package_size,
            version: None,
            source: InstalledContent::Package,
            is_replacement: false,
        })?;
        Self::record_folders(plan)
    }

    /// The values of both lists of programs.
    fn write_properties(&self, key: &KeyPath, plan: &mut Builder) -> Result<(), MsiError> {
        const TEXTS: [(&str, &str); 13] = [
            ("AuthorizedCDFPrefix", "ARPAUTHORIZEDCDFPREFIX"),
            ("Comments", "ARPCOMMENTS"),
            ("Contact", "ARPCONTACT"),
            ("DisplayName", "ProductName"),
            ("DisplayVersion", "ProductVersion"),
            ("HelpLink", "ARPHELPLINK"),
            ("HelpTelephone", "ARPHELPTELEPHONE"),
            ("InstallLocation", "ARPINSTALLLOCATION"),
            ("Publisher", "Manufacturer"),
            ("Readme", "ARPREADME"),
            ("Size", "ARPSIZE"),
            ("URLInfoAbout", "ARPURLINFOABOUT"),
            ("URLUpdateInfo", "ARPURLUPDATEINFO"),
        ];
        const FLAGS: [(&str, &str); 4] = [
            ("NoModify", "ARPNOMODIFY"),
            ("NoRemove", "ARPNOREMOVE"),
            ("NoRepair", "ARPNOREPAIR"),
            ("SystemComponent", "ARPSYSTEMCOMPONENT"),
        ];
        for (value, property) in TEXTS {
            plan.text(key, value, self.property(property))?;
        }
        for (value, property) in FLAGS {
            if !self.property(property).is_empty() {
                plan.set(key, value, RegistryData::dword(1))?;
            }
        }
        let code = &self.product.code;
        // A product that cannot be modified is removed by the same command.
        let is_fixed = !self.property("ARPNOMODIFY").is_empty();
        let switch = if is_fixed { 'X' } else { 'I' };
        let command = format!("MsiExec.exe /{switch}{code}");
        plan.set(key, "ModifyPath", RegistryData::expand_sz(&command))?;
        plan.set(key, "UninstallString", RegistryData::expand_sz(&command))?;
        plan.text(key, "InstallDate", &self.time("%Y%m%d"))?;
        let source = &self.options.source_folder;
        plan.text(key, "InstallSource", source)?;
        let size: u64 = plan.files().map(|file| file.size).sum();
        let kibibytes = u32::try_from(size.div_ceil(1024)).unwrap_or(u32::MAX);
        let version = version_number(&self.product.version);
        let language = self.property("ProductLanguage").parse().unwrap_or_default();
        for (value, number) in [
            ("EstimatedSize", kibibytes),
            ("Language", language),
            ("Version", version),
            ("VersionMajor", version >> 24),
            ("VersionMinor", version >> 16 & 0xff),
            ("WindowsInstaller", 1),
        ] {
            plan.set(key, value, RegistryData::dword(number))?;
        }
        Ok(())
    }

    /// The plan if the image has the product: nothing is to do, unless it is of another package.
    pub(crate) fn plan_again(&mut self) -> Result<Option<InstallPlan>, MsiError> {
        let Some(code) = packed(&self.product.code) else {
            return Ok(None);
        };
        let key = parse_key(&format!(r"{CLASSES}\Products\{code}"))?;
        let Some(installed) = self.value_in_image(&key, PACKAGE_CODE) else {
            return Ok(None);
        };
        let name = &self.product.name;
        let own = packed(&self.summary.package_code);
        if own.is_none_or(|own| installed != RegistryData::sz(&own)) {
            let why = format!("another version of {name} is already installed (1638)");
            return Err(MsiError::Fails(why));
        }
        let mut changes = ["ADDLOCAL", "REMOVE"].into_iter().chain(OTHER_SELECTIONS);
        if let Some(property) = changes.find(|it| !self.property(it).is_empty()) {
            let why = format!("{property} changes {name}, which the image has: only Windows can");
            return Err(MsiError::unsupported(why));
        }
        self.notes
            .push(format!("{name} is already installed: nothing is to do"));
        Ok(Some(InstallPlan {
            product: self.product.clone(),
            missing_actions: self.missing_actions(),
            interactive: self.interactive(),
            notes: std::mem::take(&mut self.notes),
            ..InstallPlan::default()
        }))
    }

    /// `PublishProduct`.
    pub(crate) fn publish_product(&self, plan: &mut Builder) -> Result<(), MsiError> {
        let packed = self.packed_product()?;
        let key = parse_key(&format!(r"{CLASSES}\Products\{packed}"))?;
        let package = packed_code(&self.summary.package_code, "package code")?;
        let clients = RegistryData::multi_sz(&[":"]).map_err(MsiError::unsupported)?;
        plan.text(&key, "ProductName", &self.product.name)?;
        plan.text(&key, PACKAGE_CODE, &package)?;
        let language = self.property("ProductLanguage").parse().unwrap_or_default();
        let is_instance = !self.property(NEW_INSTANCE).is_empty();
        for (value, number) in [
            ("AdvertiseFlags", 0x184),
            ("Assignment", 1),
            ("AuthorizedLUAApp", 0),
            ("DeploymentFlags", 3),
            ("InstanceType", u32::from(is_instance)),
            ("Language", language),
            ("Version", version_number(&self.product.version)),
        ] {
            plan.set(&key, value, RegistryData::dword(number))?;
        }
        if !self.property("ARPPRODUCTICON").is_empty() {
            let icon = self.icon_path(self.property("ARPPRODUCTICON"));
            plan.text(&key, "ProductIcon", &icon)?;
        }
        plan.set(&key, "Clients", clients)?;
        let sources = child(&key, "SourceList")?;
        let folder = &self.options.source_folder;
        let name = &self.options.file_name;
        plan.text(&sources, "PackageName", name)?;
        let last_used = RegistryData::expand_sz(&format!("n;1;{folder}"));
        plan.set(&sources, "LastUsedSource", last_used)?;
        let net = child(&sources, "Net")?;
        plan.set(&net, "1", RegistryData::expand_sz(folder))?;
        let media = child(&sources, "Media")?;
        for (value, property) in [
            ("DiskPrompt", "DiskPrompt"),
            ("MediaPackage", "MEDIAPACKAGEPATH"),
        ] {
            plan.text(&media, value, self.property(property))?;
        }
        for row in self.database.rows("Media") {
            let number = row.flags("DiskId").to_string();
            let medium = format!("{};{}", row.text("VolumeLabel"), row.text("DiskPrompt"));
            plan.text(&media, &number, &medium)?;
        }
        if !self.product.upgrade_code.is_empty() {
            let upgrade = packed_code(&self.product.upgrade_code, "UpgradeCode")?;
            let key = parse_key(&format!(r"{CLASSES}\UpgradeCodes\{upgrade}"))?;
            plan.text(&key, &packed, "")?;
        }
        self.publish_transforms(&key, plan)?;
        self.publish_icons(plan)
    }

    /// The transforms of the product, and the copies of those that are files.
    fn publish_transforms(&self, key: &KeyPath, plan: &mut Builder) -> Result<(), MsiError> {
        let copy = |path: &ImagePath| {
            let name = path.components().last();
            self.icon_path(name.map_or("", String::as_str))
        };
        for (path, bytes) in &self.transforms {
            plan.bytes(image_path(&copy(path))?, bytes.clone())?;
        }
        let places = self.options.transforms()?;
        let names = places.iter().map(|place| match place {
            TransformPlace::Package(_) => place.to_string(),
            TransformPlace::File(path) => copy(path),
        });
        let names: Vec<String> = names.collect();
        if names.is_empty() {
            return Ok(());
        }
        plan.set(key, "Transforms", RegistryData::expand_sz(&names.join(";")))
    }

    /// Icons that shortcuts and the list of programs show.
    fn publish_icons(&self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.database.rows("Icon") {
            let name = row.text("Name");
            let stream = format!("Icon.{name}");
            let source = match self.database.stream(&stream) {
                Some(bytes) => InstalledContent::Bytes(bytes.to_vec()),
                None => InstalledContent::Stream(stream),
            };
            plan.file(InstalledFile {
                path: image_path(&self.icon_path(name))?,
                size: 0,
                version: None,
                source,
                is_replacement: false,
            })?;
        }
        Ok(())
    }

    /// Path of the copy of an icon or transform.
    pub(crate) fn icon_path(&self, name: &str) -> String {
        let code = self.property("ProductCode");
        format!(r"C:\Windows\Installer\{code}\{name}")
    }

    /// `PublishFeatures`: the features, and the components of each.
    pub(crate) fn publish_features(&self, plan: &mut Builder) -> Result<(), MsiError> {
        let packed = self.packed_product()?;
        let key = parse_key(&format!(r"{CLASSES}\Features\{packed}"))?;
        let data = parse_key(&format!(r"{USER_DATA}\Products\{packed}\Features"))?;
        for (name, is_selected) in &self.features {
            let Some(row) = self.database.find("Feature", "Feature", name) else {
                continue;
            };
            if row.number("Level") == Some(0) {
                continue;
            }
            let parent = row.text("Feature_Parent");
            let absent = if *is_selected { "" } else { ABSENT };
            plan.text(&key, name, &format!("{absent}{parent}"))?;
            let mut components = String::new();
            for link in self.database.rows("FeatureComponents") {
                if link.text("Feature_") == name
                    && let Some(component) = self.components.get(link.text("Component_"))
                    && let Some(id) = compressed(&component.id)
                {
                    components.push_str(&id);
                }
            }
            if !parent.is_empty() {
                components.push('\u{2}');
                components.push_str(parent);
            }
            plan.text(&data, name, &components)?;
        }
        Ok(())
    }

    /// `ProcessComponents`: the key path of each component.
    pub(crate) fn record_components(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        let packed_product = self.packed_product()?;
        let components = self.components.clone().into_values();
        for component in components.filter(|it| it.is_installed) {
            let Some(id) = packed(&component.id) else {
                continue;
            };
            let key = parse_key(&format!(r"{USER_DATA}\Components\{id}"))?;
            let path = self.key_path(&component)?;
            plan.text(&key, &packed_product, &path)?;
            if component.is_permanent() {
                // The empty product holds a component that stays.
                plan.text(&key, &"0".repeat(32), &path)?;
            }
            if component.is_shared_dll() && !component.has_registry_key_path() && !path.is_empty() {
                let below = r"Microsoft\Windows\CurrentVersion\SharedDLLs";
                let shared = software_key(below, component.is_64_bit())?;
                let before = self.present_value(&shared, &path, plan);
                let before = before.and_then(|data| data.number());
                let count = before.unwrap_or_default().saturating_add(1);
                plan.set(&shared, &path, RegistryData::dword(count))?;
            }
        }
        Ok(())
    }

    /// The key path of a component: a file, a registry value (`02:\SOFTWARE\…`), or its folder.
    fn key_path(&self, component: &Component) -> Result<String, MsiError> {
        if component.key_path.is_empty() {
            return self.directory(&component.directory).map(str::to_owned);
        }
        if component.has_registry_key_path() {
            let key_path = &component.key_path;
            let Some(row) = self.database.find("Registry", "Registry", key_path) else {
                return Ok(String::new());
            };
            let is_64_bit = component.is_64_bit();
            let root = self.root(&row).unwrap_or(LOCAL_MACHINE);
            let path = self.format(row.text("Key"))?;
            let name = self.format(row.text("Name"))?;
            named_key(root, &path, is_64_bit)?;
            let below = path.trim_matches('\\');
            let prefix = if is_64_bit { root + 20 } else { root };
            return Ok(format!(r"{prefix:02}:\{below}\{name}"));
        }
        self.file_text(&component.key_path)
    }

    /// The folders that the installer created.
    fn record_folders(plan: &mut Builder) -> Result<(), MsiError> {
        let key = parse_key(&format!(r"{INSTALLER}\Folders"))?;
        let names: Vec<String> = plan
            .folders()
            .filter(|folder| folder.components().len() > 1 && !is_of_windows(folder))
            .map(|folder| format!(r"{folder}\"))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        plan.edit(RegistryEdit::CreateKey {
            key: key.clone(),
            mode: KeyMode::Merge,
        })?;
        for name in names {
            plan.text(&key, &name, "")?;
        }
        Ok(())
    }
}

/// True for folders that every Windows has.
fn is_of_windows(folder: &ImagePath) -> bool {
    let top = folder.components().first();
    top.is_some_and(|top| top.eq_ignore_ascii_case("Windows"))
}

/// A component's code in base 85, as lists of components have it.
fn compressed(guid: &str) -> Option<String> {
    const DIGITS: &[u8; 85] =
        b"!$%&'()*+,-.0123456789=?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{}~";
    let packed = packed(guid)?;
    let digits: Vec<u32> = packed.chars().filter_map(|c| c.to_digit(16)).collect();
    let mut out = String::new();
    // The packed form has the bytes of the memory in the order of their nibbles, reversed.
    for word in digits.chunks(8) {
        let mut value = word.iter().rev().fold(0_u32, |all, digit| all << 4 | digit);
        for _ in 0..5 {
            out.push(char::from(DIGITS[usize::try_from(value % 85).ok()?]));
            value /= 85;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_packed() {
        assert_eq!(
            packed("{12345678-9abc-DEF0-1234-56789ABCDEF0}").as_deref(),
            Some("87654321CBA90FED21436587A9CBED0F")
        );
        assert_eq!(
            unpacked("87654321CBA90FED21436587A9CBED0F").as_deref(),
            Some("{12345678-9ABC-DEF0-1234-56789ABCDEF0}")
        );
        assert_eq!(unpacked("87654321"), None);
        assert_eq!(packed("{12345678-9ABC-DEF0-1234}"), None);
        assert_eq!(packed("{123456789-ABC-DEF0-1234-56789ABCDEF0}"), None);
        assert_eq!(packed("12345678"), None);
    }

    #[test]
    fn versions_are_one_number() {
        assert_eq!(version_number("1.2.345.9"), 0x0102_0159);
        assert_eq!(version_number("x"), 0);
    }
}
