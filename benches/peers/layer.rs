//! Writes a folder as a Windows layer: `layer FOLDER FILE [gzip|zstd]`, and prints what a manifest
//! says of it. `benches/layer.sh` measures with it.

use std::fs::File;
use std::path::Path;

use wincimg_layer::{Compression, Layer, WriteOptions};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, file, compression) = match arguments.as_slice() {
        [folder, file] => (folder, file, Compression::Gzip),
        [folder, file, word] if word == "gzip" => (folder, file, Compression::Gzip),
        [folder, file, word] if word == "zstd" => (folder, file, Compression::Zstd),
        _ => anyhow::bail!("usage: layer FOLDER FILE [gzip|zstd]"),
    };
    let mut layer = Layer::new(0);
    layer.folder(Path::new(folder), None)?;
    let options = WriteOptions {
        compression,
        ..WriteOptions::default()
    };
    let written = layer.write(File::create(file)?, &options)?;
    #[allow(clippy::print_stdout)]
    {
        println!("{} {} {}", written.digest, written.size, written.diff_id);
    }
    Ok(())
}
