//! Several runs at once, kills at every moment, and power cuts: what is said to be kept is there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::runtime::Runtime;
use wincimg_oci::document::sha256;
use wincimg_oci::store::Sink;
use wincimg_testkit::docker_registry::{DockerRegistry, PASSWORD, Setup, USER};
use wincimg_testkit::file_server::FileServer;
use wincimg_testkit::proxy::{FaultProxy, ProxyFault};
use wincimg_testkit::test_bases::{bottom_layer, image_of, made_software, made_system};
use wincimg_testkit::{component, noise, options, repository};

use crate::hostile::run_and_check;
use crate::site::{Site, each, run_by};

fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for a run that succeeds.
fn end(child: Child) -> Output {
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    output
}

#[test]
fn twenty_logins_at_once_are_all_kept() {
    let registry = DockerRegistry::start(Setup::PASSWORD);
    let runtime = Runtime::new().unwrap();
    let hosts: Vec<FaultProxy> = (0..20)
        .map(|_| runtime.block_on(FaultProxy::start(registry.host(), |_| ProxyFault::Pass)))
        .collect();
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("config.json"), r#"{"auths":{},"own":1}"#).unwrap();
    let started: Vec<Child> = hosts
        .iter()
        .map(|host| {
            let mut login = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
            login
                .args(["login", &host.host(), "--username", USER])
                .args(["--password-stdin", "--plain-credentials"])
                .env("DOCKER_CONFIG", home.path())
                .env("HOME", home.path())
                .stdin(Stdio::piped());
            let mut child = start(&mut login);
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(PASSWORD.as_bytes()).unwrap();
            child
        })
        .collect();
    for child in started {
        end(child);
    }
    let config = fs::read(home.path().join("config.json")).unwrap();
    let config: Value = serde_json::from_slice(&config).unwrap();
    let kept = config["auths"].as_object().unwrap();
    let kept: BTreeSet<String> = kept.keys().cloned().collect();
    assert_eq!(kept, hosts.iter().map(FaultProxy::host).collect());
    assert_eq!(config["own"], 1);
}

#[test(multi_thread)]
async fn indexes_of_one_base_at_once_are_one() {
    const VERSION: &str = "10.0.17763.973";
    let site = Site::new();
    let docker = DockerRegistry::plain();
    let base = format!("{}/base:{VERSION}", docker.host());
    let bottom = bottom_layer(&made_system("%SystemRoot%"), &made_software());
    let image = image_of(VERSION, vec![bottom.tar()]);
    let repository = repository(options(&docker.host()), &base);
    image
        .put(
            &Sink::Registry(repository.clone().for_push()),
            Some(VERSION),
        )
        .await;
    let running = [0, 1, 2].map(|_| {
        let cache = tempfile::tempdir().unwrap();
        let mut command = site.command(&["base", "index", &base, "--push"]);
        command.env("XDG_CACHE_HOME", cache.path());
        (start(&mut command), cache)
    });
    for (child, _cache) in running {
        end(child);
    }
    // Docker's registry has no referrers: an index under a tag lists them.
    let digest = image.image.digest().to_string().replace(':', "-");
    let listed = repository.get_manifest(&digest).await.unwrap();
    let listed: Value = serde_json::from_slice(&listed.bytes).unwrap();
    assert_eq!(listed["manifests"].as_array().unwrap().len(), 1, "{listed}");
}

/// The builds of one list share an index, which each of them completes; so do runs of one shard,
/// which have one cache, too.
#[test]
fn fleets_at_once_publish_one_index_of_whole_images() {
    let site = crate::fleet::site();
    for shard in [&[][..], &["--shard", "0/1"]] {
        site.write("web/site/index.html", shard.concat());
        let running = [0, 1, 2].map(|_| {
            let cache = tempfile::tempdir().unwrap();
            let words = ["fleet", "build", "fleet.toml", "--nodes", "nodes.json"];
            let mut command = site.command(&words);
            command.args(shard);
            if shard.is_empty() {
                command.env("XDG_CACHE_HOME", cache.path());
            }
            (start(&mut command), cache)
        });
        for (child, _cache) in running {
            end(child);
        }
        crate::fleet::command(&site, "check", &[]).assert().code(0);
        for image in ["pause:3.9", "web:1"] {
            let place = format!("{}/apps/{image}", site.host());
            let inspect = ["inspect", &place, "--layers", "all", "--format", "json"];
            let inspected = run_and_check(site.command(&inspect));
            assert!(inspected.status.success(), "{image}: {inspected:?}");
            let inspected: Value = serde_json::from_slice(&inspected.stdout).unwrap();
            let versions = each(&inspected["images"], "os_version");
            assert_eq!(versions.len(), 2, "{inspected}");
            assert_ne!(versions[0], versions[1]);
        }
    }
}

#[test]
fn entries_of_one_lock_file_that_are_written_at_once_are_all_kept() {
    let (site, server) = (Site::new(), FileServer::start());
    let urls: Vec<String> = (0..8).map(|it| server.url(&format!("/{it}.exe"))).collect();
    let running: Vec<Child> = urls
        .iter()
        .enumerate()
        .map(|(number, url)| {
            server.put(&format!("/{number}.exe"), format!("program {number}"));
            let recipe = format!("./app/{number}.toml");
            site.write(
                &recipe,
                format!("name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nurl = \"{url}\"\nto = 'C:\\app\\'\n"),
            );
            let mut build = site.command(&["build", &recipe, "--update-lock"]);
            build
                .args(["--base-registry", &format!("{}/mcr", site.host())])
                .args(["--insecure-registry", &server.host()])
                .args(["--host-build", "17763.973"])
                .args(["--output", &format!("oci:out-{number}")]);
            start(&mut build)
        })
        .collect();
    for child in running {
        end(child);
    }
    let lock = site.text("app/wincimg.lock");
    let kept: BTreeSet<&str> = lock.split('"').filter(|it| it.contains("://")).collect();
    assert_eq!(kept, urls.iter().map(String::as_str).collect(), "{lock}");
}

/// The files in a cache, without those that other versions have for themselves.
fn cached(site: &Site) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![site.path("cache")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|it| it != "v9") {
                found.push(path);
            }
        }
    }
    found
}

/// A version of the program from the future on the same cache, before and during the runs.
#[test]
fn another_version_on_the_same_cache_changes_no_result() {
    const VERSION: &str = "10.0.17763.973";
    let site = Site::new();
    recipe(&site, 4 << 20);
    let bottom = bottom_layer(&made_system("%SystemRoot%"), &made_software());
    let base = image_of(VERSION, vec![bottom.tar()]);
    site.registry
        .with(|stored| crate::site::add_base(stored, "mcr/windows/nanoserver", VERSION, base));
    let reference = format!("{}/mcr/windows/nanoserver:{VERSION}", site.host());
    let run = || {
        let _ = fs::remove_dir_all(site.path("out"));
        let mut build = build_into_layout(&site);
        end(start(build.args(["--cache-dir", "cache"])));
        let mut printed = Vec::new();
        for words in [
            &["digest", "oci:out:1"][..],
            &["base", "show", &reference, "--path", r"C:\Windows"],
            &["hotfix", "resolve", "17763.1158"],
        ] {
            let mut command = site.command(words);
            command.args(["--cache-dir", "cache"]);
            printed.push(end(start(&mut command)).stdout);
        }
        printed
    };
    let expected = run();
    assert_eq!(run(), expected);
    let files = cached(&site);
    assert!(files.len() > 2, "{files:?}");

    site.write("cache/windows-updates.tsv", "9\tfrom the future\n");
    let of_others = ["format.v9", "bases/a.v9", "layers/a.v9", "documents/a.v9"];
    for name in of_others {
        site.write(&format!("cache/{name}"), name);
    }
    let future = std::time::SystemTime::now() + Duration::from_hours(24 * 365);
    let changes: [fn(&mut Vec<u8>); 4] = [
        |_| (),
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| bytes.clear(),
        |bytes| bytes.iter_mut().skip(12).take(4).for_each(|byte| *byte = 9),
    ];
    for change in changes {
        for path in &files {
            let Ok(mut bytes) = fs::read(path) else {
                continue;
            };
            change(&mut bytes);
            fs::write(path, bytes).unwrap();
            let file = fs::File::options().append(true).open(path).unwrap();
            file.set_modified(future).unwrap();
        }
        assert_eq!(run(), expected);
    }

    // It replaces files by its own as this one does, while this one runs.
    std::thread::scope(|scope| {
        let (ended, ends) = std::sync::mpsc::channel::<()>();
        let files = &files;
        scope.spawn(move || {
            while ends.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                for path in files {
                    let draft = path.with_extension("v9");
                    fs::write(&draft, "wincimg-base\u{9}\0\0\0 of another version").unwrap();
                    fs::rename(&draft, path).unwrap();
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        for _ in 0..2 {
            assert_eq!(run(), expected);
        }
        drop(ended);
    });
    for name in of_others {
        assert_eq!(site.text(&format!("cache/{name}")), name);
    }
}

fn recipe(site: &Site, bytes: usize) {
    site.write(
        "own/recipe.toml",
        "name = \"own\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\app'\n",
    );
    site.write("own/files/noise", noise(bytes, 3));
}

fn build_into_layout(site: &Site) -> Command {
    let mut command = site.command(&["build", "own", "--host-build", "17763.973"]);
    command
        .args(["--base-registry", &format!("{}/mcr", site.host())])
        .args(["--output", "oci:out", "--tag", "1"]);
    command
}

/// The digest of the image in the layout, if it is there.
fn digest(site: &Site) -> Option<Vec<u8>> {
    let output = run_and_check(site.command(&["digest", "oci:out:1"]));
    output.status.success().then_some(output.stdout)
}

/// The index of the layout and the names of its blobs, which are their digests.
fn layout(site: &Site) -> (String, BTreeSet<String>) {
    let blobs = fs::read_dir(site.path("out/blobs/sha256")).unwrap();
    let names = blobs.map(|blob| {
        let path = blob.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(sha256(&fs::read(&path).unwrap()).digest(), name);
        name
    });
    (site.text("out/index.json"), names.collect())
}

/// Kills a build at every moment of its run: a layout is whole or has no such tag, and the next
/// build completes it.
#[test]
fn a_build_that_is_killed_at_any_moment_leaves_no_half_image() {
    let site = Site::new();
    recipe(&site, 4 << 20);
    // With a warm cache, as each run after it has.
    let started = Instant::now();
    end(start(&mut build_into_layout(&site)));
    let whole = started.elapsed();
    let expected = digest(&site).unwrap();
    let built = layout(&site);
    let (mut absent, mut complete) = (0, 0);
    for step in 0..12 {
        fs::remove_dir_all(site.path("out")).unwrap();
        let mut child = start(&mut build_into_layout(&site));
        // It may have ended, and the last one does.
        if step < 11 {
            std::thread::sleep(whole * step / 10);
            let _ = child.kill();
        }
        child.wait().unwrap();
        if digest(&site).is_some_and(|found| found == expected) {
            complete += 1;
            let inspect = site.command(&["inspect", "oci:out:1", "--registry", "--layers", "all"]);
            assert!(run_and_check(inspect).status.success(), "step {step}");
        } else {
            absent += 1;
        }
        end(start(&mut build_into_layout(&site)));
        assert_eq!(layout(&site), built, "step {step}");
    }
    assert!(
        absent > 0 && complete > 0,
        "{absent} absent, {complete} complete"
    );
}

/// What a run does to files, in order.
#[derive(Debug)]
enum Step {
    /// Bytes go to an open file, with this number of an unnamed one or its name.
    Write(String),
    /// A file's bytes or a folder's names are on disk.
    Sync(String),
    /// A file gets a name.
    Name { file: String, name: PathBuf },
    /// A folder is made.
    Folder(PathBuf),
}

/// The file that an argument of strace shows: `5</tmp/x>` or `5</tmp/#12 (deleted)>`.
fn shown(argument: &str) -> Option<String> {
    let (_, rest) = argument.split_once('<')?;
    let (path, _) = rest.split_once('>')?;
    Some(path.trim_end_matches(" (deleted)").to_owned())
}

/// Joins the halves of calls that other threads interrupted, without the numbers of threads.
fn whole_calls(trace: &str) -> Vec<String> {
    let mut pending = BTreeMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        if let Some(begun) = call.strip_suffix("<unfinished ...>") {
            pending.insert(thread, begun.to_owned());
        } else if let Some((_, rest)) = call.split_once("resumed>") {
            let begun = pending.remove(thread).unwrap_or_default();
            calls.push(begun + rest);
        } else {
            calls.push(call.to_owned());
        }
    }
    calls
}

/// Reads the output of `strace -f -y`.
fn steps(trace: &str, folder: &Path) -> Vec<Step> {
    let mut open = BTreeMap::new();
    let mut found = Vec::new();
    let texts = |text: &str| -> Vec<String> {
        let odd = text.split('"').skip(1).step_by(2);
        odd.map(str::to_owned).collect()
    };
    for call in whole_calls(trace) {
        let Some((name, rest)) = call.split_once('(') else {
            continue;
        };
        let Some((arguments, result)) = rest.rsplit_once(" = ") else {
            continue;
        };
        if result.starts_with("-1 ") {
            continue;
        }
        match name {
            "copy_file_range" => {
                let to = arguments.split(", ").nth(2).unwrap_or_default();
                found.extend(shown(to).map(Step::Write));
            }
            "write" | "pwrite64" | "writev" | "sendfile" | "ftruncate" => {
                found.extend(shown(arguments).map(Step::Write));
            }
            "fsync" | "fdatasync" => found.extend(shown(arguments).map(Step::Sync)),
            "openat" => {
                let number = result.split('<').next().unwrap_or_default().to_owned();
                open.extend(shown(result).map(|file| (number, file)));
            }
            "mkdir" | "mkdirat" => {
                let path = texts(arguments).pop().unwrap_or_default();
                found.push(Step::Folder(folder.join(path)));
            }
            _ => {
                let paths = texts(arguments);
                let [from, to] = paths.as_slice() else {
                    continue;
                };
                let number = from.strip_prefix("/proc/self/fd/");
                let file = number.and_then(|number| open.get(number).cloned());
                let file = file.unwrap_or_else(|| folder.join(from).display().to_string());
                let name = folder.join(to);
                found.push(Step::Name { file, name });
            }
        }
    }
    found
}

/// A file system that keeps only what was synced: the names of files whose bytes or own names a
/// power cut would take, at the end of the run.
fn lost(steps: &[Step], below: &Path) -> Vec<String> {
    let mut unwritten = BTreeSet::new();
    let mut unnamed: BTreeSet<PathBuf> = BTreeSet::new();
    let mut problems = Vec::new();
    for step in steps {
        match step {
            Step::Write(file) => {
                unwritten.insert(file.clone());
            }
            Step::Sync(file) => {
                unwritten.remove(file);
                unnamed.retain(|name| name.parent() != Some(Path::new(file)));
            }
            Step::Folder(name) => {
                if name.starts_with(below) {
                    unnamed.insert(name.clone());
                }
            }
            Step::Name { file, name } => {
                unnamed.remove(Path::new(file));
                if !name.starts_with(below) {
                    continue;
                }
                if unwritten.contains(file) {
                    problems.push(format!("{} is named before its bytes", name.display()));
                }
                // The index names blobs, which must be there before.
                if name.ends_with("index.json") {
                    let blobs = unnamed
                        .iter()
                        .filter(|it| it.starts_with(below.join("blobs")));
                    problems.extend(blobs.map(|it| format!("{} after the index", it.display())));
                }
                unnamed.insert(name.clone());
            }
        }
    }
    problems.extend(
        unnamed
            .iter()
            .map(|name| format!("{} may be lost", name.display())),
    );
    problems
}

#[test]
fn a_model_of_a_power_cut_tells_what_is_lost() {
    let trace = "1 mkdir(\"out\", 0777) = 0\n\
        1 openat(AT_FDCWD</w>, \"out\", O_RDWR|O_TMPFILE, 0666) = 5</w/out/#7 (deleted)>\n\
        1 write(5</w/out/#7 (deleted)>, \"\", 3) = 3\n\
        1 linkat(AT_FDCWD</w>, \"/proc/self/fd/5\", AT_FDCWD</w>, \"out/a\", AT_SYMLINK_FOLLOW) = 0\n";
    let all = lost(&steps(trace, Path::new("/w")), Path::new("/w/out"));
    let expected = [
        "/w/out/a is named before its bytes",
        "/w/out may be lost",
        "/w/out/a may be lost",
    ];
    assert_eq!(all, expected);
    let good = trace.replace("1 linkat", "1 fsync(5</w/out/#7 (deleted)>) = 0\n1 linkat")
        + "1 fsync(6</w/out>) = 0\n1 fsync(6</w>) = 0\n";
    assert_eq!(
        lost(&steps(&good, Path::new("/w")), Path::new("/w/out")),
        [""; 0]
    );
}

/// The build under strace, which writes `trace`.
fn traced(site: &Site, options: &[&str]) -> Command {
    let mut strace = Command::new(component("strace"));
    strace.args(["-f", "-qq", "-o", "trace"]).args(options);
    run_by(strace, &build_into_layout(site))
}

#[test]
fn a_power_cut_after_a_build_takes_nothing_of_its_layout() {
    let site = Site::new();
    recipe(&site, 1 << 18);
    let calls = "trace=openat,write,pwrite64,writev,copy_file_range,sendfile,ftruncate,fsync,fdatasync,\
                 mkdir,mkdirat,linkat,rename,renameat,renameat2";
    let mut traced = traced(&site, &["-y", "-s", "4096", "-e", calls]);
    end(start(&mut traced));
    let folder = site.folder.path().canonicalize().unwrap();
    let trace = String::from_utf8_lossy(&fs::read(site.path("trace")).unwrap()).into_owned();
    let steps = steps(&trace, &folder);
    let named =
        |step: &&Step| matches!(step, Step::Name { name, .. } if name.ends_with("index.json"));
    assert!(
        steps.iter().any(|step| named(&step)),
        "the trace has no index"
    );
    assert_eq!(lost(&steps, &folder.join("out")), [""; 0]);
}

/// NFS without its lock service, and NFS for a file that is open for reading alone.
#[test]
fn where_a_file_system_has_no_locks_a_layout_is_written() {
    for error in ["ENOLCK", "EBADF", "EOPNOTSUPP"] {
        let site = Site::new();
        recipe(&site, 1 << 18);
        let inject = format!("inject=flock:error={error}");
        let mut traced = traced(&site, &["-e", "trace=flock", "-e", &inject]);
        end(start(&mut traced));
        assert!(site.text("trace").contains("(INJECTED)"), "{error}");
        assert!(digest(&site).is_some(), "{error}");
    }
}

/// NFS gives an exclusive lock only on a file that is open for writing.
#[test]
fn a_layout_is_locked_by_a_file_that_is_open_for_writing() {
    let site = Site::new();
    recipe(&site, 1 << 18);
    end(start(&mut traced(
        &site,
        &["-y", "-e", "trace=openat,flock"],
    )));
    let trace = site.text("trace");
    let marker = "oci-layout\"";
    let opened = trace.lines().rfind(|line| line.contains(marker));
    assert!(opened.is_some_and(|it| it.contains("O_RDWR")), "{trace}");
    let locked = |line: &str| line.contains("flock(") && line.contains("/oci-layout>");
    assert!(trace.lines().any(locked), "{trace}");
}

/// Kills a build at each call that makes, names or syncs what it writes.
#[test]
fn a_build_that_is_killed_at_a_call_leaves_no_half_image() {
    let site = Site::new();
    recipe(&site, 1 << 18);
    end(start(&mut build_into_layout(&site)));
    let expected = digest(&site).unwrap();
    let built = layout(&site);
    for call in ["mkdir", "fsync", "linkat", "renameat"] {
        let mut kills = 0;
        // Each thread counts its own calls.
        for step in 1..10 {
            fs::remove_dir_all(site.path("out")).unwrap();
            let trace = format!("trace={call}");
            let inject = format!("inject={call}:signal=KILL:when={step}");
            let mut traced = traced(&site, &["-e", &trace, "-e", &inject]);
            traced.output().unwrap();
            if !site.text("trace").contains("killed by SIGKILL") {
                break;
            }
            kills += 1;
            if let Some(found) = digest(&site) {
                assert_eq!(found, expected, "{call} {step}");
                let all = ["inspect", "oci:out:1", "--registry", "--layers", "all"];
                let inspected = run_and_check(site.command(&all));
                assert!(inspected.status.success(), "{call} {step}");
            }
            end(start(&mut build_into_layout(&site)));
            assert_eq!(layout(&site), built, "{call} {step}");
        }
        assert!(kills > 0, "{call}");
    }
}

#[test]
fn a_disk_that_cannot_sync_is_no_success() {
    for error in ["EIO", "ENOSPC"] {
        let site = Site::new();
        recipe(&site, 1 << 18);
        let inject = format!("inject=fsync,fdatasync:error={error}");
        let mut traced = traced(&site, &["-e", "trace=fsync,fdatasync", "-e", &inject]);
        let output = traced.output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{error}: {output:?}");
        assert_eq!(digest(&site), None, "{error}");
    }
}

#[test]
fn a_cache_on_a_full_disk_costs_only_time() {
    let site = Site::new();
    recipe(&site, 1 << 18);
    let full = site.path("full");
    fs::create_dir(&full).unwrap();
    let mut mount = Command::new(component("mount"));
    let mount = mount
        .args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"])
        .arg(&full);
    if !mount.output().unwrap().status.success() {
        wincimg_testkit::harness::skip("the right to mount");
    }
    let mut build = build_into_layout(&site);
    build.args(["--cache-dir", "full"]);
    let output = run_and_check(build);
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        let unmounted = Command::new("umount").arg(&full).output().unwrap();
        if unmounted.status.success() {
            break;
        }
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
}
