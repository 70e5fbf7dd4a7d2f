//! The execute sequence: what runs, in which order.

use wincimg_windows::path::ImagePath;

use super::builder::Builder;
use super::error::MsiError;
use super::permissions;
use super::plan::{InstallOptions, InstallPlan, Product, RefusedAction};
use super::registration::Registration;
use super::session::Session;
use super::summary::Summary;

/// Standard actions without effect on the image: they cost, check, remove older or advertised
/// settings, or start and end the transaction.
const IDLE: [&str; 38] = [
    "AllocateRegistrySpace",
    "BindImage",
    "CCPSearch",
    "CostInitialize",
    "DisableRollback",
    "FileCost",
    "ForceReboot",
    "InstallAdminPackage",
    "InstallExecute",
    "InstallExecuteAgain",
    "InstallFinalize",
    "InstallInitialize",
    "InstallValidate",
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
    "RemoveIniValues",
    "RemoveODBC",
    "RemoveShortcuts",
    "ResolveSource",
    "ScheduleReboot",
    "SelfUnregModules",
    "StopServices",
    "UnpublishComponents",
    "UnpublishFeatures",
    "UnregisterClassInfo",
    "UnregisterComPlus",
    "UnregisterExtensionInfo",
    "UnregisterFonts",
    "UnregisterMIMEInfo",
    "UnregisterProgIdInfo",
];

/// Standard actions that only Windows can run, with the table that they read.
const OF_WINDOWS: [(&str, &str); 10] = [
    ("InstallODBC", "ODBCDriver"),
    ("MsiConfigureServices", "MsiServiceConfig"),
    ("MsiConfigureServices", "MsiServiceConfigFailureActions"),
    ("MsiPublishAssemblies", "MsiAssembly"),
    ("PublishComponents", "PublishComponent"),
    ("RegisterComPlus", "Complus"),
    ("SelfRegModules", "SelfReg"),
    ("InstallODBC", "ODBCDataSource"),
    ("InstallODBC", "ODBCTranslator"),
    ("InstallSFPCatalogFile", "FileSFPCatalog"),
];

/// Follows the sequence of a package.
pub(crate) struct Sequence<'a, 's> {
    pub(crate) session: Session<'s>,
    pub(crate) options: &'a InstallOptions,
    pub(crate) summary: &'a Summary,
    pub(crate) package_size: u64,
    /// The applied transforms that are files.
    pub(crate) transforms: Vec<(ImagePath, Vec<u8>)>,
    pub(crate) plan: Builder,
}

impl Sequence<'_, '_> {
    /// Sets the properties of the package, of Windows, and of the command line.
    fn set_properties(&mut self) {
        let database = self.session.database;
        for row in database.rows("Property") {
            self.session.set(row.text("Property"), row.text("Value"));
        }
        let is_64_bit = !matches!(self.summary.platform(), "" | "Intel");
        // Windows Installer reports Windows 8.1 to packages on all newer versions.
        for (name, value) in [
            ("AdminUser", "1"),
            ("ComputerName", "CONTAINER"),
            ("Intel", "6"),
            ("LogonUser", "ContainerAdministrator"),
            ("MsiAMD64", "6"),
            ("Msix64", "6"),
            ("MsiNTProductType", "3"),
            ("MsiRunningElevated", "1"),
            ("MsiTrueAdminUser", "1"),
            ("Privileged", "1"),
            ("ServicePackLevel", "0"),
            ("SystemLanguageID", "1033"),
            ("UILevel", "2"),
            ("UserLanguageID", "1033"),
            ("VersionMsi", "5.00"),
            ("VersionNT", "603"),
            ("VersionNT64", "603"),
            ("WindowsBuild", "9600"),
            ("ACTION", "INSTALL"),
        ] {
            self.session.set(name, value);
        }
        if !is_64_bit {
            self.session.set("VersionNT64", "603");
        }
        for (name, value) in &self.options.properties {
            self.session.set(name, value.clone());
        }
        let folder = self.options.source_folder.clone();
        self.session.set("SourceDir", folder.clone());
        self.session.set("SOURCEDIR", folder.clone());
        let database = format!("{folder}{}", self.options.file_name);
        self.session.set("OriginalDatabase", database);
        self.session.set_system_folders();
    }

    /// The product, by its properties.
    fn product(&self) -> Result<Product, MsiError> {
        let property = |name: &str| self.session.property(name).to_owned();
        let product = Product::from_properties(property, self.summary.platform());
        if product.code.is_empty() {
            return Err(MsiError::damaged("it has no ProductCode"));
        }
        Ok(product)
    }

    /// Follows the sequence.
    pub(crate) fn run(mut self) -> Result<InstallPlan, MsiError> {
        self.set_properties();
        let product = self.product()?;
        if !self.session.is_for_machine() {
            self.session.notes.push(
                "the package is installed for one user, whose records an image does not have: add \
                 ALLUSERS=1"
                    .to_owned(),
            );
        }
        let database = self.session.database;
        let mut actions: Vec<(i32, &str, &str)> = database
            .rows("InstallExecuteSequence")
            .filter_map(|row| {
                let sequence = row.number("Sequence").filter(|it| *it > 0)?;
                Some((sequence, row.text("Action"), row.text("Condition")))
            })
            .collect();
        actions.sort_by_key(|(sequence, ..)| *sequence);
        for (_, action, condition) in actions {
            if self.session.is_true(condition, action)? {
                self.action(action, condition, &product)?;
            }
        }
        self.set_permissions()?;
        let mut plan = self.plan.finish()?;
        plan.product = product;
        let features = self.session.features.into_iter();
        plan.features = features
            .filter(|(_, it)| *it)
            .map(|(name, _)| name)
            .collect();
        plan.unknown = self.session.unknown;
        plan.unknown
            .extend(self.session.unknown_values.into_inner());
        plan.notes = self.session.notes;
        Ok(plan)
    }

    /// The tables of rights, which the actions that create files, folders, keys and services apply.
    fn set_permissions(&mut self) -> Result<(), MsiError> {
        self.session.check_permissions()?;
        for table in permissions::TABLES {
            if self.session.database.rows(table).next().is_none() {
                continue;
            }
            let is_skipped = self.options.skipped_actions.iter().any(|it| it == table);
            match self.session.permissions(table, &self.plan) {
                Ok(locks) if !is_skipped => {
                    for lock in locks {
                        lock.apply(&mut self.plan)?;
                    }
                }
                Ok(_) => self.refuse(table, "", "rights"),
                Err(MsiError::Unsupported(why)) => self.refuse(table, "", &why),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn refuse(&mut self, name: &str, condition: &str, runs: &str) {
        if self.options.skipped_actions.iter().any(|it| it == name) {
            let note = format!("{name} is skipped as requested");
            self.session.notes.push(note);
            return;
        }
        self.plan.refused.push(RefusedAction {
            name: name.to_owned(),
            kind: 0,
            condition: condition.to_owned(),
            runs: runs.to_owned(),
        });
    }

    fn action(&mut self, name: &str, condition: &str, product: &Product) -> Result<(), MsiError> {
        let database = self.session.database;
        if let Some(action) = database.find("CustomAction", "Action", name) {
            let (session, plan) = (&mut self.session, &mut self.plan);
            return session.custom_action(&action, condition, self.options, plan);
        }
        let mut tables = OF_WINDOWS.iter().filter(|(action, _)| *action == name);
        let table = tables.find(|(_, table)| database.table_names().any(|it| it == *table));
        if let Some((_, table)) = table {
            self.refuse(name, condition, &format!("the table {table}"));
            return Ok(());
        }
        if self.standard_action(name)? || self.record(name, product)? {
            return Ok(());
        }
        let is_idle = IDLE.contains(&name) || OF_WINDOWS.iter().any(|(action, _)| *action == name);
        if !is_idle && database.find("Dialog", "Dialog", name).is_none() {
            // Windows Installer logs that it does not exist, and continues.
            let note = format!("the action {name} does not exist and is left out");
            self.session.notes.push(note);
        }
        Ok(())
    }

    /// Actions that change files and settings.
    fn standard_action(&mut self, name: &str) -> Result<bool, MsiError> {
        let (session, plan) = (&mut self.session, &mut self.plan);
        match name {
            "AppSearch" => session.search(),
            "FindRelatedProducts" => session.find_related_products(),
            "LaunchConditions" => Self::check_launch(session),
            "CostFinalize" => {
                session.resolve_directories()?;
                session.select_features()?;
                session.select_components()
            }
            "InstallFiles" => session.install_files(self.summary, plan),
            "DuplicateFiles" => session.duplicate_files(plan),
            "MoveFiles" => session.move_files(),
            "RemoveFiles" => session.remove_files(plan),
            "CreateFolders" => session.create_folders(plan),
            "WriteIniValues" => session.write_ini(plan),
            "WriteRegistryValues" => session.write_registry(plan),
            "RemoveRegistryValues" => session.remove_registry(plan),
            "WriteEnvironmentStrings" => session.write_environment(plan),
            "InstallServices" => session.install_services(plan),
            "DeleteServices" => session.control_services(plan),
            "StartServices" => {
                if !session
                    .database
                    .table_names()
                    .any(|it| it == "ServiceControl")
                {
                    return Ok(true);
                }
                session
                    .notes
                    .push("services start with the container".to_owned());
                Ok(())
            }
            "CreateShortcuts" => session.create_shortcuts(plan),
            "RegisterClassInfo" => session.register_classes(plan),
            "RegisterProgIdInfo" => session.register_prog_ids(plan),
            "RegisterExtensionInfo" => session.register_extensions(plan),
            "RegisterMIMEInfo" => session.register_mime(plan),
            "RegisterTypeLibraries" => session.register_type_libraries(plan),
            "RegisterFonts" => session.register_fonts(plan),
            "UnregisterTypeLibraries"
            | "ValidateProductID"
            | "SetODBCFolders"
            | "ExecuteAction" => Ok(()),
            _ => return Ok(false),
        }?;
        Ok(true)
    }

    fn check_launch(session: &Session<'_>) -> Result<(), MsiError> {
        for row in session.database.rows("LaunchCondition") {
            let condition = row.text("Condition");
            let is_met = session.is_true(condition, "LaunchCondition")?;
            // What is not known is reported at the end.
            if !is_met && session.unknown_values.borrow().is_empty() {
                let message = session.format(row.text("Description"))?;
                let why = format!("the package refuses this system ({condition}): {message}");
                return Err(MsiError::Fails(why));
            }
        }
        Ok(())
    }

    /// Actions that record the product.
    fn record(&mut self, name: &str, product: &Product) -> Result<bool, MsiError> {
        if !matches!(
            name,
            "ProcessComponents" | "PublishFeatures" | "PublishProduct" | "RegisterProduct"
        ) {
            return Ok(false);
        }
        // The records of a user are in the user's registry.
        if !self.session.is_for_machine() {
            return Ok(true);
        }
        let facts = Registration {
            options: self.options,
            summary: self.summary,
            package_size: self.package_size,
            transforms: &self.transforms,
            product,
        };
        let (session, plan) = (&mut self.session, &mut self.plan);
        match name {
            "ProcessComponents" => session.record_components(product, plan)?,
            "PublishFeatures" => session.publish_features(product, plan)?,
            "PublishProduct" => session.publish_product(&facts, plan)?,
            _ => {
                session.register_product(&facts, plan)?;
                Session::record_folders(plan)?;
            }
        }
        Ok(true)
    }
}
