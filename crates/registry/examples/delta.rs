//! Writes the delta hives of a layer from a `.reg` file.
//!
//! ```console
//! $ cargo run --example delta -- settings.reg layer/Hives
//! ```

#![expect(clippy::print_stdout, reason = "it says what it wrote")]

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use wincimg_registry::UnknownBase;
use wincimg_registry::hive::{FileTime, layer_hives};
use wincimg_registry::regfile::import;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let (Some(file), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: delta FILE.reg FOLDER".into());
    };
    let edits = import(&fs::read(file)?)?.edits;
    fs::create_dir_all(&folder)?;
    // For an unknown base keys get the descriptors of Windows' own.
    for hive in layer_hives(&edits, &UnknownBase, FileTime::default())? {
        fs::write(folder.join(hive.name), &hive.bytes)?;
        println!("{}: {} bytes", hive.name, hive.bytes.len());
    }
    Ok(())
}
