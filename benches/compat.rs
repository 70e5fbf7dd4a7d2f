//! How the cost of a check grows with the cluster: 10,000 nodes × 100 images is the target's size.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wincimg::cluster::nodes::{Node, NodeList};
use wincimg::report::write_json;
use wincimg::rollout::{Content, Image, Request, Rollout};
use wincimg::windows::compat::HostBuild;
use wincimg::windows::update::{Update, Updates};

const IMAGES: usize = 100;

fn rollout_of(nodes: usize) -> Rollout {
    let versions: Vec<_> = Updates::embedded()
        .all()
        .iter()
        .map(Update::version)
        .collect();
    let hosts = (0..nodes)
        .map(|index| Node {
            name: Some(format!("node-{index}")),
            ..Node::of_build(HostBuild::new(versions[index % versions.len()]))
        })
        .collect();
    let images = (0..IMAGES)
        .map(|index| Image {
            reference: Some(format!("registry.example/app-{index}:1.0")),
            content: Content::Stated(versions[index * 6 % versions.len()]),
        })
        .collect();
    Rollout::new(Request {
        nodes: NodeList {
            windows: hosts,
            others: Vec::new(),
        },
        images,
        plain: IMAGES,
        ..Request::default()
    })
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
                bencher.iter(|| rollout_of(*nodes));
            },
        );
        let rollout = rollout_of(nodes);
        group.bench_with_input(
            BenchmarkId::new("json", nodes),
            &rollout,
            |bencher, rollout| {
                bencher.iter(|| write_json(rollout, false, std::io::sink()));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, check_compat);
criterion_main!(benches);
