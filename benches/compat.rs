//! How the cost of a check grows with the cluster: 10,000 nodes × 100 images is the target's size.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wincimg::cluster::nodes::{Node, NodeList};
use wincimg::cluster::workloads::WorkloadList;
use wincimg::report::{write_html, write_json};
use wincimg::rollout::{Content, Image, Plan, Request, Rollout};
use wincimg::windows::compat::HostBuild;
use wincimg::windows::update::{Update, Updates};

const IMAGES: usize = 100;

fn request_of(nodes: usize, images: usize) -> Request {
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
    let images: Vec<Image> = (0..images)
        .map(|index| Image {
            reference: Some(format!("registry.example/app-{index}:1.0")),
            content: Content::Stated(versions[index * 6 % versions.len()]),
        })
        .collect();
    Request {
        nodes: NodeList {
            windows: hosts,
            others: Vec::new(),
        },
        plain: images.len(),
        images,
        ..Request::default()
    }
}

fn rollout_of(nodes: usize) -> Rollout {
    Rollout::new(request_of(nodes, IMAGES))
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

/// The nodes of a large cluster with 500 workloads of 200 images: the text that is read, and the
/// answer that is made of it.
fn whole_cluster(criterion: &mut Criterion) {
    const WORKLOADS: usize = 500;
    const IMAGES: usize = 200;
    let image = |index: usize| format!("registry.example/app-{}:1.0", index % IMAGES);
    let documents: Vec<String> = (0..WORKLOADS)
        .map(|index| {
            format!(
                "kind: Deployment\nmetadata: {{name: d{index}}}\nspec:\n  template:\n    spec:\n      \
                 nodeSelector: {{kubernetes.io/os: windows, pool: p{}}}\n      containers:\n      \
                 - {{name: a, image: {}}}\n      - {{name: b, image: {}}}\n",
                index % 7,
                image(index),
                image(index * 7)
            )
        })
        .collect();
    let text = documents.join("---\n");
    let workloads = || {
        let mut list = WorkloadList::default();
        list.read(&text, "bench").ok()?;
        Some(list.into_workloads())
    };
    let Some(read) = workloads() else { return };
    let mut group = criterion.benchmark_group("rollout");
    group.sample_size(10);
    group.bench_function("read-500-workloads", |bencher| bencher.iter(workloads));
    let request = Request {
        workloads: read,
        plain: 0,
        ..request_of(2_000, IMAGES)
    };
    group.bench_function("2000-nodes", |bencher| {
        bencher.iter(|| Rollout::new(request.clone()));
    });
    let rollout = Rollout::new(request.clone());
    group.bench_function("plan", |bencher| {
        bencher.iter(|| Plan::new(&request, &rollout));
    });
    group.bench_function("html", |bencher| {
        bencher.iter(|| write_html(&rollout, false, std::io::sink()));
    });
    group.finish();
}

criterion_group!(benches, check_compat, whole_cluster);
criterion_main!(benches);
