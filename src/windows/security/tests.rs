#![allow(clippy::unwrap_used, clippy::expect_used)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

fn descriptor(sddl: &str) -> SecurityDescriptor {
    sddl.parse().unwrap()
}

#[test]
fn the_layer_descriptors_read_back_as_the_text_they_come_from() {
    for (bytes, sddl) in [
        (directory_descriptor(), DIRECTORY_SDDL),
        (file_descriptor(), FILE_SDDL),
    ] {
        let read = SecurityDescriptor::from_bytes(bytes).unwrap();
        assert_eq!(read.to_string(), sddl);
        assert_eq!(read.to_bytes(Layout::OwnerFirst), bytes);
    }
}

#[test]
fn the_file_descriptor_is_the_known_one_byte_for_byte() {
    assert_eq!(
        STANDARD.encode(file_descriptor()),
        "AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgBMAAMAAAAAABgA/wEfAAECAAAAAAAFIAAAACACAAAAABQA/wEfAAEBAAAAAAAFEgAAAAAAGACpABIAAQIAAAAAAAUgAAAAIQIAAA=="
    );
}

#[test]
fn both_layouts_hold_the_same_descriptor() {
    let sddl = "O:SYG:SYD:PAI(A;CI;KR;;;BU)(D;OICIIO;0xa0000000;;;S-1-15-3-1024-1065365936)S:AI(AU;SAFA;SDWO;;;WD)";
    let original = descriptor(sddl);
    for layout in [Layout::ListsFirst, Layout::OwnerFirst] {
        let bytes = original.to_bytes(layout);
        assert_eq!(SecurityDescriptor::from_bytes(&bytes), Ok(original.clone()));
    }
    assert_eq!(
        original.to_string(),
        sddl.replace("SDWO", "0x90000"),
        "a mask that has no single name prints as a number"
    );
}

#[test]
fn a_null_list_is_not_an_empty_one() {
    let null = descriptor("O:SYD:NO_ACCESS_CONTROL");
    let empty = descriptor("O:SYD:");
    assert_eq!((null.dacl.is_none(), empty.dacl.is_some()), (true, true));
    for one in [null, empty] {
        let bytes = one.to_bytes(Layout::ListsFirst);
        assert_eq!(SecurityDescriptor::from_bytes(&bytes), Ok(one));
    }
}

#[test]
fn texts_that_are_no_descriptor_say_why() {
    for (text, part) in [
        ("X:BA", "expected O:"),
        ("O:", "no account"),
        ("O::", "expected O:"),
        ("O:é:", "expected O:"),
        ("", "expected O:"),
        ("O:BAG", "no account"),
        ("O:S-1-5-4294967296", "no account"),
        ("O:S-1-281474976710656-1", "no account"),
        ("D:X(A;;KR;;;BA)", "flags of an access list"),
        ("D:(A;;KR;;;BA", "no access entry"),
        ("D:(A;;KR;;BA)", "no access entry"),
        ("D:(A;;KZ;;;BA)", "no access entry"),
        ("D:(Z;;KR;;;BA)", "no access entry"),
    ] {
        let error = text.parse::<SecurityDescriptor>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn a_list_that_the_binary_form_cannot_hold_is_refused() {
    let long = format!("D:{}", "(A;;KR;;;BA)".repeat(2_730));
    assert!(long.parse::<SecurityDescriptor>().is_ok());
    let longer = format!("{long}(A;;KR;;;BA)");
    assert_eq!(
        longer.parse::<SecurityDescriptor>(),
        Err(SddlError::ListTooLong)
    );
}

#[test]
fn bytes_that_are_cut_or_wrong_are_refused() {
    let whole = directory_descriptor();
    for length in 0..whole.len() {
        assert!(SecurityDescriptor::from_bytes(&whole[..length]).is_err());
    }
    let mut wrong = whole.to_vec();
    wrong[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        SecurityDescriptor::from_bytes(&wrong),
        Err(DescriptorError::Sid { offset: u32::MAX })
    );
}

#[test]
fn an_entry_of_an_unknown_kind_is_kept_as_it_is() {
    let mut odd = descriptor("O:SYG:SYD:(A;;KR;;;BA)");
    odd.dacl.as_mut().unwrap().entries.push(Ace {
        kind: 0x09,
        flags: 0,
        body: AceBody::Opaque(vec![0xAB; 8]),
    });
    let read = SecurityDescriptor::from_bytes(&odd.to_bytes(Layout::ListsFirst)).unwrap();
    assert_eq!(read, odd);
    assert_eq!(
        read.to_string(),
        "O:SYG:SYD:(A;;KR;;;BA)(0x09;;abababababababab)"
    );
}

#[test]
fn a_subkey_inherits_what_its_parent_passes_on() {
    let system: Sid = "SY".parse().unwrap();
    let inherited = |sddl: &str| {
        descriptor(sddl)
            .inherited_by_key(&system, &system)
            .to_string()
    };
    assert_eq!(
        inherited(
            "O:BAG:SYD:(A;CI;KR;;;BU)(A;;KA;;;BA)(A;CI;KA;;;SY)(A;CIIO;KA;;;CO)(A;CINP;KR;;;WD)"
        ),
        "O:SYG:SYD:AI(A;CIID;KR;;;BU)(A;CIID;KA;;;SY)(A;CIIOID;KA;;;CO)(A;ID;KR;;;WD)S:AI"
    );
    assert_eq!(
        inherited("D:(A;OICIIO;GA;;;LS)(A;CIIO;GRGX;;;AU)"),
        "O:SYG:SYD:AI(A;ID;KA;;;LS)(A;OICIIOID;GA;;;LS)(A;ID;0x20039;;;AU)(A;CIIOID;0xa0000000;;;AU)S:AI"
    );
}
