//! Time to write delta hives: ten thousand edits in under 50 ms, a pause image's in under 2 ms.

#![allow(clippy::unwrap_used, missing_docs)]

mod timing;

use std::hint::black_box;

use wincimg_registry::hive::{FileTime, Hive, HiveFile, layer_hives, merge};
use wincimg_registry::{RegistryData, RegistryEdit, Root, UnknownBase};

use timing::measure;

fn set(key: &str, name: &str, data: RegistryData) -> RegistryEdit {
    RegistryEdit::SetValue {
        key: key.parse().unwrap(),
        name: name.into(),
        data,
    }
}

/// The shutdown time in both of its places, and a service that is off.
fn pause() -> Vec<RegistryEdit> {
    let control = r"HKLM\SYSTEM\CurrentControlSet\Control";
    let services = r"HKLM\SYSTEM\CurrentControlSet\Services";
    vec![
        set(
            &format!(r"{services}\cexecsvc"),
            "ProcessShutdownTimeoutSeconds",
            RegistryData::dword(30),
        ),
        set(
            control,
            "WaitToKillServiceTimeout",
            RegistryData::sz("30000"),
        ),
        set(
            &format!(r"{services}\DiagTrack"),
            "Start",
            RegistryData::dword(4),
        ),
    ]
}

fn ten_thousand() -> Vec<RegistryEdit> {
    (0..10_000)
        .map(|number| {
            let key = format!(r"HKLM\SOFTWARE\Vendor {}\Product\Part {number}", number % 7);
            set(&key, "Path", RegistryData::sz(r"C:\Program Files\Vendor"))
        })
        .collect()
}

fn main() {
    let time = FileTime::from_unix_seconds(1_600_000_000);
    let pause = pause();
    measure("write the pause image's hive", || {
        layer_hives(black_box(&pause), &UnknownBase, time).unwrap()
    });
    let many = ten_thousand();
    measure("write 10000 edits", || {
        layer_hives(black_box(&many), &UnknownBase, time).unwrap()
    });
    let written = layer_hives(&many, &UnknownBase, time).unwrap();
    let software = |hive: &&HiveFile| hive.name == Root::Software.delta_name();
    let written = written.iter().find(software).unwrap();
    measure("read 10000 keys", || {
        Hive::read(black_box(&written.bytes)).unwrap()
    });
    let root = Hive::read(&written.bytes).unwrap().root;
    measure("merge 10000 keys over themselves", || {
        merge(Some(root.clone()), [root.clone()])
    });
}
