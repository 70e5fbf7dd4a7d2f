//! Classes and file types: `Class`, `ProgId`, `Extension`, `Verb`, `MIME`, `TypeLib`, `AppId`, `Font`.

use wincimg_registry::{KeyPath, RegistryEdit};

use super::builder::Builder;
use super::database::Row;
use super::error::MsiError;
use super::registry::{child, classes, parse_key};
use super::session::Session;

/// Attribute of a class that is registered by the name of its file alone.
const RELATIVE_PATH: u32 = 1;

/// Maximum depth of program identifiers.
const DEPTH: usize = 16;

impl Session<'_> {
    fn is_feature_selected(&self, row: &Row<'_>) -> bool {
        self.features.get(row.text("Feature_")).copied() == Some(true)
    }

    /// The key file of a row's component; empty if there is none.
    pub(crate) fn key_file(&self, row: &Row<'_>) -> Result<String, MsiError> {
        let Some(component) = self.components.get(row.text("Component_")) else {
            return Ok(String::new());
        };
        self.file_text(&component.key_path)
    }

    /// Sets the icon of a class or program identifier.
    fn set_icon(&self, key: &KeyPath, row: &Row<'_>, plan: &mut Builder) -> Result<(), MsiError> {
        let Some(icon) = row.optional("Icon_") else {
            return Ok(());
        };
        let index = row.number("IconIndex").unwrap_or_default();
        let icon = format!("{},{index}", self.icon_path(icon));
        plan.text(&child(key, "DefaultIcon")?, "", &icon)
    }

    /// `RegisterClassInfo`.
    pub(crate) fn register_classes(&self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.installed_rows("Class") {
            if self.is_feature_selected(&row) {
                self.register_class(&row, plan)?;
            }
        }
        for row in self.database.rows("AppId") {
            if self.is_installed("Class", "AppId_", row.text("AppId")) {
                self.register_app_id(&row, plan)?;
            }
        }
        Ok(())
    }

    fn register_class(&self, row: &Row<'_>, plan: &mut Builder) -> Result<(), MsiError> {
        let (id, is_64_bit) = (row.text("CLSID"), self.is_64_bit(row));
        let key = classes(&format!(r"CLSID\{id}"), is_64_bit)?;
        let child = |name: &str| child(&key, name);
        plan.text(&key, "", &self.format(row.text("Description"))?)?;
        let arguments = self.format(row.text("Argument"))?;
        let mut program = self.key_file(row)?;
        if row.flags("Attributes") & RELATIVE_PATH != 0
            && let Some((_, name)) = program.rsplit_once('\\')
        {
            program = String::from(name);
        }
        let server = with_arguments(program, &arguments);
        plan.text(&child(row.text("Context"))?, "", &server)?;
        if let Some(prog_id) = row.optional("ProgId_Default") {
            plan.text(&child("ProgID")?, "", prog_id)?;
            // The identifier without version.
            if let Some(row) = self.database.find("ProgId", "ProgId_Parent", prog_id) {
                let independent = row.text("ProgId");
                plan.text(&child("VersionIndependentProgID")?, "", independent)?;
            }
        }
        if let Some(app_id) = row.optional("AppId_") {
            plan.text(&key, "AppID", app_id)?;
        }
        self.set_icon(&key, row, plan)?;
        if let Some(handler) = row.optional("DefInprocHandler") {
            let (short, long) = ("ole2.dll", "ole32.dll");
            let files: &[(&str, &str)] = match handler {
                "1" => &[("InprocHandler", short)],
                "2" => &[("InprocHandler32", long)],
                "3" => &[("InprocHandler", short), ("InprocHandler32", long)],
                other => &[("InprocHandler32", other)],
            };
            for (name, file) in files {
                plan.text(&child(name)?, "", file)?;
            }
        }
        if let Some(masks) = row.optional("FileTypeMask") {
            for (index, mask) in masks.split(';').enumerate() {
                let key = classes(&format!(r"FileType\{id}\{index}"), is_64_bit)?;
                plan.text(&key, "", mask)?;
            }
        }
        Ok(())
    }

    fn register_app_id(&self, row: &Row<'_>, plan: &mut Builder) -> Result<(), MsiError> {
        let key = classes(&format!(r"AppID\{}", row.text("AppId")), true)?;
        plan.text(&key, "", "")?;
        for column in [
            "RemoteServerName", "LocalService", "ServiceParameters", "DllSurrogate",
        ] {
            let text = self.format(row.text(column))?;
            if !text.is_empty() {
                plan.text(&key, column, &text)?;
            }
        }
        for (column, value, text) in [
            ("ActivateAtStorage", "ActivateAtStorage", "Y"),
            ("RunAsInteractiveUser", "RunAs", "Interactive User"),
        ] {
            if row.flags(column) != 0 {
                plan.text(&key, value, text)?;
            }
        }
        Ok(())
    }

    /// `RegisterProgIdInfo`.
    pub(crate) fn register_prog_ids(&self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.database.rows("ProgId") {
            let name = row.text("ProgId");
            let class = self.class_of(row)?;
            if class.is_none() && !self.is_installed("Extension", "ProgId_", name) {
                continue;
            }
            let key = classes(name, true)?;
            plan.text(&key, "", &self.format(row.text("Description"))?)?;
            if let Some(class) = class {
                plan.text(&child(&key, "CLSID")?, "", class)?;
            }
            if let Some(parent) = row.optional("ProgId_Parent") {
                plan.text(&child(&key, "CurVer")?, "", parent)?;
            }
            self.set_icon(&key, &row, plan)?;
        }
        Ok(())
    }

    /// The installed class of a program identifier or of those above it.
    fn class_of<'r>(&'r self, row: Row<'r>) -> Result<Option<&'r str>, MsiError> {
        let mut at = row;
        for _ in 0..DEPTH {
            if let Some(class) = at.optional("Class_") {
                return Ok(Some(class).filter(|class| self.is_installed("Class", "CLSID", class)));
            }
            let parent = at.text("ProgId_Parent");
            match self.database.find("ProgId", "ProgId", parent) {
                Some(above) => at = above,
                None => return Ok(None),
            }
        }
        let name = row.text("ProgId");
        let why = format!("program identifier {name:?} is inside itself");
        Err(MsiError::damaged(why))
    }

    /// `RegisterExtensionInfo`, with verbs.
    pub(crate) fn register_extensions(&self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.installed_rows("Extension") {
            if !self.is_feature_selected(&row) {
                continue;
            }
            let extension = row.text("Extension");
            let key = classes(&format!(".{extension}"), true)?;
            let prog_id = match row.text("ProgId_") {
                "" => format!("{extension}_auto_file"),
                prog_id => prog_id.to_owned(),
            };
            plan.text(&key, "", &prog_id)?;
            if let Some(mime) = row.optional("MIME_") {
                plan.text(&key, "Content Type", mime)?;
            }
            let program = self.key_file(&row)?;
            let shell = child(&classes(&prog_id, true)?, "shell")?;
            let verbs = self.database.rows("Verb");
            let mut in_order = Vec::new();
            for verb in verbs.filter(|verb| verb.text("Extension_") == extension) {
                let name = verb.text("Verb");
                in_order.extend(verb.number("Sequence").map(|number| (number, name)));
                let key = child(&shell, name)?;
                let shown = self.format(verb.text("Command"))?;
                if !shown.is_empty() {
                    plan.text(&key, "", &shown)?;
                }
                let arguments = self.format(verb.text("Argument"))?;
                let command = with_arguments(format!("\"{program}\""), &arguments);
                plan.text(&child(&key, "command")?, "", &command)?;
            }
            // The first one is the default.
            // https://learn.microsoft.com/windows/win32/msi/verb-table
            in_order.sort_by_key(|(number, _)| *number);
            let names: Vec<&str> = in_order.into_iter().map(|(_, name)| name).collect();
            if !names.is_empty() {
                plan.text(&shell, "", &names.join(","))?;
            }
        }
        Ok(())
    }

    /// `RegisterMIMEInfo`.
    pub(crate) fn register_mime(&self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.database.rows("MIME") {
            let extension = row.text("Extension_");
            if !self.is_installed("Extension", "Extension", extension) {
                continue;
            }
            let path = format!(r"MIME\Database\Content Type\{}", row.text("ContentType"));
            // A key's name may have a slash, which `KeyPath` keeps.
            let key = classes(&path, true)?;
            plan.text(&key, "Extension", &format!(".{extension}"))?;
            if let Some(class) = row.optional("CLSID") {
                plan.text(&key, "CLSID", class)?;
            }
        }
        Ok(())
    }

    /// `RegisterTypeLibraries`.
    pub(crate) fn register_type_libraries(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        let is_proxy = |key: &KeyPath| {
            let name = key.components().last();
            name.is_some_and(|name| name.eq_ignore_ascii_case("ProxyStubClsid32"))
        };
        let mut edits = plan.rest.registry.iter();
        let has_proxies =
            edits.any(|edit| matches!(edit, RegistryEdit::SetValue { key, .. } if is_proxy(key)));
        for row in self.database.rows("TypeLib") {
            let Some(component) = self.installed(row.text("Component_")) else {
                continue;
            };
            let id = row.text("LibID");
            let Some(version) = row.number("Version") else {
                let why = format!("type library {id} has no version");
                return Err(MsiError::unsupported(why));
            };
            let (major, minor) = (version >> 8 & 0xffff, version & 0xff);
            let key = classes(&format!(r"TypeLib\{id}\{major:x}.{minor:x}"), true)?;
            plan.text(&key, "", &self.format(row.text("Description"))?)?;
            plan.text(&child(&key, "FLAGS")?, "", "0")?;
            let directory = row.optional("Directory_");
            let help = self.directory(directory.unwrap_or(&component.directory))?;
            plan.text(&child(&key, "HELPDIR")?, "", help)?;
            let is_64_bit = component.is_64_bit();
            let platform = if is_64_bit { "win64" } else { "win32" };
            let language = child(&key, &format!("{:x}", row.flags("Language")))?;
            let file = self.key_file(&row)?;
            plan.text(&child(&language, platform)?, "", &file)?;
            let but = if has_proxies {
                ", and those of the package keep its ProxyStubClsid32, which Windows may replace"
            } else {
                ""
            };
            self.notes.push(format!(
                "the interfaces of the type library {file} are not registered{but}: calls to objects \
                 of another thread or process need them"
            ));
        }
        Ok(())
    }

    /// `RegisterFonts`.
    pub(crate) fn register_fonts(&self, plan: &mut Builder) -> Result<(), MsiError> {
        let key = parse_key(r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Fonts")?;
        for row in self.database.rows("Font") {
            let file = row.text("File_");
            if !self.is_installed("File", "File", file) {
                continue;
            }
            let Some(path) = self.file(file)? else {
                continue;
            };
            let Some(title) = row.optional("FontTitle") else {
                let why = format!("font {path} has no title in the package, only in its file");
                return Err(MsiError::unsupported(why));
            };
            let is = |own: &str, name: &str| own.eq_ignore_ascii_case(name);
            let value = match path.components() {
                // A file in the folder of fonts is named without it.
                [windows, fonts, name] if is(windows, "Windows") && is(fonts, "Fonts") => {
                    name.clone()
                }
                _ => path.to_string(),
            };
            plan.text(&key, title, &value)?;
        }
        Ok(())
    }
}

/// A command line.
pub(crate) fn with_arguments(program: String, arguments: &str) -> String {
    match arguments {
        "" => program,
        arguments => format!("{program} {arguments}"),
    }
}
