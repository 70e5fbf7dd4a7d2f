//! The execute sequence: what runs, in which order.

use std::cell::RefCell;
use std::collections::BTreeSet;

use wincimg_windows::variables::environment_key;

use super::builder::Builder;
use super::condition;
use super::database::Row;
use super::error::MsiError;
use super::permissions;
use super::plan::{InstallPlan, Interaction, Product, RefusedAction};
use super::services::{SERVICE_CONFIG, is_delayed_start};
use super::session::Session;

/// Standard actions without effect on the image: they cost, check, remove older or advertised
/// settings, or start and end the transaction.
const IGNORED_ACTIONS: [&str; 37] = [
    "AllocateRegistrySpace",
    "BindImage",
    "CCPSearch",
    "DisableRollback",
    "ExecuteAction",
    "FileCost",
    "InstallAdminPackage",
    "InstallExecute",
    "InstallExecuteAgain",
    "InstallFinalize",
    "InstallInitialize",
    "IsolateComponents",
    "MigrateFeatureStates",
    "MsiUnpublishAssemblies",
    "PatchFiles",
    "RMCCPSearch",
    "RegisterUser",
    "RemoveDuplicateFiles",
    "RemoveEnvironmentStrings",
    "RemoveExistingProducts",
    "RemoveFolders",
    "RemoveODBC",
    "RemoveShortcuts",
    "ResolveSource",
    "SelfUnregModules",
    "SetODBCFolders",
    "StopServices",
    "UnpublishComponents",
    "UnpublishFeatures",
    "UnregisterClassInfo",
    "UnregisterComPlus",
    "UnregisterExtensionInfo",
    "UnregisterFonts",
    "UnregisterMIMEInfo",
    "UnregisterProgIdInfo",
    "UnregisterTypeLibraries",
    "ValidateProductID",
];

/// Sequence of an action that runs when the installation has succeeded.
/// <https://learn.microsoft.com/windows/win32/msi/installexecutesequence-table>
const ON_SUCCESS: i32 = -1;

/// Table of assemblies: global ones, and those in the folder of an application.
const ASSEMBLIES: &str = "MsiAssembly";

/// Standard actions that only Windows can run, with the table that they read.
const WINDOWS_ACTIONS: [(&str, &str); 10] = [
    ("InstallODBC", "ODBCDriver"),
    ("MsiConfigureServices", SERVICE_CONFIG),
    ("MsiConfigureServices", "MsiServiceConfigFailureActions"),
    ("MsiPublishAssemblies", ASSEMBLIES),
    ("PublishComponents", "PublishComponent"),
    ("RegisterComPlus", "Complus"),
    ("SelfRegModules", "SelfReg"),
    ("InstallODBC", "ODBCDataSource"),
    ("InstallODBC", "ODBCTranslator"),
    ("InstallSFPCatalogFile", "FileSFPCatalog"),
];

/// Standard actions whose records, classes and file types are in the registry of the user that a
/// package is installed for, if it is not for the machine.
const USER_ACTIONS: [&str; 9] = [
    "ProcessComponents", "PublishFeatures", "PublishProduct", "RegisterClassInfo",
    "RegisterExtensionInfo", "RegisterMIMEInfo", "RegisterProduct", "RegisterProgIdInfo",
    "RegisterTypeLibraries",
];

/// Platforms whose programs do not run on AMD64.
const OTHER_PLATFORMS: [&str; 3] = ["Arm", "Arm64", "Intel64"];

/// Properties that Windows sets. It reports Windows 8.1 to packages on all newer versions.
const SYSTEM_PROPERTIES: [(&str, &str); 23] = [
    ("AdminUser", "1"),
    ("ComputerName", "CONTAINER"),
    ("Intel", "6"),
    ("LogonUser", "ContainerAdministrator"),
    ("MsiAMD64", "6"),
    ("Msix64", "6"),
    ("MsiNTProductType", "3"),
    ("MsiRunningElevated", "1"),
    ("MsiTrueAdminUser", "1"),
    ("OLEAdvtSupport", "1"),
    ("Privileged", "1"),
    // Not installed yet.
    ("ProductState", "-1"),
    ("RedirectedDllSupport", "2"),
    ("ServicePackLevel", "0"),
    ("ShellAdvtSupport", "1"),
    ("SystemLanguageID", "1033"),
    ("UILevel", "2"),
    ("UserLanguageID", "1033"),
    ("VersionMsi", "5.00"),
    ("VersionNT", "603"),
    ("VersionNT64", "603"),
    ("WindowsBuild", "9600"),
    ("ACTION", "INSTALL"),
];

/// Properties of a removal, a repair, an update or a patch, which a line for an installation does not
/// set.
const OTHER_OPERATIONS: [&str; 4] = ["PATCH", "REINSTALL", "REMOVE", "UPGRADINGPRODUCTCODE"];

/// Returns true for a property that Windows sets.
fn is_of_windows(symbol: &str) -> bool {
    let mut own = SYSTEM_PROPERTIES.iter();
    ["Installed", "Version9X"].contains(&symbol) || own.any(|(name, _)| *name == symbol)
}

impl Session<'_> {
    /// Sets the properties of the package, of Windows, and of the command line.
    fn set_properties(&mut self) {
        for row in self.database.rows("Property") {
            self.set(row.text("Property"), row.text("Value"));
        }
        for (name, value) in SYSTEM_PROPERTIES {
            self.set(name, value);
        }
        self.set("PackageCode", self.summary.package_code.clone());
        self.set("VersionDatabase", self.summary.schema.to_string());
        // As the locale of English (United States) writes them.
        self.set("Date", self.time("%-m/%-d/%Y"));
        self.set("Time", self.time("%-H:%M:%S"));
        for (name, value) in &self.options.properties {
            self.set(name, value.clone());
        }
        let folder = &self.options.source_folder;
        self.set("SourceDir", folder.clone());
        self.set("SOURCEDIR", folder.clone());
        let database = format!("{folder}{}", self.options.file_name);
        self.set("OriginalDatabase", database);
        self.resolve_context();
        self.set_system_folders();
    }

    /// Runs an action whose condition is true. It may change whom the package is for only until the
    /// paths of its folders are known.
    fn action_in_context(
        &mut self,
        name: &str,
        condition: &str,
        plan: &mut Builder,
    ) -> Result<(), MsiError> {
        let was_for_machine = self.is_for_machine();
        self.action(name, condition, plan)?;
        self.resolve_context();
        if self.is_for_machine() != was_for_machine {
            if !self.directories.is_empty() {
                let why = format!("the action {name} changes ALLUSERS after CostFinalize");
                return Err(MsiError::unsupported(why));
            }
            self.set_system_folders();
        }
        Ok(())
    }

    /// The product, by its properties.
    fn read_product(&self) -> Result<Product, MsiError> {
        let property = |name: &str| self.property(name).to_owned();
        let product = Product::from_properties(property, self.summary.platform());
        if product.code.is_empty() {
            return Err(self.no_product());
        }
        Ok(product)
    }

    /// Error for a file that is not the package of a product.
    fn no_product(&self) -> MsiError {
        if self.database.has_rows("ModuleSignature") {
            let why = "it is a merge module (.msm), from which packages are made";
            return MsiError::Fails(why.to_owned());
        }
        if self.database.has_rows("MsiPatchSequence") || self.database.has_rows("MsiPatchMetadata")
        {
            let why = "it is a patch (.msp), not a package (error 1620): use the updated package";
            return MsiError::Fails(why.to_owned());
        }
        MsiError::damaged("it has no ProductCode")
    }

    /// Fails for a package whose programs the image cannot run.
    fn check_platform(&mut self) -> Result<(), MsiError> {
        let platform = self.summary.platform();
        if !OTHER_PLATFORMS.contains(&platform) {
            return Ok(());
        }
        let own = self.value_in_image(&environment_key(), "PROCESSOR_ARCHITECTURE");
        match own.and_then(|data| data.text()) {
            Some(own) if own.eq_ignore_ascii_case("AMD64") => Err(MsiError::Fails(format!(
                "the package is for {platform}, the image for {own} (error 1633)"
            ))),
            _ => Ok(()),
        }
    }

    /// Follows the sequence of the package.
    pub(crate) fn run(mut self) -> Result<InstallPlan, MsiError> {
        self.set_properties();
        self.product = self.read_product()?;
        self.check_platform()?;
        self.set("DATABASE", self.cached_package()?.to_string());
        if self.property("REINSTALL").is_empty()
            && let Some(plan) = self.plan_again()?
        {
            return Ok(plan);
        }
        let mut actions: Vec<(i32, &str, &str)> = self
            .database
            .rows("InstallExecuteSequence")
            .filter_map(|row| {
                let sequence = row.number("Sequence");
                let sequence = sequence.filter(|it| *it > 0 || *it == ON_SUCCESS)?;
                Some((sequence, row.text("Action"), row.text("Condition")))
            })
            .collect();
        actions.sort_by_key(|(sequence, ..)| (*sequence == ON_SUCCESS, *sequence));
        let mut plan = Builder::default();
        for (_, action, condition) in actions {
            if self.is_true(condition, action)? {
                self.action_in_context(action, condition, &mut plan)?;
            }
        }
        if !self.is_for_machine() {
            let note = "the package is installed for one user, whose records, classes and file \
                        types an image does not have: add ALLUSERS=1";
            self.notes.insert(0, note.to_owned());
        }
        self.set_permissions(&mut plan)?;
        self.check_chainers(&mut plan)?;
        self.check_isolated(&mut plan);
        if self.is_reboot('F') {
            let why = "REBOOT=Force restarts Windows at the end: write REBOOT=ReallySuppress";
            return Err(MsiError::unsupported(why));
        }
        let missing_actions = self.missing_actions();
        let interactive = self.interactive();
        let features = self.features.into_iter().filter(|(_, it)| *it);
        self.unknown.extend(self.unknown_values.into_inner());
        Ok(InstallPlan {
            product: self.product,
            features: features.map(|(name, _)| name).collect(),
            missing_actions,
            interactive,
            unknown: self.unknown,
            notes: self.notes,
            open_condition: self.open_condition,
            ..plan.finish()?
        })
    }

    /// The tables of rights, which the actions that create files, folders, keys and services apply.
    fn set_permissions(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        self.check_permissions()?;
        for table in permissions::TABLES {
            if !self.database.has_rows(table) {
                continue;
            }
            match self.permissions(table, plan) {
                Ok(locks) if !self.is_skipped(table) => {
                    for lock in locks {
                        lock.apply(plan)?;
                    }
                }
                Ok(_) => self.refuse(table, "", "rights", plan),
                Err(MsiError::Unsupported(why)) => self.refuse(table, "", &why, plan),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The actions to leave out that neither a sequence nor a table has.
    pub(crate) fn missing_actions(&self) -> Vec<String> {
        let skipped = self.options.skipped_actions.iter();
        let missing = skipped.filter(|name| {
            let tables = ["CustomAction", "InstallExecuteSequence"];
            let mut tables = tables.into_iter();
            !tables.any(|table| self.database.find(table, "Action", name).is_some())
                && !self.database.has_rows(name)
        });
        missing.cloned().collect()
    }

    /// How an installation without `/qn` differs, if it does: it begins with the `InstallUISequence`.
    pub(crate) fn interactive(&self) -> Option<Interaction> {
        let database = self.database;
        if database.has_rows("Dialog") {
            return Some(Interaction::Waits);
        }
        let is_only_there = |name: &str| {
            database.find("CustomAction", "Action", name).is_some()
                && database
                    .find("InstallExecuteSequence", "Action", name)
                    .is_none()
        };
        let mut rows = database.rows("InstallUISequence");
        let own = rows.find(|row| {
            row.number("Sequence").is_some_and(|it| it > 0) && is_only_there(row.text("Action"))
        });
        if let Some(own) = own {
            let why = format!("without /qn it also runs {}", own.text("Action"));
            return Some(Interaction::Differs(why));
        }
        let mut rows = database.rows("InstallExecuteSequence");
        let row = rows.find(|row| row.text("Condition").contains("UILevel"))?;
        let action = row.text("Action");
        let why = format!("without /qn the condition of {action} differs");
        Some(Interaction::Differs(why))
    }

    /// True if a table that only Windows can apply has rows of an installed component.
    fn is_for_windows(&self, table: &str) -> bool {
        let is_global = |row: &Row<'_>| row.optional("File_Application").is_none();
        match table {
            SERVICE_CONFIG => !self.installed_rows(table).iter().all(is_delayed_start),
            ASSEMBLIES => self.installed_rows(table).iter().any(is_global),
            _ => self.has_installed_rows(table),
        }
    }

    /// `IsolateComponents`, which comes before components are selected: copies of shared libraries.
    fn check_isolated(&mut self, plan: &mut Builder) {
        const TABLE: &str = "IsolatedComponent";
        let is_installed =
            |row: Row<'_>| self.installed(row.text("Component_Application")).is_some();
        if self.database.rows(TABLE).any(is_installed) {
            self.refuse("IsolateComponents", "", &format!("the table {TABLE}"), plan);
        }
    }

    /// Refuses what only Windows can do, unless it is to be left out.
    pub(crate) fn refuse(&mut self, name: &str, condition: &str, runs: &str, plan: &mut Builder) {
        if self.is_skipped(name) {
            self.notes.push(format!("{name} is skipped as requested"));
            return;
        }
        self.add_refused(name, 0, condition, runs, plan);
    }

    /// Adds an action that only Windows can run, if it is known that it runs.
    pub(crate) fn add_refused(
        &self,
        name: &str,
        kind: u32,
        condition: &str,
        runs: &str,
        plan: &mut Builder,
    ) {
        if !self.is_uncertain(condition) {
            plan.rest.refused.push(RefusedAction {
                name: name.to_owned(),
                kind,
                condition: condition.to_owned(),
                runs: runs.to_owned(),
            });
        }
    }

    /// True if the property `REBOOT` begins with a letter, the only one that counts.
    fn is_reboot(&self, letter: char) -> bool {
        let first = self.property("REBOOT").chars().next();
        first.is_some_and(|first| first.eq_ignore_ascii_case(&letter))
    }

    fn action(&mut self, name: &str, condition: &str, plan: &mut Builder) -> Result<(), MsiError> {
        let database = self.database;
        if let Some(action) = database.find("CustomAction", "Action", name) {
            return self.custom_action(&action, condition, plan);
        }
        if name == "ForceReboot" && !self.is_reboot('R') {
            let runs = "a restart in the middle, which REBOOT=ReallySuppress leaves out";
            self.refuse(name, condition, runs, plan);
            return Ok(());
        }
        let mut tables = WINDOWS_ACTIONS.iter().filter(|(action, _)| *action == name);
        if let Some((_, table)) = tables.find(|(_, table)| self.is_for_windows(table)) {
            self.refuse(name, condition, &format!("the table {table}"), plan);
            return Ok(());
        }
        let is_known = self.standard_action(name, plan)?
            || IGNORED_ACTIONS.contains(&name)
            || WINDOWS_ACTIONS.iter().any(|(action, _)| *action == name)
            || database.find("Dialog", "Dialog", name).is_some();
        if !is_known {
            // Windows Installer logs that it does not exist, and continues.
            let note = format!("the action {name} does not exist and is left out");
            self.notes.push(note);
        }
        Ok(())
    }

    /// Actions that change files and settings, or record the product.
    fn standard_action(&mut self, name: &str, plan: &mut Builder) -> Result<bool, MsiError> {
        match name {
            _ if USER_ACTIONS.contains(&name) && !self.is_for_machine() => Ok(()),
            "AppSearch" => self.search(),
            "FindRelatedProducts" => self.find_related_products(),
            "LaunchConditions" => self.check_launch(plan),
            "CostInitialize" | "CostFinalize" | "InstallValidate" => self.cost(name),
            "InstallFiles" => self.install_files(plan),
            "DuplicateFiles" => self.duplicate_files(plan),
            "MoveFiles" => self.move_files(),
            "RemoveFiles" => self.remove_files(plan),
            "CreateFolders" => self.create_folders(plan),
            "RemoveIniValues" => self.remove_ini(plan),
            "WriteIniValues" => self.write_ini(plan),
            "WriteRegistryValues" => self.write_registry(plan),
            "RemoveRegistryValues" => self.remove_registry(plan),
            "WriteEnvironmentStrings" => self.write_environment(plan),
            "InstallServices" => self.install_services(plan),
            "DeleteServices" => self.delete_services(plan),
            "MsiConfigureServices" => self.delay_services(plan),
            "StartServices" => self.start_services(plan),
            "CreateShortcuts" => self.create_shortcuts(plan),
            "RegisterClassInfo" => self.register_classes(plan),
            "RegisterProgIdInfo" => self.register_prog_ids(plan),
            "RegisterExtensionInfo" => self.register_extensions(plan),
            "RegisterMIMEInfo" => self.register_mime(plan),
            "RegisterTypeLibraries" => self.register_type_libraries(plan),
            "RegisterFonts" => self.register_fonts(plan),
            "ForceReboot" | "ScheduleReboot" => {
                plan.rest.restart_required = true;
                Ok(())
            }
            "ProcessComponents" => self.record_components(plan),
            "PublishFeatures" => self.publish_features(plan),
            "PublishProduct" => self.publish_product(plan),
            "RegisterProduct" => self.register_product(plan),
            _ => return Ok(false),
        }?;
        Ok(true)
    }

    /// Costs files and features: `CostingComplete` is 1 when that is validated.
    fn cost(&mut self, action: &str) -> Result<(), MsiError> {
        if action == "CostFinalize" {
            self.resolve_directories()?;
            self.select_features()?;
            return self.select_components();
        }
        let is_complete = u8::from(action == "InstallValidate");
        self.set("CostingComplete", is_complete.to_string());
        Ok(())
    }

    fn check_launch(&mut self, plan: &Builder) -> Result<(), MsiError> {
        let database = self.database;
        for row in database.rows("LaunchCondition") {
            let condition = row.text("Condition");
            // Newer projects of Visual Studio have conditions of their checks here.
            let is_met =
                self.is_unchecked(condition, plan) || self.is_true(condition, "LaunchCondition")?;
            if !is_met {
                let message = self.format(row.text("Description"))?;
                let why = format!("the package refuses this system ({condition}): {message}");
                self.fail(condition, why)?;
            }
        }
        Ok(())
    }

    /// True for a property of the command line, if no search with an unknown result sets it.
    fn is_given(&self, symbol: &str) -> bool {
        let mut given = self.options.properties.iter();
        given.any(|(name, _)| name == symbol) && !self.unknown_searches.contains(symbol)
    }

    /// Advice to set the public properties of a condition that the command line lacks.
    fn unset_properties(&self, condition: &str) -> String {
        let names = RefCell::new(BTreeSet::new());
        condition::asks(condition, &|symbol| {
            let is_public =
                symbol.starts_with(char::is_alphabetic) && !symbol.contains(char::is_lowercase);
            let is_for_lines = !is_of_windows(symbol) && !OTHER_OPERATIONS.contains(&symbol);
            if is_public && is_for_lines && !self.is_given(symbol) {
                names.borrow_mut().insert(symbol.to_owned());
            }
            false
        });
        let names: Vec<String> = names.into_inner().into_iter().collect();
        match names.as_slice() {
            [] => String::new(),
            names => format!(": set {}", names.join(" or ")),
        }
    }

    /// Fails by a condition, unless something unknown or an action that does not run here may decide
    /// it: that is reported at the end.
    pub(crate) fn fail(&mut self, condition: &str, why: String) -> Result<(), MsiError> {
        let knows_values = self.unknown_values.borrow().is_empty();
        let is_certain = knows_values && !self.is_uncertain(condition);
        let is_open = |symbol: &str| !is_of_windows(symbol) && !self.is_given(symbol);
        let unset = self.unset_properties(condition);
        match &self.missing_action {
            _ if !condition::asks(condition, &is_open) => Err(MsiError::Fails(why)),
            Some(name) if is_certain && !self.is_skipped(name) => {
                let why = format!("{why} (unless {name} decides it{unset})");
                self.notes.push(why.clone());
                self.open_condition.get_or_insert(why);
                Ok(())
            }
            _ if !knows_values || !self.unknown.is_empty() => {
                let note = format!("if what is unknown here is absent, {why}");
                self.notes.push(note);
                Ok(())
            }
            Some(name) => {
                let why =
                    format!("{why} (unless a skipped action, such as {name}, decides it{unset})");
                Err(if unset.is_empty() {
                    MsiError::Unsupported(why)
                } else {
                    MsiError::Undecided(why)
                })
            }
            None => Err(MsiError::Fails(why)),
        }
    }
}
