//! Throughput of layers: a small one, as the pause image has it, many small files, and text.

use std::hint::black_box;
use std::io;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wincimg_layer::{Compression, Layer, LayerPath, PathError, WriteOptions};

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

fn pause(criterion: &mut Criterion) {
    let mut layer = Layer::new(1_580_256_000);
    layer.hive(path("System_Delta"), vec![0; 8192]);
    layer.file(path("shim.exe"), text(60_000));
    criterion.bench_function("pause", |bencher| {
        bencher.iter(|| write(black_box(&layer), Compression::Gzip));
    });
}

fn small_files(criterion: &mut Criterion) {
    let mut layer = Layer::new(1_580_256_000);
    for at in 0..5000 {
        layer.file(path(&format!("app/{}/{at}.txt", at / 50)), text(600));
    }
    let mut group = criterion.benchmark_group("small files");
    group.throughput(Throughput::Elements(5000)).sample_size(20);
    group.bench_function("gzip", |bencher| {
        bencher.iter(|| write(black_box(&layer), Compression::Gzip));
    });
    group.finish();
}

fn large_text(criterion: &mut Criterion) {
    const SIZE: usize = 32 << 20;
    let mut layer = Layer::new(1_580_256_000);
    layer.file(path("log.txt"), text(SIZE));
    let mut group = criterion.benchmark_group("text");
    group
        .throughput(Throughput::Bytes(SIZE as u64))
        .sample_size(10);
    for compression in [Compression::Gzip, Compression::Zstd] {
        let id = BenchmarkId::from_parameter(format!("{compression:?}"));
        group.bench_function(id, |bencher| {
            bencher.iter(|| write(black_box(&layer), compression));
        });
    }
    group.finish();
}

criterion_group!(benches, pause, small_files, large_text);
criterion_main!(benches);
