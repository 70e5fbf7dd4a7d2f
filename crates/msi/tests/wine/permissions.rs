//! The tables of rights: what they grant, and what is refused by name. wine leaves them out.

use std::process::Command;

use wincimg_msi::{BareSystem, InstallOptions, InstallPlan, Package};
use wincimg_testkit::component;
use wincimg_testkit::wine::succeed;
use wincimg_windows::access::{
    AccessChange, AccessEdit, AccountRights, DescriptorEdit, InheritanceMode,
};

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
    let planned = |queries: &[String]| {
        let copy = folder.path().join("copy.msi");
        std::fs::copy(&file, &copy).unwrap();
        for query in queries {
            let mut build = Command::new(component("msibuild"));
            succeed(build.arg(&copy).args(["-q", query])).unwrap();
        }
        let mut package = Package::read(std::fs::File::open(&copy).unwrap()).unwrap();
        package
            .plan(&InstallOptions::default(), &BareSystem)
            .unwrap()
    };
    let edit = |path: &str, edit: DescriptorEdit| {
        AccessChange::Edit(AccessEdit {
            path: format!(r"C:\Program Files\Contoso Transform{path}")
                .parse()
                .unwrap(),
            edit,
            each_inside: false,
        })
    };
    let grant = |path: &str, account: &str, letters: &str| {
        let rights = AccountRights::read(account, letters).unwrap();
        edit(
            path,
            DescriptorEdit::Grant {
                rights,
                replaces: false,
            },
        )
    };
    let alone = |path: &str| edit(path, DescriptorEdit::Inheritance(InheritanceMode::Remove));
    let plan = planned(&[
        LOCK.to_owned(),
        user("MainFile", "File", "", "Administrators", 0x1000_0000),
        user("MainFile", "File", "NT AUTHORITY", "SYSTEM", 0x1F_01FF),
        user("MainFile", "File", "", "Users", -0x6000_0000),
    ]);
    let mut expected = vec![
        alone(r"\main.exe"),
        grant(r"\main.exe", "Administrators", "F"),
        grant(r"\main.exe", "Users", "RX"),
        grant(r"\main.exe", r"NT AUTHORITY\SYSTEM", "F"),
    ];
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    let sorted = |list: &[AccessChange]| {
        let mut list: Vec<String> = list.iter().map(|it| format!("{it:?}")).collect();
        list.sort();
        list
    };
    assert_eq!(plan.access[0], expected[0]);
    assert_eq!(sorted(&plan.access), sorted(&expected));
    let plan = planned(&[
        "INSERT INTO `CreateFolder` (`Directory_`,`Component_`) VALUES ('INSTALLDIR','Main')"
            .to_owned(),
        LOCK_MORE.to_owned(),
        descriptor(
            "INSTALLDIR",
            "CreateFolder",
            "D:PAI(A;OICI;FA;;;BA)(A;OICIIO;0x1301bf;;;BU)",
            "",
        ),
        descriptor("MainFile", "File", "D:(A;;FRFX;;;WD)", "NOT Installed"),
        descriptor("MainFile", "File", "D:(A;;FA;;;WD)", "Installed"),
    ]);
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    expected = vec![
        alone(""),
        grant("", "S-1-5-32-544", "(OI)(CI)F"),
        grant("", "S-1-5-32-545", "(OI)(CI)(IO)M"),
        grant(r"\main.exe", "S-1-1-0", "RX"),
    ];
    assert_eq!(sorted(&plan.access), sorted(&expected));
    others_are_refused(&planned);
}

fn others_are_refused(planned: &dyn Fn(&[String]) -> InstallPlan) {
    for (table, row, why) in [
        (
            LOCK,
            user("MainFile", "File", "", "Nobody", 0x1000_0000),
            "the account \"Nobody\"",
        ),
        (
            LOCK,
            user("MainFile", "File", "[%USERDOMAIN]", "[LogonUser]", 1),
            "ContainerAdministrator",
        ),
        (
            LOCK,
            user("MainFile", "File", "", "Users", 1),
            "main.exe: Users, 0x1",
        ),
        (
            LOCK,
            user("Same", "Registry", "", "Users", 0x1000_0000),
            "Same of the table Registry",
        ),
        (
            LOCK_MORE,
            descriptor("MainFile", "File", "D:(D;;FA;;;WD)", ""),
            "main.exe: D:(D;;FA;;;WD)",
        ),
        (
            LOCK_MORE,
            descriptor("MainFile", "File", "S:(AU;SA;FA;;;WD)", ""),
            "main.exe: S:",
        ),
        (
            LOCK_MORE,
            descriptor("MainFile", "File", "D:(A;;FA;;;CO)", ""),
            "the account \"S-1-3-0\"",
        ),
        (
            LOCK_MORE,
            descriptor("MainFile", "File", "no descriptor", ""),
            "main.exe: no descriptor",
        ),
    ] {
        let plan = planned(&[table.to_owned(), row]);
        assert!(plan.access.is_empty(), "{why}");
        let [refused] = plan.refused.as_slice() else {
            panic!("{why}: {:?}", plan.refused);
        };
        assert!(refused.runs.contains(why), "{why}: {refused}");
    }
}
