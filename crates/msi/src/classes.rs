//! Classes and file types: `Class`, `ProgId`, `Extension`, `Verb`, `MIME`, `TypeLib`, `AppId`, `Font`.

use wincimg_registry::RegistryData;

use super::builder::Builder;
use super::database::Row;
use super::error::MsiError;
use super::registry::{child, classes, parse_key};
use super::session::Session;

/// Maximum depth of program identifiers.
const DEPTH: usize = 16;

impl Session<'_> {
    fn is_feature_selected(&self, row: &Row<'_>) -> bool {
        self.features.get(row.text("Feature_")).copied() == Some(true)
    }

    /// The key file of a component.
    fn key_file(&self, component: &str) -> Result<String, MsiError> {
        let Some(component) = self.components.get(component) else {
            return Ok(String::new());
        };
        let file = self.file(&component.key_path)?;
        Ok(file.map(|file| file.to_string()).unwrap_or_default())
    }

    /// `RegisterClassInfo`.
    pub(crate) fn register_classes(&self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.database.rows("Class") {
            let Some(component) = self.installed(row.text("Component_")) else {
                continue;
            };
            if !self.is_feature_selected(&row) {
                continue;
            }
            self.register_class(&row, component.is_64_bit(), plan)?;
        }
        for row in self.database.rows("AppId") {
            let is_used = self.database.rows("Class").any(|class| {
                class.text("AppId_") == row.text("AppId")
                    && self.installed(class.text("Component_")).is_some()
            });
            if is_used {
                self.register_app_id(&row, plan)?;
            }
        }
        Ok(())
    }

    fn register_class(
        &self,
        row: &Row<'_>,
        is_64_bit: bool,
        plan: &mut Builder,
    ) -> Result<(), MsiError> {
        let (id, context) = (row.text("CLSID"), row.text("Context"));
        let key = classes(&format!(r"CLSID\{id}"), is_64_bit)?;
        let child = |name: &str| child(&key, name);
        plan.set(
            &key,
            "",
            RegistryData::sz(&self.format(row.text("Description"))?),
        )?;
        let mut server = self.key_file(row.text("Component_"))?;
        let arguments = self.format(row.text("Argument"))?;
        if !arguments.is_empty() {
            server = format!("{server} {arguments}");
        }
        plan.set(&child(context)?, "", RegistryData::sz(&server))?;
        if let Some(prog_id) = row.optional("ProgId_Default") {
            let versioned = self.versioned(prog_id);
            plan.set(&child("ProgID")?, "", RegistryData::sz(prog_id))?;
            if let Some(independent) = versioned {
                let data = RegistryData::sz(independent);
                plan.set(&child("VersionIndependentProgID")?, "", data)?;
            }
        }
        if let Some(app_id) = row.optional("AppId_") {
            plan.set(&key, "AppID", RegistryData::sz(app_id))?;
        }
        if let Some(icon) = row.optional("Icon_") {
            let index = row.number("IconIndex").unwrap_or_default();
            let icon = format!("{},{index}", self.icon_path(icon));
            plan.set(&child("DefaultIcon")?, "", RegistryData::sz(&icon))?;
        }
        if let Some(handler) = row.optional("DefInprocHandler") {
            let (short, long) = ("ole2.dll", "ole32.dll");
            let files: &[(&str, &str)] = match handler {
                "1" => &[("InprocHandler", short)],
                "2" => &[("InprocHandler32", long)],
                "3" => &[("InprocHandler", short), ("InprocHandler32", long)],
                other => &[("InprocHandler32", other)],
            };
            for (name, file) in files {
                plan.set(&child(name)?, "", RegistryData::sz(file))?;
            }
        }
        if let Some(mask) = row.optional("FileTypeMask") {
            for (index, mask) in mask.split(';').enumerate() {
                let key = classes(&format!(r"FileType\{id}\{index}"), is_64_bit)?;
                plan.set(&key, "", RegistryData::sz(mask))?;
            }
        }
        Ok(())
    }

    /// The identifier without version above a program identifier.
    fn versioned(&self, prog_id: &str) -> Option<&str> {
        let children = self.database.rows("ProgId");
        let mut children = children.filter(|row| row.text("ProgId_Parent") == prog_id);
        children.next().map(|row| row.text("ProgId"))
    }

    fn register_app_id(&self, row: &Row<'_>, plan: &mut Builder) -> Result<(), MsiError> {
        let key = classes(&format!(r"AppID\{}", row.text("AppId")), true)?;
        plan.set(&key, "", RegistryData::sz(""))?;
        for column in [
            "RemoteServerName", "LocalService", "ServiceParameters", "DllSurrogate",
        ] {
            let text = self.format(row.text(column))?;
            if !text.is_empty() {
                plan.set(&key, column, RegistryData::sz(&text))?;
            }
        }
        for (column, value) in [
            ("ActivateAtStorage", "ActivateAtStorage"),
            ("RunAsInteractiveUser", "RunAs"),
        ] {
            if row.flags(column) != 0 {
                let text = if value == "RunAs" {
                    "Interactive User"
                } else {
                    "Y"
                };
                plan.set(&key, value, RegistryData::sz(text))?;
            }
        }
        Ok(())
    }

    /// `RegisterProgIdInfo`.
    pub(crate) fn register_prog_ids(&self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.database.rows("ProgId") {
            let name = row.text("ProgId");
            let Some(class) = self.class_of(row)? else {
                if self.has_extension(name) {
                    self.write_prog_id(&row, "", plan)?;
                }
                continue;
            };
            self.write_prog_id(&row, class, plan)?;
        }
        Ok(())
    }

    /// The installed class of a program identifier or of those above it.
    fn class_of<'r>(&'r self, row: Row<'r>) -> Result<Option<&'r str>, MsiError> {
        let mut at = row;
        for _ in 0..DEPTH {
            if let Some(class) = at.optional("Class_") {
                let mut classes = self.database.rows("Class");
                let is_there = classes.any(|it| {
                    it.text("CLSID") == class && self.installed(it.text("Component_")).is_some()
                });
                return Ok(is_there.then_some(class));
            }
            let parent = at.text("ProgId_Parent");
            match self.database.find("ProgId", "ProgId", parent) {
                Some(above) => at = above,
                None => return Ok(None),
            }
        }
        let why = format!(
            "program identifier {:?} is inside itself",
            row.text("ProgId")
        );
        Err(MsiError::damaged(why))
    }

    fn has_extension(&self, prog_id: &str) -> bool {
        let mut extensions = self.database.rows("Extension");
        extensions.any(|row| {
            row.text("ProgId_") == prog_id && self.installed(row.text("Component_")).is_some()
        })
    }

    fn write_prog_id(
        &self,
        row: &Row<'_>,
        class: &str,
        plan: &mut Builder,
    ) -> Result<(), MsiError> {
        let key = classes(row.text("ProgId"), true)?;
        let description = self.format(row.text("Description"))?;
        plan.set(&key, "", RegistryData::sz(&description))?;
        if !class.is_empty() {
            plan.set(&child(&key, "CLSID")?, "", RegistryData::sz(class))?;
        }
        if let Some(parent) = row.optional("ProgId_Parent") {
            plan.set(&child(&key, "CurVer")?, "", RegistryData::sz(parent))?;
        }
        if let Some(icon) = row.optional("Icon_") {
            let index = row.number("IconIndex").unwrap_or_default();
            let icon = format!("{},{index}", self.icon_path(icon));
            plan.set(&child(&key, "DefaultIcon")?, "", RegistryData::sz(&icon))?;
        }
        Ok(())
    }

    /// `RegisterExtensionInfo`, with verbs.
    pub(crate) fn register_extensions(&self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.database.rows("Extension") {
            if self.installed(row.text("Component_")).is_none() || !self.is_feature_selected(&row) {
                continue;
            }
            let extension = row.text("Extension");
            let key = classes(&format!(".{extension}"), true)?;
            let prog_id = row.text("ProgId_");
            let verbs = if prog_id.is_empty() {
                plan.set(
                    &key,
                    "",
                    RegistryData::sz(&format!("{extension}_auto_file")),
                )?;
                format!("{extension}_auto_file")
            } else {
                plan.set(&key, "", RegistryData::sz(prog_id))?;
                prog_id.to_owned()
            };
            if let Some(mime) = row.optional("MIME_") {
                plan.set(&key, "Content Type", RegistryData::sz(mime))?;
            }
            let program = self.key_file(row.text("Component_"))?;
            for verb in self.database.rows("Verb") {
                if verb.text("Extension_") != extension {
                    continue;
                }
                let name = verb.text("Verb");
                let mut key = classes(&verbs, true)?;
                for part in ["shell", name] {
                    key = child(&key, part)?;
                }
                let shown = self.format(verb.text("Command"))?;
                if !shown.is_empty() {
                    plan.set(&key, "", RegistryData::sz(&shown))?;
                }
                let argument = self.format(verb.text("Argument"))?;
                let command = match argument.as_str() {
                    "" => format!("\"{program}\""),
                    argument => format!("\"{program}\" {argument}"),
                };
                plan.set(&child(&key, "command")?, "", RegistryData::sz(&command))?;
            }
        }
        Ok(())
    }

    /// `RegisterMIMEInfo`.
    pub(crate) fn register_mime(&self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.database.rows("MIME") {
            let extension = row.text("Extension_");
            let mut extensions = self.database.rows("Extension");
            let is_installed = extensions.any(|it| {
                it.text("Extension") == extension && self.installed(it.text("Component_")).is_some()
            });
            if !is_installed {
                continue;
            }
            let path = format!(r"MIME\Database\Content Type\{}", row.text("ContentType"));
            // A key's name may have a slash, which `KeyPath` keeps.
            let key = classes(&path, true)?;
            plan.set(
                &key,
                "Extension",
                RegistryData::sz(&format!(".{extension}")),
            )?;
            if let Some(class) = row.optional("CLSID") {
                plan.set(&key, "CLSID", RegistryData::sz(class))?;
            }
        }
        Ok(())
    }

    /// `RegisterTypeLibraries`.
    pub(crate) fn register_type_libraries(&self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.database.rows("TypeLib") {
            let Some(component) = self.installed(row.text("Component_")) else {
                continue;
            };
            let Some(version) = row.number("Version") else {
                let why = format!("type library {} has no version", row.text("LibID"));
                return Err(MsiError::unsupported(why));
            };
            let (major, minor) = (version >> 8 & 0xffff, version & 0xff);
            let path = format!(r"TypeLib\{}\{major:x}.{minor:x}", row.text("LibID"));
            let key = classes(&path, true)?;
            plan.set(
                &key,
                "",
                RegistryData::sz(&self.format(row.text("Description"))?),
            )?;
            plan.set(&child(&key, "FLAGS")?, "", RegistryData::sz("0"))?;
            let help = match row.optional("Directory_") {
                Some(directory) => self.directory(directory)?.to_owned(),
                None => self.directory(&component.directory)?.to_owned(),
            };
            plan.set(&child(&key, "HELPDIR")?, "", RegistryData::sz(&help))?;
            let platform = if component.is_64_bit() {
                "win64"
            } else {
                "win32"
            };
            let mut file = child(&key, &format!("{:x}", row.flags("Language")))?;
            file = child(&file, platform)?;
            let path = self.key_file(row.text("Component_"))?;
            plan.set(&file, "", RegistryData::sz(&path))?;
        }
        Ok(())
    }

    /// `RegisterFonts`.
    pub(crate) fn register_fonts(&self, plan: &mut Builder) -> Result<(), MsiError> {
        let key = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Fonts";
        for row in self.database.rows("Font") {
            let file = row.text("File_");
            let component = self.database.find("File", "File", file);
            let component = component
                .map(|it| it.text("Component_"))
                .unwrap_or_default();
            if self.installed(component).is_none() {
                continue;
            }
            let Some(path) = self.file(file)? else {
                continue;
            };
            let Some(title) = row.optional("FontTitle") else {
                let why = format!("font {path} has no title in the package, only in its file");
                return Err(MsiError::unsupported(why));
            };
            // A file in the folder of fonts is named without it.
            let names = path.components();
            let is_font_folder = names.len() == 3
                && path
                    .to_string()
                    .to_lowercase()
                    .starts_with(r"c:\windows\fonts\");
            let value = match names.last() {
                Some(name) if is_font_folder => name.clone(),
                _ => path.to_string(),
            };
            plan.set(&parse_key(key)?, title, RegistryData::sz(&value))?;
        }
        Ok(())
    }
}
