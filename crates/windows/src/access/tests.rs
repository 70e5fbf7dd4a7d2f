use proptest::prelude::*;
use wincimg_registry::security::DescriptorLayout;

use super::*;

fn access(grants: &[(&str, Rights)], inherit: Inherit) -> Access {
    let grant = |(account, rights): &(&str, Rights)| Grant {
        account: account.parse().unwrap(),
        rights: *rights,
    };
    Access {
        path: r"C:\app\data".parse().unwrap(),
        grants: grants.iter().map(grant).collect(),
        inherit,
    }
}

fn descriptor(sddl: &str) -> SecurityDescriptor {
    sddl.parse().unwrap()
}

/// The SIDs are those of Windows: from `whoami` in an application pool, from descriptors of files
/// and keys for `TrustedInstaller` and the event log, from Moby for containers.
#[test]
fn accounts_have_the_numbers_that_windows_has() {
    for (name, sid) in [
        ("ContainerUser", "S-1-5-93-2-2"),
        (r"User Manager\ContainerAdministrator", "S-1-5-93-2-1"),
        ("everyone", "S-1-1-0"),
        (r"BUILTIN\Users", "S-1-5-32-545"),
        (r"NT AUTHORITY\NetworkService", "S-1-5-20"),
        ("IIS_IUSRS", "S-1-5-32-568"),
        (r"NT AUTHORITY\IUSR", "S-1-5-17"),
        ("Creator Owner", "S-1-3-0"),
        (
            r"IIS AppPool\DefaultAppPool",
            "S-1-5-82-3006700770-424185619-1745488364-794895919-4004696415",
        ),
        (
            r"nt service\TrustedInstaller",
            "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464",
        ),
        (
            r"NT SERVICE\eventlog",
            "S-1-5-80-880578595-1860270145-482643319-2788375705-1540778122",
        ),
        ("S-1-5-21-1-2-3-1001", "S-1-5-21-1-2-3-1001"),
    ] {
        let account: AccessAccount = name.parse().unwrap();
        assert_eq!(account.sid().in_numbers(), sid, "{name}");
        assert_eq!(account.to_string(), name);
    }
    for name in [
        "", "Bob", r"CORP\bob", r"NT SERVICE\", "S-1-", "S-1-x", "BA", r"IIS AppPool\",
    ] {
        assert!(name.parse::<AccessAccount>().is_err(), "{name}");
    }
}

#[test]
fn a_grant_comes_where_windows_looks_for_it() {
    let user = access(&[("ContainerUser", Rights::Modify)], Inherit::All);
    let before = descriptor(
        "O:BAG:SYD:AI(D;;FW;;;AN)(A;OICI;FA;;;BA)(D;OICIID;FW;;;AN)(A;OICIID;FA;;;SY)(A;OICIID;FR;;;BU)",
    );
    let own = "O:BAG:SYD:AI(D;;FW;;;AN)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;S-1-5-93-2-2)(D;OICIID;FW;;;AN)(A;OICIID;FA;;;SY)(A;OICIID;FR;;;BU)";
    assert_eq!(user.grant_to(&before, true), descriptor(own));
    let inherited = "O:BAG:SYD:AI(D;;FW;;;AN)(A;OICI;FA;;;BA)(D;OICIID;FW;;;AN)(A;OICIID;0x1301bf;;;S-1-5-93-2-2)(A;OICIID;FA;;;SY)(A;OICIID;FR;;;BU)";
    assert_eq!(
        user.inherited_descriptor(&before, true),
        Some(descriptor(inherited))
    );
    let twice = user.grant_to(&user.grant_to(&before, true), true);
    assert_eq!(twice, descriptor(own));
}

#[test]
fn rights_of_an_account_add_up() {
    let reader = access(
        &[("Users", Rights::Read), ("Everyone", Rights::Full)],
        Inherit::None,
    );
    let before = descriptor("O:BAG:SYD:(A;;FA;;;BA)(A;;0x100116;;;BU)");
    let after = descriptor("O:BAG:SYD:(A;;FA;;;BA)(A;;0x12019f;;;BU)(A;;FA;;;WD)");
    assert_eq!(reader.grant_to(&before, true), after);
    let nobody = descriptor("O:BAG:SYD:");
    let after = reader.grant_to(&nobody, false);
    assert_eq!(after, descriptor("O:BAG:SYD:(A;;FR;;;BU)(A;;FA;;;WD)"));
}

#[test]
fn what_lies_in_a_folder_inherits_what_it_is_meant_for() {
    let before = descriptor("O:BAG:SYD:(A;;FA;;;BA)");
    let passed_on = |inherit, is_folder| {
        access(&[("Users", Rights::ReadExecute)], inherit)
            .inherited_descriptor(&before, is_folder)
            .map(|after| after.dacl.unwrap().entries[1].clone())
            .map(|entry| (entry.flags, entry.mask))
    };
    assert_eq!(passed_on(Inherit::All, true), Some((0x13, 0x12_00A9)));
    assert_eq!(passed_on(Inherit::All, false), Some((0x10, 0x12_00A9)));
    assert_eq!(passed_on(Inherit::Folders, true), Some((0x12, 0x12_00A9)));
    assert_eq!(passed_on(Inherit::Folders, false), None);
    assert_eq!(passed_on(Inherit::Files, true), Some((0x19, 0x12_00A9)));
    assert_eq!(passed_on(Inherit::Files, false), Some((0x10, 0x12_00A9)));
    assert_eq!(passed_on(Inherit::None, true), None);
    let protected = descriptor("O:BAG:SYD:P(A;;FA;;;BA)");
    let all = access(&[("Users", Rights::Read)], Inherit::All);
    assert_eq!(all.inherited_descriptor(&protected, true), None);
    assert_ne!(all.grant_to(&protected, true), protected);
    assert_eq!(
        all.grant_to(&before, false),
        descriptor("O:BAG:SYD:(A;;FA;;;BA)(A;;FR;;;BU)")
    );
}

#[test]
fn a_descriptor_without_a_list_lets_everybody_in_already() {
    let open = SecurityDescriptor {
        dacl: None,
        ..descriptor("O:BAG:SYD:(A;;FA;;;BA)")
    };
    let user = access(&[("ContainerUser", Rights::Modify)], Inherit::All);
    assert_eq!(user.grant_to(&open, true), open);
}

#[test]
fn icacls_gets_the_same_in_its_own_words() {
    let grants = [
        ("ContainerUser", Rights::Modify),
        ("IIS_IUSRS", Rights::ReadExecute),
    ];
    for (inherit, letters) in [
        (Inherit::All, "(OI)(CI)"),
        (Inherit::Folders, "(CI)"),
        (Inherit::Files, "(OI)"),
        (Inherit::None, ""),
    ] {
        assert_eq!(
            access(&grants, inherit).icacls(),
            [
                r"C:\app\data".to_owned(),
                "/grant".to_owned(),
                format!("*S-1-5-93-2-2:{letters}M"),
                format!("*S-1-5-32-568:{letters}RX"),
            ]
        );
    }
}

fn entry() -> impl Strategy<Value = Ace> {
    let account = prop::sample::select(vec!["BA", "BU", "WD", "SY", "S-1-5-93-2-2"]);
    (0..2_u8, 0..32_u8, 0..0x20_0000_u32, account).prop_map(|(kind, flags, mask, account)| Ace {
        kind,
        flags,
        mask,
        sid: account.parse().unwrap(),
        rest: Vec::new(),
    })
}

/// The rank of an entry in Windows' own order.
fn rank(entry: &Ace) -> (bool, bool) {
    (
        entry.flags & ace_flags::INHERITED != 0,
        entry.kind == ALLOWS,
    )
}

proptest! {
    #[test]
    fn grants_keep_the_order_and_come_back_from_bytes(
        mut entries in prop::collection::vec(entry(), 0..8),
        is_folder in any::<bool>(),
    ) {
        entries.sort_by_key(rank);
        let list = Acl { revision: 2, entries };
        let before = SecurityDescriptor { dacl: Some(list.clone()), ..descriptor("O:BAG:SYD:") };
        let user = access(
            &[("ContainerUser", Rights::Modify), ("Users", Rights::Read)],
            Inherit::All,
        );
        let inherited = user.inherited_descriptor(&before, is_folder).unwrap();
        for after in [user.grant_to(&before, is_folder), inherited] {
            let entries = &after.dacl.as_ref().unwrap().entries;
            prop_assert!(entries.is_sorted_by_key(rank));
            // No entry and no right is lost.
            let mut rest = entries.iter();
            for old in &list.entries {
                let kept = rest.any(|new| {
                    let same = (new.kind, new.flags, &new.sid) == (old.kind, old.flags, &old.sid);
                    same && new.mask & old.mask == old.mask
                });
                prop_assert!(kept);
            }
            let bytes = after.to_bytes(DescriptorLayout::OwnerFirst);
            prop_assert_eq!(&SecurityDescriptor::from_bytes(&bytes).unwrap(), &after);
        }
    }

    #[test]
    fn any_text_is_an_account_or_refused(text in "\\PC{0,20}|(NT SERVICE|IIS AppPool)\\\\\\PC{1,9}|S-1-[0-9-]{0,30}") {
        if let Ok(account) = text.parse::<AccessAccount>() {
            let again: AccessAccount = account.sid().in_numbers().parse().unwrap();
            prop_assert_eq!(again.sid(), account.sid());
        }
    }
}
