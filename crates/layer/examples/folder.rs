//! Makes a Windows layer of a folder, with one value in the registry.
//!
//! ```console
//! $ cargo run --example folder -- site layer.tar.gz
//! ```

#![expect(clippy::print_stdout, reason = "it says what it wrote")]

use std::error::Error;
use std::fs::File;
use std::path::PathBuf;
use std::{env, io};

use wincimg_layer::{Layer, WriteOptions};
use wincimg_registry::hive::{FileTime, layer_hives};
use wincimg_registry::{RegistryData, RegistryEdit, UnknownBase};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let (Some(folder), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("usage: folder FOLDER LAYER.tar.gz".into());
    };
    let mut layer = Layer::new(0);
    layer.folder(&folder, None)?;
    let edit = RegistryEdit::SetValue {
        key: r"HKLM\SYSTEM\CurrentControlSet\Control".parse()?,
        name: "WaitToKillServiceTimeout".to_owned(),
        data: RegistryData::sz("30000"),
    };
    for hive in layer_hives(&[edit], &UnknownBase, FileTime::default())? {
        layer.hive(hive.name.parse()?, hive.bytes);
    }
    let mut blob = io::BufWriter::new(File::create(file)?);
    let written = layer.write(&mut blob, &WriteOptions::default())?;
    println!("digest  {}\ndiff_id {}", written.digest, written.diff_id);
    Ok(())
}
