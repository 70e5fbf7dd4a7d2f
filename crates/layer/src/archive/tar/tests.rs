use std::io::Write;

use flate2::bufread::MultiGzDecoder;
use proptest::prelude::*;

use super::*;
use crate::{Compression, Layer, LinkTo, WriteOptions};

const LIMITS: Limits = Limits {
    file: 1 << 20,
    stream: 1 << 30,
};

fn sample() -> Layer {
    let mut layer = Layer::new(1_580_000_000);
    layer.hive(
        "System_Delta".parse().unwrap(),
        b"regf of system".as_slice(),
    );
    layer.hive(
        "Software_Delta".parse().unwrap(),
        b"regf of software".as_slice(),
    );
    let long = format!("{}/ünï {}.txt", "d".repeat(200), "x".repeat(200));
    layer.file(long.parse().unwrap(), b"deep".as_slice());
    layer.file("app/Shim.exe".parse().unwrap(), vec![b'M'; 3000]);
    layer
        .symlink("app/link".parse().unwrap(), "é".repeat(90), LinkTo::File)
        .unwrap();
    layer.delete("Windows/old".parse().unwrap());
    layer
}

fn blob(layer: &Layer, compression: Compression) -> Vec<u8> {
    let mut blob = Vec::new();
    let options = WriteOptions {
        compression,
        ..WriteOptions::default()
    };
    layer.write(&mut blob, &options).unwrap();
    blob
}

fn plain() -> Vec<u8> {
    let mut out = Vec::new();
    let gzip = blob(&sample(), Compression::Gzip);
    MultiGzDecoder::new(gzip.as_slice())
        .read_to_end(&mut out)
        .unwrap();
    out
}

fn entries(blob: &[u8]) -> Result<Vec<TarEntry>, TarReadError> {
    entries_within(blob, LIMITS)
}

fn entries_within(blob: &[u8], limits: Limits) -> Result<Vec<TarEntry>, TarReadError> {
    let mut reader = TarReader::new(blob, limits)?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        entries.push(entry);
    }
    Ok(entries)
}

/// A source that fails the test when it is read further than its bytes.
struct BoundedSource<'a>(&'a [u8]);

impl Read for BoundedSource<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("read too far")),
            read => Ok(read),
        }
    }
}

#[test]
fn the_same_entries_come_out_of_every_compression() {
    let plain = entries(&plain()).unwrap();
    let skippable = [
        b"\x50\x2a\x4d\x18\x04\0\0\0skip".to_vec(),
        blob(&sample(), Compression::Zstd),
    ];
    assert_eq!(entries(&skippable.concat()).unwrap(), plain);
    let paths: Vec<&str> = plain.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(
        paths[..4],
        [
            "Hives", "Hives/Software_Delta", "Hives/System_Delta", "Files"
        ]
    );
    assert_eq!(paths[4..6], ["Files/app", "Files/app/link"]);
    assert_eq!(
        paths[7..10],
        [
            "Files/Windows", "Files/Windows/.wh.old", "Files/app/Shim.exe"
        ]
    );
    assert!(paths[10].ends_with(&format!("/ünï {}.txt", "x".repeat(200))));
    assert_eq!(plain[5].kind, TarEntryKind::Symlink);
    assert_eq!(plain[5].target.as_deref(), Some("é".repeat(90).as_str()));
    assert_eq!((plain[9].kind, plain[9].size), (TarEntryKind::File, 3000));
    assert_eq!(entries(&blob(&sample(), Compression::Gzip)).unwrap(), plain);
    assert_eq!(entries(&blob(&sample(), Compression::Zstd)).unwrap(), plain);
}

#[test]
fn a_gzip_of_several_members_is_read_to_its_end() {
    let members: Vec<u8> = plain()
        .chunks(700)
        .flat_map(|part| {
            let level = flate2::Compression::fast();
            let mut member = flate2::write::GzEncoder::new(Vec::new(), level);
            member.write_all(part).unwrap();
            member.finish().unwrap()
        })
        .collect();
    assert_eq!(entries(&members).unwrap(), entries(&plain()).unwrap());
}

#[test]
fn names_in_the_way_of_gnu_tar_are_understood() {
    let long = format!("./Files/{}", "n".repeat(300));
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_size(4);
    builder
        .append_data(&mut header, &long, b"data".as_slice())
        .unwrap();
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Link);
    header.set_size(0);
    builder
        .append_link(&mut header, "Files/link", &long)
        .unwrap();
    let entries = entries(&builder.into_inner().unwrap()).unwrap();
    assert_eq!(entries[0].path, &long[2..]);
    assert_eq!(entries[1].kind, TarEntryKind::HardLink);
    assert_eq!(entries[1].target.as_deref(), Some(long.as_str()));
}

#[test]
fn nothing_is_read_behind_the_content() {
    let plain = plain();
    let mut windows = plain.windows(3000);
    let shim = windows.position(|bytes| bytes == [b'M'; 3000]).unwrap();
    let mut reader = TarReader::new(BoundedSource(&plain[..shim + 3000]), LIMITS).unwrap();
    while reader.next_entry().unwrap().unwrap().path != "Files/app/Shim.exe" {}
    assert_eq!(reader.content().unwrap(), [b'M'; 3000]);
}

#[test]
fn a_part_of_an_entry_can_be_read_and_the_next_one_is_still_found() {
    let plain = plain();
    let mut reader = TarReader::new(plain.as_slice(), LIMITS).unwrap();
    while reader.next_entry().unwrap().unwrap().path != "Files/app/Shim.exe" {}
    let mut start = [0; 10];
    reader.read_exact(&mut start).unwrap();
    assert_eq!(start, [b'M'; 10]);
    assert_eq!(reader.content().unwrap().len(), 2990);
    assert_eq!(reader.read(&mut start).unwrap(), 0);
    let next = reader.next_entry().unwrap().unwrap();
    assert!(next.path.starts_with("Files/ddd"));
}

#[test]
fn a_cut_layer_is_an_error_wherever_it_is_cut_inside_an_entry() {
    let plain = plain();
    for length in (1..plain.len() - 2 * BLOCK)
        .filter(|at| at % BLOCK != 0)
        .step_by(97)
    {
        assert!(
            matches!(entries(&plain[..length]), Err(TarReadError::Truncated)),
            "cut at {length}"
        );
    }
    for compression in [Compression::Gzip, Compression::Zstd] {
        let blob = blob(&sample(), compression);
        assert!(entries(&blob[..blob.len() / 2]).is_err());
    }
}

#[test]
fn what_is_no_tar_is_refused() {
    let error = entries(&[b'x'; 2000]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "it is not a tar stream: a header's checksum is wrong"
    );
}

#[test]
fn limits_hold_for_files_extensions_and_the_whole_stream() {
    let plain = plain();
    let small = Limits {
        file: 10,
        stream: 1 << 20,
    };
    let mut reader = TarReader::new(plain.as_slice(), small).unwrap();
    while reader.next_entry().unwrap().unwrap().kind != TarEntryKind::File {}
    assert_eq!(
        reader.content().unwrap_err().to_string(),
        r#""Hives/Software_Delta" in the tar stream has 16 bytes, more than the limit of 10"#
    );
    let short = Limits {
        file: 100,
        stream: 2000,
    };
    let error = entries_within(&plain, short).unwrap_err();
    assert!(matches!(error, TarReadError::TooLong(2000)), "{error}");

    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::XHeader);
    header.set_size(u64::MAX);
    header.set_cksum();
    let error = entries(header.as_bytes()).unwrap_err();
    assert!(matches!(error, TarReadError::TooLong(_)), "{error}");
    header.set_size(LARGEST_EXTENSION + 1);
    header.set_cksum();
    let error = entries(header.as_bytes()).unwrap_err();
    assert!(matches!(error, TarReadError::Refused(_)), "{error}");
}

proptest! {
    #[test]
    fn broken_bytes_never_do_more_than_fail(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..20),
        mend_checksums in any::<bool>(),
        compression in prop_oneof![Just(None), Just(Some(Compression::Gzip)), Just(Some(Compression::Zstd))],
    ) {
        let mut bytes = match compression {
            None => plain(),
            Some(compression) => blob(&sample(), compression),
        };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if mend_checksums && compression.is_none() {
            for block in bytes.chunks_exact_mut(BLOCK) {
                let sum = checksum((&*block).try_into().unwrap());
                block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            }
        }
        let _ = entries(&bytes);
        if let Ok(mut reader) = TarReader::new(bytes.as_slice(), LIMITS) {
            while matches!(reader.next_entry(), Ok(Some(_))) && reader.content().is_ok() {}
        }
    }
}
