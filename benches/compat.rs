//! How the cost of a check grows with the cluster: 10,000 nodes × 100 images is the target's size.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wincimg::report::{Host, Image, Report, write_json};
use wincimg::windows::compat::{HostBuild, Isolation};
use wincimg::windows::update::{Update, Updates};

const IMAGES: usize = 100;

fn report_of(nodes: usize) -> Report {
    let versions: Vec<_> = Updates::embedded()
        .all()
        .iter()
        .map(Update::version)
        .collect();
    let hosts = (0..nodes)
        .map(|index| Host {
            name: Some(format!("node-{index}")),
            build: Some(HostBuild::new(versions[index % versions.len()])),
        })
        .collect();
    let images = (0..IMAGES)
        .map(|index| Image {
            reference: Some(format!("registry.example/app-{index}:1.0")),
            build: Some(versions[index * 6 % versions.len()]),
        })
        .collect();
    Report::new(hosts, images, Isolation::Process)
}

fn check_compat(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("check-compat");
    group.sample_size(10);
    for nodes in [100, 1_000, 10_000] {
        group.throughput(Throughput::Elements((nodes * IMAGES) as u64));
        group.bench_with_input(
            BenchmarkId::new("judge", nodes),
            &nodes,
            |bencher, nodes| {
                bencher.iter(|| report_of(*nodes));
            },
        );
        let report = report_of(nodes);
        group.bench_with_input(
            BenchmarkId::new("json", nodes),
            &report,
            |bencher, report| {
                bencher.iter(|| write_json(report, false, std::io::sink()));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, check_compat);
criterion_main!(benches);
