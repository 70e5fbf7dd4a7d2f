//! Time to write layers: a small one, as the pause image has it, many small files, and text.

mod timing;

use std::io;

use wincimg_layer::{Compression, Layer, LayerPath, PathError, WriteOptions};

use timing::measure;

fn path(text: &str) -> LayerPath {
    text.parse()
        .unwrap_or_else(|error: PathError| panic!("{error}"))
}

/// Lines like those of a log, the same on every run.
fn text(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut text = Vec::with_capacity(bytes + 100);
    while text.len() < bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let line = format!(
            "{} GET /api/items/{} status=200\n",
            state >> 40,
            (state >> 33) % 997
        );
        text.extend_from_slice(line.as_bytes());
    }
    text
}

fn write(layer: &Layer, compression: Compression) -> u64 {
    let options = WriteOptions {
        compression,
        ..WriteOptions::default()
    };
    match layer.write(io::sink(), &options) {
        Ok(written) => written.size,
        Err(error) => panic!("{error}"),
    }
}

fn main() {
    let mut layer = Layer::new(1_580_256_000);
    layer.hive(path("System_Delta"), vec![0; 8192]);
    layer.file(path("shim.exe"), text(60_000));
    measure("pause", || write(&layer, Compression::Gzip));

    let mut layer = Layer::new(1_580_256_000);
    for at in 0..5000 {
        layer.file(path(&format!("app/{}/{at}.txt", at / 50)), text(600));
    }
    measure("5000 small files, gzip", || {
        write(&layer, Compression::Gzip)
    });

    let mut layer = Layer::new(1_580_256_000);
    layer.file(path("log.txt"), text(32 << 20));
    measure("32 MiB of text, gzip", || write(&layer, Compression::Gzip));
    measure("32 MiB of text, zstd", || write(&layer, Compression::Zstd));
}
