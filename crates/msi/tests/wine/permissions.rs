//! The tables of rights: what they grant, and what is refused by name. wine leaves them out.

use std::process::Command;

use wincimg_msi::{BareSystem, InstallOptions, InstallPlan, Package};
use wincimg_registry::RegistryEdit;
use wincimg_registry::security::SecurityDescriptor;
use wincimg_testkit::component;
use wincimg_testkit::wine::succeed;

use super::packages::PACKAGES;

const LOCK: &str = "CREATE TABLE `LockPermissions` (`LockObject` CHAR(72) NOT NULL, `Table` CHAR(255) NOT NULL, `Domain` CHAR(255), `User` CHAR(255) NOT NULL, `Permission` LONG PRIMARY KEY `LockObject`, `Table`, `Domain`, `User`)";
const LOCK_MORE: &str = "CREATE TABLE `MsiLockPermissionsEx` (`MsiLockPermissionsEx` CHAR(72) NOT NULL, `LockObject` CHAR(72) NOT NULL, `Table` CHAR(32) NOT NULL, `SDDLText` CHAR(255) NOT NULL, `Condition` CHAR(255) PRIMARY KEY `MsiLockPermissionsEx`)";

/// A row for a user.
fn user(object: &str, table: &str, domain: &str, user: &str, permission: i32) -> String {
    format!(
        "INSERT INTO `LockPermissions` (`LockObject`,`Table`,`Domain`,`User`,`Permission`) VALUES ('{object}','{table}','{domain}','{user}',{permission})"
    )
}

/// A row with a descriptor.
fn descriptor(object: &str, table: &str, text: &str, condition: &str) -> String {
    format!(
        "INSERT INTO `MsiLockPermissionsEx` (`MsiLockPermissionsEx`,`LockObject`,`Table`,`SDDLText`,`Condition`) VALUES ('{text}','{object}','{table}','{text}','{condition}')"
    )
}

pub(crate) fn rights_are_those_of_the_tables() {
    component("wixl");
    component("msibuild");
    let folder = tempfile::tempdir().unwrap();
    let number = PACKAGES
        .iter()
        .position(|it| it.name == "transform")
        .unwrap();
    let file = super::build(&PACKAGES[number], number, folder.path()).unwrap();
    let attempt = |queries: &[String]| {
        let copy = folder.path().join("copy.msi");
        std::fs::copy(&file, &copy).unwrap();
        for query in queries {
            let mut build = Command::new(component("msibuild"));
            succeed(build.arg(&copy).args(["-q", query])).unwrap();
        }
        let mut package = Package::read(std::fs::File::open(&copy).unwrap()).unwrap();
        let plan = package.plan(&InstallOptions::default(), &BareSystem::default());
        plan.map_err(|error| error.to_string())
    };
    let planned = |queries: &[String]| attempt(queries).unwrap();
    let plan = planned(&[
        LOCK.to_owned(),
        "INSERT INTO `CreateFolder` (`Directory_`,`Component_`) VALUES ('INSTALLDIR','Main')"
            .to_owned(),
        user("MainFile", "File", "", "Administrators", 0x1000_0000),
        user("MainFile", "File", "NT AUTHORITY", "SYSTEM", 0x1),
        user("MainFile", "File", "", "Users", 0x12_00A9),
        user("INSTALLDIR", "CreateFolder", "", "Everyone", 0x1000_0000),
        user("Same", "Registry", "", "Everyone", 0x2_0019),
    ]);
    assert_eq!(
        locks(&plan),
        [
            r"\: D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;WD)",
            r"\main.exe: D:P(A;;FA;;;SY)(A;;0x1200a9;;;BU)(A;;FA;;;BA)",
            r"rights of HKLM\SOFTWARE\Contoso Transform = D:P(A;CI;KA;;;SY)(A;CI;KR;;;WD)",
        ]
    );
    let plan = planned(&[
        "INSERT INTO `CreateFolder` (`Directory_`,`Component_`) VALUES ('INSTALLDIR','Main')"
            .to_owned(),
        LOCK_MORE.to_owned(),
        "INSERT INTO `ServiceInstall` (`ServiceInstall`,`Name`,`ServiceType`,`StartType`,\
         `ErrorControl`,`Component_`) VALUES ('Own','ContosoOwn',16,3,1,'Main')"
            .to_owned(),
        "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('InstallServices',5800)"
            .to_owned(),
        descriptor(
            "INSTALLDIR",
            "CreateFolder",
            r"O:SYD:PAI(A;OICI;FA;;;BA)(A;OICIIO;0x1301bf;;;<BUILTIN\Users>)",
            "",
        ),
        descriptor(
            "MainFile",
            "File",
            "D:(D;;FA;;;BG)(A;;FRFX;;;WD)",
            "NOT Installed",
        ),
        descriptor("MainFile", "File", "D:(A;;FA;;;WD)", "Installed"),
        descriptor("Other", "Registry", "D:(A;CI;GA;;;BU)", ""),
        descriptor("Own", "ServiceInstall", "D:(A;;GRGX;;;BU)", ""),
    ]);
    let security = service_security(&plan);
    assert_eq!(security, "O:SYG:SYD:(A;;0x201fd;;;BU)");
    assert_eq!(
        locks(&plan),
        [
            r"\: O:SYD:PAI(A;OICI;FA;;;BA)(A;OICIIO;0x1301bf;;;BU)",
            r"\main.exe: D:(D;;FA;;;BG)(A;;0x1200a9;;;WD)",
            r"rights of HKLM\SOFTWARE\Contoso Transform = D:(A;CI;KA;;;BU)",
        ]
    );
    others_are_refused(&attempt);
}

/// The rights of a plan, sorted.
fn locks(plan: &InstallPlan) -> Vec<String> {
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    let edits = plan.registry.iter();
    let keys = edits.filter(|edit| matches!(edit, RegistryEdit::SetSecurity { .. }));
    let paths = plan.access.iter().map(ToString::to_string);
    let mut all: Vec<String> = paths.chain(keys.map(ToString::to_string)).collect();
    for text in &mut all {
        *text = text.replace(r"C:\Program Files\Contoso Transform:", r"\:");
        *text = text.replace(r"C:\Program Files\Contoso Transform", "");
    }
    all.sort();
    all
}

/// The descriptor of the service, as the service control manager stores it.
fn service_security(plan: &InstallPlan) -> String {
    let mut edits = plan.registry.iter();
    let data = edits.find_map(|edit| match edit {
        RegistryEdit::SetValue { key, name, data } if name == "Security" => {
            assert_eq!(
                key.to_string(),
                r"HKLM\SYSTEM\ControlSet001\Services\ContosoOwn\Security"
            );
            Some(data.bytes().to_vec())
        }
        _ => None,
    });
    let descriptor = SecurityDescriptor::from_bytes(&data.unwrap()).unwrap();
    descriptor.to_string()
}

fn others_are_refused(attempt: &dyn Fn(&[String]) -> Result<InstallPlan, String>) {
    for (table, row, why) in [
        (
            LOCK,
            user("MainFile", "File", "", "Nobody", 0x1000_0000),
            "the account \"Nobody\"",
        ),
        (
            LOCK,
            user("MainFile", "File", "[ComputerName]", "[LogonUser]", 1),
            r"CONTAINER\\ContainerAdministrator",
        ),
        (
            LOCK,
            user("MainFile", "File", "", "Users", -0x6000_0000),
            "main.exe: Users with GENERIC_READ",
        ),
        (
            LOCK,
            user("MainFile", "Class", "", "Users", 1),
            "MainFile of the table Class",
        ),
        (
            LOCK_MORE,
            descriptor("MainFile", "File", "D:(XA;;FA;;;WD;(Member_of))", ""),
            "main.exe: D:(XA",
        ),
        (
            LOCK_MORE,
            descriptor("MainFile", "File", "S:(AU;SA;FA;;;WD)", ""),
            "main.exe: S:",
        ),
        (
            LOCK_MORE,
            descriptor("MainFile", "File", r"D:(A;;FA;;;<ACME\joe>)", ""),
            r#"the account "ACME\\joe""#,
        ),
        (
            LOCK_MORE,
            descriptor("MainFile", "File", "no descriptor", ""),
            "main.exe: no descriptor",
        ),
    ] {
        let plan = attempt(&[table.to_owned(), row]).unwrap();
        assert!(plan.access.is_empty(), "{why}");
        let [refused] = plan.refused.as_slice() else {
            panic!("{why}: {:?}", plan.refused);
        };
        assert!(refused.runs.contains(why), "{why}: {refused}");
    }
    for (rows, why) in [
        (
            vec![
                LOCK.to_owned(),
                user("MainFile", "File", "", "Users", 1),
                LOCK_MORE.to_owned(),
                descriptor("MainFile", "File", "D:(A;;FA;;;WD)", ""),
            ],
            "error 1941",
        ),
        (
            vec![
                LOCK_MORE.to_owned(),
                descriptor("MainFile", "File", "D:(A;;FA;;;WD)", ""),
                descriptor("MainFile", "File", "D:(A;;FA;;;BU)", ""),
            ],
            "error 1942",
        ),
    ] {
        let error = attempt(&rows).unwrap_err();
        assert!(error.contains(why), "{why}: {error}");
    }
}
