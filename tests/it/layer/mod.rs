//! Layers as other programs read them, of all sizes.

mod import;
mod windows_import;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use proptest::prelude::*;
use wincimg_layer::{
    BlobBuffer, BufferedBlob, Compression, DiskSource, Layer, LayerPath, LayerReader, Limits,
    LinkTo, WriteOptions, WrittenLayer,
};
use wincimg_testkit::{child_argument, component, folder_for_holes, in_child};

const TIMESTAMP: u64 = 1_580_256_000;

fn path(text: &str) -> LayerPath {
    text.parse().unwrap()
}

fn options(compression: Compression) -> WriteOptions<'static> {
    WriteOptions {
        compression,
        threads: NonZeroUsize::new(2),
        ..WriteOptions::default()
    }
}

fn long_path() -> String {
    format!(
        "{}/{}.txt",
        "long folder/".repeat(12).trim_end_matches('/'),
        "n".repeat(120)
    )
}

/// A layer with every kind of entry, large enough for several blocks.
fn rich_layer() -> Layer {
    let mut layer = Layer::new(TIMESTAMP);
    layer.hive(path("System_Delta"), b"regf".as_slice());
    layer.directory(path("empty"));
    layer.file(path("app/config.json"), b"{}".as_slice());
    layer.file(path("app/größe 日本語.txt"), "ü".as_bytes());
    layer.file(path(&long_path()), b"deep".as_slice());
    layer.file(path("data/noise.bin"), noise(5 << 20));
    layer.file(path("data/words.txt"), words());
    layer
        .symlink(path("app/settings.json"), "config.json", LinkTo::File)
        .unwrap();
    layer
        .symlink(path("app/files"), "../data", LinkTo::Directory)
        .unwrap();
    layer.delete(path("Windows/old.dll"));
    layer
}

fn rich_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "Hives",
        "Hives/System_Delta",
        "Files",
        "Files/app",
        "Files/app/files",
        "Files/app/settings.json",
        "Files/data",
        "Files/empty",
    ]
    .map(str::to_owned)
    .to_vec();
    for depth in 1..=12 {
        names.push(format!("Files/{}", vec!["long folder"; depth].join("/")));
    }
    names.extend(["Files/Windows", "Files/Windows/.wh.old.dll"].map(str::to_owned));
    names.extend(["Files/data/noise.bin", "Files/app/config.json"].map(str::to_owned));
    names.extend(["Files/app/größe 日本語.txt", "Files/data/words.txt"].map(str::to_owned));
    names.push(format!("Files/{}", long_path()));
    names
}

fn noise(bytes: usize) -> Vec<u8> {
    wincimg_testkit::noise(bytes, 3)
}

/// 3 MB of compressible text, with noise in the middle.
fn words() -> Vec<u8> {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let line =
            |number: u32| format!("line {number} of {}\n", number.wrapping_mul(2_654_435_761));
        let mut words: Vec<u8> = (0..100_000).flat_map(|it| line(it).into_bytes()).collect();
        let middle = words.len() / 2;
        words.splice(middle..middle, noise(300_000));
        words
    });
    made.clone()
}

/// Writes the rich layer to a file in a folder of its own.
fn rich_file(compression: Compression) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("layer");
    let sink = File::create(&file).unwrap();
    rich_layer().write(sink, &options(compression)).unwrap();
    (folder, file)
}

fn output_of(command: &mut Command) -> String {
    let output = command.env("LC_ALL", "C.UTF-8").output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn gzip_takes_the_blob_for_a_whole_one_and_gnu_tar_lists_every_entry() {
    let (_folder, file) = rich_file(Compression::Gzip);
    let mut gzip = Command::new("gzip");
    output_of(gzip.arg("-t").stdin(File::open(&file).unwrap()));
    let mut tar = Command::new("tar");
    tar.arg("--warning=no-unknown-keyword")
        .args(["--quoting-style=literal", "--utc", "-tvzf"]);
    let listing = output_of(tar.arg(&file));
    let lines: Vec<&str> = listing.lines().collect();
    let names = rich_names();
    assert_eq!(lines.len(), names.len());
    for (line, name) in lines.iter().zip(&names) {
        assert_contains!(line, " 2020-01-29 00:00 ", name);
    }
    assert!(lines[4].ends_with("Files/app/files -> ../data") && lines[4].starts_with('l'));
    assert!(lines[7].starts_with("drwxr-xr-x"));
}

#[test]
fn python_reads_names_records_and_content_seeking_and_streaming() {
    const SCRIPT: &str = "
import hashlib, sys, tarfile
for mode in ('r:gz', 'r|gz'):
    with tarfile.open(sys.argv[1], mode) as tar:
        for entry in tar:
            print(entry.name, entry.mtime, entry.pax_headers.get('MSWINDOWS.fileattr'), end=' ')
            print(entry.pax_headers.get('LIBARCHIVE.creationtime'), entry.linkname or '-', end=' ')
            content = tar.extractfile(entry).read() if entry.isreg() else b''
            print(hashlib.sha256(content).hexdigest()[:8])
";
    let python = component("python3");
    let (_folder, file) = rich_file(Compression::Gzip);
    let listing = output_of(
        Command::new(python)
            .env("PYTHONIOENCODING", "utf-8")
            .args(["-c", SCRIPT])
            .arg(&file),
    );
    let lines: Vec<&str> = listing.lines().collect();
    let names = rich_names();
    let (seeking, streaming) = lines.split_at(names.len());
    assert_eq!(seeking, streaming);
    for (line, name) in seeking.iter().zip(&names) {
        assert!(line.starts_with(&format!("{name} {TIMESTAMP} ")), "{line}");
    }
    let nothing = &sha256(b"")[..8];
    let of_noise = &sha256(&noise(5 << 20))[..8];
    let of_words = &sha256(&words())[..8];
    for expected in [
        format!("Files/app {TIMESTAMP} 16 {TIMESTAMP} - {nothing}"),
        format!("Files/app/files {TIMESTAMP} 1040 {TIMESTAMP} ../data {nothing}"),
        format!("Files/app/settings.json {TIMESTAMP} 1056 {TIMESTAMP} config.json {nothing}"),
        format!("Files/data/noise.bin {TIMESTAMP} 32 {TIMESTAMP} - {of_noise}"),
        format!("Files/data/words.txt {TIMESTAMP} 32 {TIMESTAMP} - {of_words}"),
        format!("Files/Windows/.wh.old.dll {TIMESTAMP} None None - {nothing}"),
    ] {
        assert!(
            seeking.contains(&expected.as_str()),
            "no {expected:?} in {seeking:#?}"
        );
    }
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    hex::encode(sha2::Sha256::digest(bytes))
}

/// Windows' `tar` is bsdtar.
#[test]
fn bsdtar_unpacks_what_was_stored_and_what_was_deflated() {
    let bsdtar = component("bsdtar");
    let (folder, file) = rich_file(Compression::Gzip);
    let mut tar = Command::new(bsdtar);
    tar.current_dir(&folder).arg("-xf").arg(&file);
    output_of(tar.args(["Files/data/noise.bin", "Files/data/words.txt"]));
    let data = folder.path().join("Files/data");
    assert!(fs::read(data.join("noise.bin")).unwrap() == noise(5 << 20));
    assert!(fs::read(data.join("words.txt")).unwrap() == words());
}

#[test]
fn zstd_takes_the_blob_for_a_whole_one() {
    let zstd = component("zstd");
    let (_folder, file) = rich_file(Compression::Zstd);
    output_of(Command::new(zstd).arg("-tq").arg(&file));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_goes_in_is_what_the_tar_crate_reads_back(
        files in proptest::collection::btree_map(
            "[a-z0-9äß日 ]{0,60}[a-z]/[a-zé€ ]{0,120}[a-z]",
            (any::<u8>(), 0_usize..3000),
            0..30,
        ),
        on_disk in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut layer = Layer::new(TIMESTAMP);
        let mut expected = BTreeMap::new();
        for (at, (name, (byte, size))) in files.into_iter().enumerate() {
            let content = vec![byte; size];
            if on_disk {
                let file = folder.path().join(at.to_string());
                fs::write(&file, &content).unwrap();
                layer.file(path(&name), file);
            } else {
                layer.file(path(&name), content.clone());
            }
            expected.insert(format!("Files/{name}"), content);
        }
        let mut blob = Vec::new();
        layer.write(&mut blob, &options(Compression::Gzip)).unwrap();

        let mut archive = tar::Archive::new(GzDecoder::new(blob.as_slice()));
        let mut found = BTreeMap::new();
        let mut directories = vec!["Hives".to_owned(), "Files".to_owned()];
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
            prop_assert_eq!(entry.header().mtime().unwrap(), TIMESTAMP);
            if entry.header().entry_type().is_dir() {
                directories.push(name);
                continue;
            }
            let (parent, _) = name.rsplit_once('/').unwrap();
            prop_assert!(directories.iter().any(|dir| dir == parent));
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            found.insert(name, content);
        }
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn the_order_of_adding_does_not_change_a_byte() {
    let names = ["b/2", "a", "b/1", "c d/e", "B/3"];
    let digest = |names: &mut dyn Iterator<Item = &&str>| {
        let mut layer = Layer::new(TIMESTAMP);
        for name in names {
            layer.file(path(name), name.as_bytes().to_vec());
        }
        layer
            .write(io::sink(), &options(Compression::Gzip))
            .unwrap()
    };
    assert_eq!(
        digest(&mut names[..4].iter()),
        digest(&mut names[..4].iter().rev())
    );
}

#[test]
fn a_folder_read_twice_makes_the_same_layer() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("a/empty")).unwrap();
    for name in ["z", "a/y", "x"] {
        fs::write(folder.path().join(name), noise(1000)).unwrap();
    }
    let digest = || {
        let mut layer = Layer::new(TIMESTAMP);
        layer.folder(folder.path(), Some(&path("app"))).unwrap();
        layer
            .write(io::sink(), &options(Compression::Gzip))
            .unwrap()
    };
    let first = digest();
    let later = File::open(folder.path().join("z")).unwrap();
    later.set_modified(std::time::SystemTime::now()).unwrap();
    assert_eq!(digest(), first);
}

#[test]
fn a_spooled_layer_is_the_layer() {
    let folder = tempfile::tempdir().unwrap();
    for limit in [1 << 20, 1 << 30] {
        let mut blob = BlobBuffer::new(limit, folder.path());
        let written = rich_layer()
            .write(&mut blob, &options(Compression::Gzip))
            .unwrap();
        let (bytes, on_disk) = match blob.finish() {
            BufferedBlob::Memory(bytes) => (bytes.to_vec(), false),
            BufferedBlob::Disk(spool) => (fs::read(spool.path()).unwrap(), true),
        };
        assert_eq!(
            (bytes.len() as u64, on_disk),
            (written.size, limit == 1 << 20)
        );
        assert_eq!(written.digest.digest(), sha256(&bytes));
    }
}

/// Runs one test of this file alone with an environment and returns its output; memory can be
/// measured only in a separate process.
#[cfg(target_os = "linux")]
fn alone(test: &str, file: &Path) -> Measurement {
    let output = in_child(test, file.to_str().unwrap(), &[]);
    let line = output.lines().find(|line| line.contains(RESULT)).unwrap();
    let (_, values) = line.split_once(RESULT).unwrap();
    let values: Vec<u64> = values
        .split(' ')
        .map(|value| value.parse().unwrap())
        .collect();
    Measurement {
        uncompressed: values[0],
        peak_mib: values[1],
    }
}

#[cfg(target_os = "linux")]
struct Measurement {
    uncompressed: u64,
    peak_mib: u64,
}

const RESULT: &str = "measured: ";

#[cfg(target_os = "linux")]
#[allow(clippy::print_stdout)]
fn report(written: &WrittenLayer) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    println!("{RESULT}{} {}", written.uncompressed_size, kib / 1024);
}

#[cfg(target_os = "linux")]
#[test]
fn fifty_thousand_small_files_take_little_memory() {
    if let Some(file) = child_argument().map(PathBuf::from) {
        let mut layer = Layer::new(TIMESTAMP);
        let file = DiskSource::from(file);
        for at in 0..50_000 {
            let name = format!("node_modules/package-{}/lib/file-{at}.js", at / 100);
            layer.file(path(&name), file.clone());
        }
        report(
            &layer
                .write(io::sink(), &options(Compression::Gzip))
                .unwrap(),
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.js");
    fs::write(&file, "module.exports = 1;\n").unwrap();
    let measured = alone("fifty_thousand_small_files_take_little_memory", &file);
    let directories = 3 + 2 * 500;
    assert_eq!(
        measured.uncompressed,
        directories * 1536 + 50_000 * 2048 + 1024
    );
    assert!(measured.peak_mib < 75, "{} MiB", measured.peak_mib);
}

#[cfg(target_os = "linux")]
#[test]
fn a_huge_sparse_file_takes_no_memory_of_its_size() {
    const SIZE: u64 = 1 << 30;
    if let Some(file) = child_argument().map(PathBuf::from) {
        let mut layer = Layer::new(TIMESTAMP);
        layer.file(path("disk.vhdx"), file);
        let mut blob = Vec::new();
        report(&layer.write(&mut blob, &options(Compression::Zstd)).unwrap());
        let mut reader = LayerReader::new(blob.as_slice(), Limits::default()).unwrap();
        while let Some(entry) = reader.next_entry().unwrap() {
            if entry.path == "Files/disk.vhdx" {
                assert_eq!(entry.size, SIZE);
                return;
            }
        }
        panic!("the file is not in the layer");
    }
    let folder = folder_for_holes();
    let file = folder.path().join("disk.vhdx");
    File::create(&file).unwrap().set_len(SIZE).unwrap();
    let measured = alone("a_huge_sparse_file_takes_no_memory_of_its_size", &file);
    assert_eq!(measured.uncompressed, SIZE + 2 * 1536 + 1536 + 1024);
    assert!(measured.peak_mib < 100, "{} MiB", measured.peak_mib);
}
