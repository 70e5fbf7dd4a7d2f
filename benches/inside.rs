//! Time to index a base of 300 MB, against `gzip -dc | tar t` of the same layer; how much
//! memory; how large the facts are, and how fast they answer.
//!
//! The base is made up: files that compress as Windows' do, descriptors and attributes, hives of many
//! keys, and where a sample is named in `WINCIMG_SYSTEM_HIVE` that as its SYSTEM.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs
)]

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use wincimg_inspect::base::{BaseFacts, Extent, LayerPosition, assemble, collect_layer};
use wincimg_oci::document::sha256;
use wincimg_registry::hive::{FileTime, empty_hive, unfitted_hives};
use wincimg_registry::security::{DIRECTORY_SDDL, FILE_SDDL, layer_descriptor};
use wincimg_registry::{BaseKeys, KeyPath, RegistryData, RegistryEdit};

/// Compressed size of the layer.
const SIZE: u64 = 300_000_000;
const ROUNDS: usize = 5;

/// Numbers that look random and are the same in every run (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    /// Bytes of which gzip leaves about two fifths, as of programs: some new, more of them copies.
    fn content(&mut self, size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size + 64);
        while bytes.len() < size {
            if bytes.len() < 256 || self.below(100) < 42 {
                for _ in 0..=self.below(4) {
                    bytes.extend(self.next().to_le_bytes());
                }
            } else {
                let length = 6 + self.below(48);
                let back = length + self.below((bytes.len() - length).min(30_000));
                let from = bytes.len() - back;
                bytes.extend_from_within(from..from + length);
            }
        }
        bytes.truncate(size);
        bytes
    }
}

fn set(key: &str, name: &str, data: RegistryData) -> RegistryEdit {
    RegistryEdit::SetValue {
        key: key.parse().unwrap(),
        name: name.to_owned(),
        data,
    }
}

/// Classes and components, as most of a real SOFTWARE is.
fn software(random: &mut Random) -> Vec<u8> {
    let mut edits = Vec::new();
    for number in 0..60_000_u32 {
        let (a, b) = (random.next(), random.next());
        let id = format!("{{{:08X}-{:04X}-{:012X}}}", a >> 32, a & 0xFFFF, b >> 16);
        let class = format!(r"HKLM\SOFTWARE\Classes\CLSID\{id}");
        let server = format!(r"{class}\InprocServer32");
        let library = format!(r"%SystemRoot%\system32\library{}.dll", number % 900);
        edits.push(set(
            &class,
            "",
            RegistryData::sz(&format!("Class {number}")),
        ));
        edits.push(set(&server, "", RegistryData::expand_sz(&library)));
        edits.push(set(&server, "ThreadingModel", RegistryData::sz("Both")));
        if number % 6 == 0 {
            let package =
                r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing";
            let key =
                format!(r"{package}\ComponentDetect\amd64_component-{number}_31bf3856ad364e35");
            edits.push(set(&key, "digest", RegistryData::binary(b.to_le_bytes())));
        }
    }
    let time = FileTime::from_unix_seconds(1_600_000_000);
    unfitted_hives(&edits, time).unwrap().remove(0).bytes
}

struct Base<W: Write> {
    tar: tar::Builder<W>,
}

impl<W: Write> Base<W> {
    fn entry(&mut self, path: &str, bytes: Option<&[u8]>) {
        let (attributes, descriptor, kind) = match bytes {
            Some(_) => ("32", FILE_SDDL, tar::EntryType::Regular),
            None => ("16", DIRECTORY_SDDL, tar::EntryType::Directory),
        };
        let security = STANDARD.encode(layer_descriptor(descriptor));
        let records = [
            ("LIBARCHIVE.creationtime", "1600000000".as_bytes()),
            ("MSWINDOWS.fileattr", attributes.as_bytes()),
            ("MSWINDOWS.rawsd", security.as_bytes()),
        ];
        self.tar.append_pax_extensions(records).unwrap();
        let mut header = tar::Header::new_ustar();
        let bytes = bytes.unwrap_or_default();
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        self.tar.append_data(&mut header, path, bytes).unwrap();
    }
}

struct CountingWriter<W>(W, u64);

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        self.1 += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn make(path: &Path) {
    let random = &mut Random(1);
    let file = CountingWriter(BufWriter::new(File::create(path).unwrap()), 0);
    let mut base = Base {
        tar: tar::Builder::new(GzEncoder::new(file, Compression::new(6))),
    };
    let config = "Files/Windows/System32/config";
    for folder in ["Files", "Files/Windows", "Files/Windows/System32", config] {
        base.entry(folder, None);
    }
    let system = match std::env::var_os("WINCIMG_SYSTEM_HIVE") {
        Some(file) => fs::read(file).unwrap(),
        None => empty_hive(FileTime(1)).unwrap(),
    };
    let empty = empty_hive(FileTime(1)).unwrap();
    for (name, hive) in [
        ("DEFAULT", &empty),
        ("SAM", &empty),
        ("SECURITY", &empty),
        ("SOFTWARE", &software(random)),
        ("SYSTEM", &system),
    ] {
        base.entry(&format!("{config}/{name}"), Some(hive));
    }
    for number in 0.. {
        if base.tar.get_ref().get_ref().1 > SIZE {
            break;
        }
        let folder = format!(
            "Files/Windows/WinSxS/amd64_microsoft-windows-part{number}_31bf3856ad364e35_10.0.17763.{}_none_{:016x}",
            random.below(2000),
            random.next()
        );
        base.entry(&folder, None);
        for file in 0..=random.below(5) {
            // Many small, few large.
            let magnitude = 10 + random.below(10);
            let size = 400 + random.below(1 << magnitude);
            let content = random.content(size);
            base.entry(&format!("{folder}/part{number}-{file}.dll"), Some(&content));
        }
    }
    base.tar
        .into_inner()
        .unwrap()
        .finish()
        .unwrap()
        .flush()
        .unwrap();
}

/// As whoever reads a blob does: the digest is made while the bytes go by.
struct HashingReader<R>(R, Sha256);

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        self.1.update(&buffer[..count]);
        Ok(count)
    }
}

fn look(layer: &Path, facts: &Path) {
    let input = HashingReader(File::open(layer).unwrap(), Sha256::new());
    let found = collect_layer(input, LayerPosition::Bottom, &Extent::Everything).unwrap();
    let bytes = assemble(&sha256(b""), None, &Extent::Everything, vec![found]).unwrap();
    fs::write(facts, bytes).unwrap();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    println!("{}", peak.unwrap().trim().trim_end_matches(" kB"));
}

fn best(mut run: impl FnMut() -> Duration) -> Duration {
    (0..ROUNDS).map(|_| run()).min().unwrap()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, look_at, layer, facts] = arguments.as_slice()
        && look_at == "--look"
    {
        return look(Path::new(layer), Path::new(facts));
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(&folder).unwrap();
    let (layer, facts) = (folder.join("inside-1.tar.gz"), folder.join("inside.facts"));
    if !layer.exists() {
        make(&layer);
    }
    let size = fs::metadata(&layer).unwrap().len();
    println!("a layer of {} MB", size / 1_000_000);

    let listed = best(|| {
        let started = Instant::now();
        let command = format!(
            "gzip -dc '{}' | tar t --warning=no-unknown-keyword",
            layer.display()
        );
        let status = Command::new("sh")
            .args(["-c", &command])
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success());
        started.elapsed()
    });
    println!("gzip -dc | tar t: {:.2} s", listed.as_secs_f64());
    let mut peak = 0;
    let looked = best(|| {
        let started = Instant::now();
        let mut command = Command::new(&arguments[0]);
        let output = command.arg("--look").args([&layer, &facts]).output();
        let elapsed = started.elapsed();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        peak = peak.max(text.trim().parse::<u64>().unwrap());
        elapsed
    });
    println!(
        "a look inside: {:.2} s, {:.2} of that, {} MiB",
        looked.as_secs_f64(),
        looked.as_secs_f64() / listed.as_secs_f64(),
        peak >> 10
    );
    let facts_size = fs::metadata(&facts).unwrap().len();
    let share = 100.0 * facts_size as f64 / size as f64;
    println!("facts: {} KB, {share:.2} % of the layer", facts_size / 1000);

    let opened = best(|| {
        let started = Instant::now();
        BaseFacts::open(&facts).unwrap();
        started.elapsed()
    });
    let keys = [
        r"HKLM\SOFTWARE\Classes\CLSID",
        r"HKLM\SYSTEM\CurrentControlSet\Control",
        r"HKLM\SYSTEM\CurrentControlSet\Services\cexecsvc",
    ];
    let keys = keys.map(|key| key.parse::<KeyPath>().unwrap());
    let asked = best(|| {
        let facts = BaseFacts::open(&facts).unwrap();
        let started = Instant::now();
        for key in &keys {
            facts.key(key).unwrap();
        }
        started.elapsed() / 3
    });
    println!("opened in {opened:?}, a key of another block in {asked:?}");
}
