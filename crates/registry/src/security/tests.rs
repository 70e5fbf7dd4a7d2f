use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::testing::read_descriptor;

fn descriptor(sddl: &str) -> SecurityDescriptor {
    sddl.parse().unwrap()
}

#[test]
fn the_layer_descriptors_read_back_as_the_text_they_come_from() {
    for sddl in [DIRECTORY_SDDL, FILE_SDDL] {
        assert_eq!(read_descriptor(&layer_descriptor(sddl)), descriptor(sddl));
    }
}

#[test]
fn the_file_descriptor_is_the_known_one_byte_for_byte() {
    assert_eq!(
        STANDARD.encode(layer_descriptor(FILE_SDDL)),
        "AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgBMAAMAAAAAABgA/wEfAAECAAAAAAAFIAAAACACAAAAABQA/wEfAAEBAAAAAAAFEgAAAAAAGACpABIAAQIAAAAAAAUgAAAAIQIAAA=="
    );
}

#[test]
fn both_layouts_hold_the_same_descriptor() {
    let sddl = "O:SYG:SYD:PAI(A;CI;KR;;;BU)(D;OICIIO;0xa0000000;;;S-1-15-3-1024-1065365936)S:AI(AU;SAFA;SDWO;;;WD)";
    let original = descriptor(sddl);
    for layout in [DescriptorLayout::ListsFirst, DescriptorLayout::OwnerFirst] {
        let bytes = original.to_bytes(layout);
        assert_eq!(read_descriptor(&bytes), original);
        assert_eq!(SecurityDescriptor::from_bytes(&bytes), Ok(original.clone()));
    }
}

#[test]
fn a_condition_stays_with_its_entry() {
    let mut conditional = descriptor("O:BAG:SYD:(A;CI;KR;;;BU)(A;;KA;;;BA)");
    let entry = &mut conditional.dacl.as_mut().unwrap().entries[0];
    entry.kind = 9;
    entry.rest = b"artx\xf8\0\0\0".to_vec();
    let bytes = conditional.to_bytes(DescriptorLayout::ListsFirst);
    assert_eq!(SecurityDescriptor::from_bytes(&bytes), Ok(conditional));
}

#[test]
fn bytes_that_are_not_a_descriptor_are_refused() {
    let bytes = layer_descriptor(FILE_SDDL);
    for length in 0..bytes.len() {
        let cut = SecurityDescriptor::from_bytes(&bytes[..length]);
        assert_eq!(cut, Err(UnreadableDescriptor), "{length} bytes");
    }
    for (at, byte) in [(0, 2), (3, 0), (20, 9), (36, 9), (56, 5), (58, 7), (64, 2)] {
        let mut broken = bytes.clone();
        broken[at] = byte;
        let read = SecurityDescriptor::from_bytes(&broken);
        assert_eq!(read, Err(UnreadableDescriptor), "{byte} at {at}");
    }
}

/// Each case follows the rules of MS-DTYP 2.5.3.4 by hand, for a creator of the group of
/// administrators.
#[test]
fn files_and_folders_inherit_what_their_folder_passes_on() {
    let (owner, group): (Sid, Sid) = ("BA".parse().unwrap(), "SY".parse().unwrap());
    for (parent, folder, file) in [
        // The drive's root in Windows' images.
        (
            "O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CIIO;DC;;;BU)(A;OICIIO;GA;;;CO)",
            "O:BAG:SYD:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;OICIID;0x1200a9;;;BU)(A;CIID;LC;;;BU)(A;CIID;DC;;;BU)(A;OICIIOID;GA;;;CO)",
            "O:BAG:SYD:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;0x1200a9;;;BU)",
        ),
        // Program Files, as `icacls` shows a program's folder in it.
        (
            "O:BAG:SYD:PAI(A;;FA;;;LS)(A;CIIO;GA;;;LS)(A;;0x1301bf;;;SY)(A;OICIIO;GA;;;SY)(A;;0x1301bf;;;BA)(A;OICIIO;GA;;;BA)(A;;0x1200a9;;;BU)(A;OICIIO;GXGR;;;BU)(A;OICIIO;GA;;;CO)",
            "O:BAG:SYD:AI(A;ID;FA;;;LS)(A;CIIOID;GA;;;LS)(A;ID;FA;;;SY)(A;OICIIOID;GA;;;SY)(A;ID;FA;;;BA)(A;OICIIOID;GA;;;BA)(A;ID;0x1200a9;;;BU)(A;OICIIOID;GXGR;;;BU)(A;OICIIOID;GA;;;CO)",
            "O:BAG:SYD:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;0x1200a9;;;BU)",
        ),
        // One level only; files only; the creator if no other entry grants as much; a denial is kept.
        (
            "D:(A;OICINP;FR;;;AU)(A;OI;FX;;;AU)(A;OICI;0x1301bf;;;CO)(A;CI;FR;;;CG)(D;OICI;SD;;;BU)",
            "O:BAG:SYD:AI(A;ID;FR;;;AU)(A;OIIOID;FX;;;AU)(A;ID;0x1301bf;;;BA)(A;OICIIOID;0x1301bf;;;CO)(A;ID;FR;;;SY)(A;CIIOID;FR;;;CG)(D;OICIID;SD;;;BU)",
            "O:BAG:SYD:AI(A;ID;FR;;;AU)(A;ID;FX;;;AU)(A;ID;0x1301bf;;;BA)(D;ID;SD;;;BU)",
        ),
        // Nothing to inherit, and a label that is.
        (
            "D:P(A;;FA;;;BU)S:(ML;OICI;0x1;;;S-1-16-4096)",
            "O:BAG:SYD:(A;;FA;;;SY)(A;;0x1200a9;;;BA)S:AI(ML;OICIID;0x1;;;S-1-16-4096)",
            "O:BAG:SYD:(A;;FA;;;SY)(A;;0x1200a9;;;BA)S:AI(ML;ID;0x1;;;S-1-16-4096)",
        ),
    ] {
        let inherited = |child| descriptor(parent).inherited_by(child, &owner, &group);
        assert_eq!(
            inherited(ChildKind::Folder),
            descriptor(folder),
            "folder in {parent}"
        );
        assert_eq!(
            inherited(ChildKind::File),
            descriptor(file),
            "file in {parent}"
        );
    }
}

proptest! {
    #[test]
    fn whatever_is_read_is_written_as_the_same(
        changes in proptest::collection::vec((0usize..168, any::<u8>()), 0..6),
        cut in 0usize..168,
    ) {
        let mut bytes = layer_descriptor(DIRECTORY_SDDL);
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        for bytes in [&bytes[..], &bytes[..cut.min(bytes.len())]] {
            if let Ok(read) = SecurityDescriptor::from_bytes(bytes) {
                for layout in [DescriptorLayout::ListsFirst, DescriptorLayout::OwnerFirst] {
                    let again = SecurityDescriptor::from_bytes(&read.to_bytes(layout));
                    prop_assert_eq!(&again, &Ok(read.clone()));
                }
            }
        }
    }
}

#[test]
fn a_null_list_is_not_an_empty_one() {
    let null = descriptor("O:SYD:NO_ACCESS_CONTROL");
    let empty = descriptor("O:SYD:");
    assert_eq!((null.dacl.is_none(), empty.dacl.is_some()), (true, true));
    for one in [null, empty] {
        let bytes = one.to_bytes(DescriptorLayout::ListsFirst);
        assert_eq!(read_descriptor(&bytes), one);
    }
}

#[test]
fn texts_that_are_not_descriptors_say_why() {
    for (text, part) in [
        ("X:BA", "expected O:"),
        ("O:", "invalid account"),
        ("O::", "expected O:"),
        ("O:é:", "expected O:"),
        ("", "expected O:"),
        ("O:BAG", "invalid account"),
        ("O:S-1-5-4294967296", "invalid account"),
        ("O:S-1-281474976710656-1", "invalid account"),
        ("D:X(A;;KR;;;BA)", "of an access list"),
        ("D:(A;;KR;;;BA", "invalid access entry"),
        ("D:(A;;KR;;BA)", "invalid access entry"),
        ("D:(A;;KZ;;;BA)", "invalid access entry"),
        ("D:(Z;;KR;;;BA)", "invalid access entry"),
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
    let error = longer.parse::<SecurityDescriptor>().unwrap_err();
    assert!(error.to_string().contains("65535 bytes"), "{error}");
}

#[test]
fn a_subkey_inherits_what_its_parent_passes_on() {
    let system: Sid = "SY".parse().unwrap();
    let inherited = |sddl: &str| descriptor(sddl).inherited_by(ChildKind::Key, &system, &system);
    assert_eq!(
        inherited(
            "O:BAG:SYD:(A;CI;KR;;;BU)(A;;KA;;;BA)(A;CI;KA;;;SY)(A;CIIO;KA;;;CO)(A;CINP;KR;;;WD)"
        ),
        descriptor(
            "O:SYG:SYD:AI(A;CIID;KR;;;BU)(A;CIID;KA;;;SY)(A;CIIOID;KA;;;CO)(A;ID;KR;;;WD)S:AI"
        )
    );
    assert_eq!(
        inherited("D:(A;OICIIO;GA;;;LS)(A;CIIO;GRGX;;;AU)"),
        descriptor(
            "O:SYG:SYD:AI(A;ID;KA;;;LS)(A;OICIIOID;GA;;;LS)(A;ID;0x20039;;;AU)(A;CIIOID;0xa0000000;;;AU)S:AI"
        )
    );
}
