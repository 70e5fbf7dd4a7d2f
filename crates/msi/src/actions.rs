//! Custom actions: those that are done, those without lasting effect, and those that only Windows
//! can run.

use super::builder::Builder;
use super::database::Row;
use super::error::MsiError;
use super::session::Session;
use super::setup_project;

/// Bits of the type that say what an action runs.
const KIND: u32 = 0x3f;
const IN_SCRIPT: u32 = 0x400;
const ROLLBACK: u32 = 0x100;
/// Bits of an action outside the script that runs only after the dialogs, in the same process.
const AFTER_DIALOGS: u32 = 0x300;

const LIBRARY: u32 = 1;
const ERROR: u32 = 19;
/// Bits of the type that all programs have, whatever says where they are.
const PROGRAM: u32 = 2;
const SET_DIRECTORY: u32 = 35;
const SET_PROPERTY: u32 = 51;

/// Prefixes of the libraries of `WiX` in a package: `WixCA`, `WixUIWixca`, `WixFirewallCA`,
/// `Wix4UtilCA_X64`, `IIsSchedule`, `NetFxCA`.
const WIX_PREFIXES: [&str; 3] = ["Wix", "IIs", "NetFx"];

/// Entry points of libraries whose work leaves nothing in an image, with their source.
const WITHOUT_EFFECT: [(&str, &str); 13] = [
    // Asks running programs to close; a build runs none.
    // https://docs.firegiant.com/wix/schema/util/closeapplication/
    ("WixCloseApplications", "WiX Util"),
    ("WixCloseApplicationsDeferred", "WiX Util"),
    // Restart Manager: the same for programs that register.
    // https://docs.firegiant.com/wix/schema/util/restartresource/
    ("WixRegisterRestartResources", "WiX Util"),
    // Dialogs, which /qn does not show.
    // https://docs.firegiant.com/wix/tools/wixext/wixui/
    ("PrintEula", "WiX UI"),
    ("ValidatePath", "WiX UI"),
    // Starts a program from the last dialog.
    // https://docs.firegiant.com/wix3/howtos/ui_and_localization/run_program_after_install/
    ("WixShellExec", "WiX Util"),
    ("WixShellExecBinary", "WiX Util"),
    ("WixUnelevatedShellExec", "WiX Util"),
    // Send WM_SETTINGCHANGE to the windows of running programs.
    // https://docs.firegiant.com/wix3/customactions/wixsettingchange/
    ("WixBroadcastEnvironmentChange", "WiX Util"),
    ("WixBroadcastSettingChange", "WiX Util"),
    // Asks for a restart if another action of WiX has: those are done without, or refused.
    // https://github.com/wixtoolset/wix/tree/main/src/ext/Util/ca
    ("WixCheckRebootRequired", "WiX Util"),
    // Remove what an earlier installation added.
    // https://docs.firegiant.com/wix/schema/firewall/
    ("SchedFirewallExceptionsUninstall", "WiX Firewall"),
    // https://docs.firegiant.com/wix/schema/iis/certificate/
    ("UninstallCertificates", "WiX IIS"),
];

/// Properties that `WixQueryOsWellKnownSID` sets, by the names of the accounts in English.
/// <https://docs.firegiant.com/wix/tools/wixext/wininfo/>
const ACCOUNTS: [(&str, &str); 7] = [
    ("WIX_ACCOUNT_LOCALSYSTEM", r"NT AUTHORITY\SYSTEM"),
    ("WIX_ACCOUNT_LOCALSERVICE", r"NT AUTHORITY\LOCAL SERVICE"),
    (
        "WIX_ACCOUNT_NETWORKSERVICE",
        r"NT AUTHORITY\NETWORK SERVICE",
    ),
    ("WIX_ACCOUNT_ADMINISTRATORS", r"BUILTIN\Administrators"),
    ("WIX_ACCOUNT_USERS", r"BUILTIN\Users"),
    ("WIX_ACCOUNT_GUESTS", r"BUILTIN\Guests"),
    ("WIX_ACCOUNT_PERFLOGUSERS", r"BUILTIN\Performance Log Users"),
];

/// Returns true for a library of `WiX`. A vendor's may have an entry point of the same name.
fn is_of_wix(source: &str) -> bool {
    WIX_PREFIXES.iter().any(|prefix| source.starts_with(prefix))
}

/// Returns true for an action that an installation without dialogs does not run.
fn is_left_out(kind: u32) -> bool {
    if kind & IN_SCRIPT == 0 {
        return kind & AFTER_DIALOGS == AFTER_DIALOGS;
    }
    // Undoes what fails, and nothing fails.
    kind & ROLLBACK != 0
}

/// Returns true for an action that may set properties.
fn may_set_properties(kind: u32) -> bool {
    kind & IN_SCRIPT == 0 && kind & 0x7 != PROGRAM
}

impl Session<'_> {
    /// Runs a custom action whose condition is true.
    pub(crate) fn custom_action(
        &mut self,
        action: &Row<'_>,
        condition: &str,
        plan: &mut Builder,
    ) -> Result<(), MsiError> {
        let name = action.text("Action");
        let kind = action.flags("Type");
        let (source, target) = (action.text("Source"), action.text("Target"));
        if self.is_skipped(name) {
            if may_set_properties(kind) && self.missing_action.is_none() {
                self.missing_action = Some(name.to_owned());
            }
            let what = self.configured(source, target)?;
            let note = format!("custom action {name} is skipped as requested{what}");
            self.notes.push(note);
            return Ok(());
        }
        if is_left_out(kind) {
            return Ok(());
        }
        let problem = match (kind & KIND, target) {
            (SET_PROPERTY, _) => {
                let value = self.format(target)?;
                self.set(source, value);
                return Ok(());
            }
            (SET_DIRECTORY, _) => {
                let path = self.format(target)?;
                if self.directories.is_empty() {
                    self.set(source, path);
                    return Ok(());
                }
                return self.move_directory(source, &path);
            }
            (ERROR, _) => return self.fail(condition, self.message(condition, target)?),
            (LIBRARY, _) if self.library_action(name, source, target, plan)? => return Ok(()),
            (LIBRARY, _) if is_of_wix(source) && self.may_apply(target) => {
                match self.apply(target, plan) {
                    Ok(()) => return Ok(()),
                    Err(MsiError::Unsupported(why)) => format!(": {why}"),
                    Err(error) => return Err(error),
                }
            }
            _ => self.configured(source, target)?,
        };
        if may_set_properties(kind) {
            self.missing_action = Some(name.to_owned());
        }
        let runs = self.describe(kind, source, target)? + &problem;
        self.add_refused(name, kind, condition, &runs, plan);
        Ok(())
    }

    /// Does what an entry point of a known library does; false for all others.
    fn library_action(
        &mut self,
        name: &str,
        source: &str,
        target: &str,
        plan: &Builder,
    ) -> Result<bool, MsiError> {
        if source == setup_project::LIBRARY {
            return match target {
                "CheckFX" => self.check_framework(),
                "VsdLaunchConditions" => self.check_project(name, plan).map(|()| true),
                _ => Ok(false),
            };
        }
        if !is_of_wix(source) {
            return Ok(false);
        }
        let mut known = WITHOUT_EFFECT.iter();
        match (target, known.find(|(entry, _)| *entry == target)) {
            ("SchedFirewallExceptionsInstall", _) => self.note_firewall_rules()?,
            ("SchedNetFx", _) => self.note_native_images(),
            // Run what others have scheduled.
            ("ExecNetFx" | "WixCreateInternetShortcuts", _) => {}
            ("WixRemoveFoldersEx" | "WixRemoveRegistryKeysEx", _) if !self.removes(target) => {}
            ("WixQueryOsWellKnownSID", _) => {
                for (property, account) in ACCOUNTS {
                    self.set(property, account);
                    // From WiX 5 on; before, only that of the last one.
                    let name = account.rsplit('\\').next().unwrap_or_default();
                    self.set(&format!("{property}_NODOMAIN"), name);
                }
            }
            (_, Some((_, library))) => {
                let note = format!("{name} ({target} of {library}) leaves nothing in an image");
                self.notes.push(note);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What a library of `WiX` configures, after a colon; empty for other libraries.
    fn configured(&self, source: &str, target: &str) -> Result<String, MsiError> {
        if !is_of_wix(source) {
            return Ok(String::new());
        }
        let names = self.configured_names(target)?;
        Ok(match names.as_slice() {
            [] => String::new(),
            names if target == "ConfigureIIs" => format!(": {} in IIS", names.join(", ")),
            names => format!(": changes of {}", names.join(", ")),
        })
    }

    /// `MsiEmbeddedChainer`: programs that install further packages.
    pub(crate) fn check_chainers(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        const TABLE: &str = "MsiEmbeddedChainer";
        let database = self.database;
        for row in database.rows(TABLE) {
            let condition = row.text("Condition");
            if self.is_true(condition, TABLE)? {
                let (source, arguments) = (row.text("Source"), row.text("CommandLine"));
                let runs = self.describe(row.flags("Type"), source, arguments)?;
                self.refuse(TABLE, condition, &runs, plan);
            }
        }
        Ok(())
    }

    /// The message of an action that stops: a text, or a number of the `Error` table.
    fn message(&self, condition: &str, target: &str) -> Result<String, MsiError> {
        let number = target.parse::<i32>().ok();
        let mut errors = self.database.rows("Error");
        let row = number.and_then(|number| errors.find(|row| row.number("Error") == Some(number)));
        let message = self.format(row.map_or(target, |row| row.text("Message")))?;
        Ok(match condition {
            "" => format!("the package stops: {message}"),
            condition => format!("the package stops ({condition}): {message}"),
        })
    }

    fn describe(&self, kind: u32, source: &str, target: &str) -> Result<String, MsiError> {
        let file = |key: &str| -> Result<String, MsiError> {
            let path = self.file(key)?;
            Ok(path.map_or_else(|| key.to_owned(), |path| path.to_string()))
        };
        Ok(match kind & KIND {
            LIBRARY => format!("{target} of the library {source} in the package"),
            2 => format!(
                "the program {source} in the package: {}",
                self.format(target)?
            ),
            5 | 6 => format!("the script {source} in the package"),
            17 => format!("{target} of the library {}", file(source)?),
            18 => format!("{} {}", file(source)?, self.format(target)?),
            21 | 22 => format!("the script {}", file(source)?),
            34 => self.format(target)?,
            37 | 38 => "a script in the package's tables".to_owned(),
            50 => format!("{} {}", self.property(source), self.format(target)?),
            53 | 54 => format!("the script in the property {source}"),
            7 | 23 | 39 => format!("another package, {source}"),
            other => format!("an action of type {other}"),
        })
    }
}
