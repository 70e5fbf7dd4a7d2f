//! Comparison of the direct engine with `BuildKit` on the same recipes, configuration and files
//! entry by entry; every difference is listed here with its reason.
//!
//! `BuildKit` builds the output of `wincimg recipe render`, for Windows, on this machine. It cannot run
//! Windows programs here, so the `RUN` lines are omitted, and with them hives and IIS settings.
//! Debian has no package of it: skipped unless installed.
// Prints the comparison: `cargo test --test it buildkit -- --nocapture`.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, fs};

use serde_json::Value;
use wincimg_oci::document::{
    BASE_DIGEST, BASE_NAME, CREATED, Document, Index, ManifestFormat, Verbatim,
};
use wincimg_testkit::buildkitd::Buildkitd;
use wincimg_testkit::harness::skip_always;
use wincimg_testkit::layout::{config_in, entries_in, layers_in};
use wincimg_testkit::test_bases::{gzip, tar_of};
use wincimg_testkit::windows_base::StandIn;

use crate::site::{Site, json_of};

const OF_WORKING_DIRS: Allowed = Allowed {
    what: "config WorkingDir",
    is: |direct, buildkit| direct.strip_prefix("\"C:") == buildkit.strip_prefix('"'),
    reason: "BuildKit leaves the drive out; Windows takes both for C:",
};

const OF_MARKS: Allowed = Allowed {
    what: "config ArgsEscaped",
    is: |direct, buildkit| (direct, buildkit) == ("-", "true"),
    reason: "BuildKit marks every CMD as ready; Docker's builder for Windows does not",
};

const OF_WINDOWS: &str = "BuildKit gives folders of Windows the rights of others";

/// Known differences with their reasons. Each must occur.
const ALLOWED: [Allowed; 10] = [
    OF_WORKING_DIRS,
    OF_MARKS,
    Allowed {
        what: "descriptor of Files/Windows*",
        is: |direct, buildkit| !direct.is_empty() && direct != buildkit,
        reason: OF_WINDOWS,
    },
    Allowed {
        what: "descriptor of Files/inetpub*",
        is: |direct, buildkit| !direct.is_empty() && direct != buildkit,
        reason: OF_WINDOWS,
    },
    Allowed {
        what: "descriptor of Files/ProgramData*",
        is: |direct, buildkit| !direct.is_empty() && direct != buildkit,
        reason: OF_WINDOWS,
    },
    Allowed {
        what: "config Env",
        is: |direct, buildkit| {
            direct == r#"["PATH=C:\\own","KEPT=1","NEW=2"]"#
                && buildkit == r#"["Path=C:\\base","KEPT=1","NEW=2","PATH=C:\\own"]"#
        },
        reason: "Windows does not tell Path and PATH apart; BuildKit on Linux does",
    },
    Allowed {
        what: "config Cmd",
        is: |direct, buildkit| (direct, buildkit) == ("[]", "-"),
        reason: "an empty list and none are the same",
    },
    Allowed {
        what: "kind of Files/app/deep/er/link",
        is: |direct, buildkit| (direct, buildkit) == ("Symlink to x.txt", "Symlink to Files/x.txt"),
        reason: "BuildKit puts Files/ before every target, also of a link beside it",
    },
    Allowed {
        what: "attributes of Files/app/deep/er/link",
        is: |direct, buildkit| (direct, buildkit) == ("1056", ""),
        reason: "BuildKit does not say that a link is a reparse point",
    },
    Allowed {
        what: "descriptor of Files/app/deep/er/link",
        is: |direct, buildkit| !direct.is_empty() && buildkit.is_empty(),
        reason: "BuildKit gives links no descriptor",
    },
];

struct Allowed {
    /// With a star at its end, also what begins with it.
    what: &'static str,
    /// Returns true for the known values, of the direct engine and of `BuildKit`.
    is: fn(&str, &str) -> bool,
    reason: &'static str,
}

struct Difference {
    what: String,
    direct: String,
    buildkit: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            direct,
            buildkit,
        } = self;
        write!(f, "{what}: direct {direct}, BuildKit {buildkit}")
    }
}

/// A `BuildKit` daemon that runs until it is dropped.
struct BuildKit(Buildkitd);

impl BuildKit {
    fn start(registry: &str) -> Self {
        Self(Buildkitd::find(registry).unwrap_or_else(|| skip_always("BuildKit in the PATH")))
    }

    /// Builds a folder's Dockerfile into an OCI layout.
    fn build(&self, folder: &Path, layout: &Path) {
        let archive = layout.with_extension("tar");
        let local = |name: &str| format!("{name}={}", folder.display());
        let mut command = self.0.client();
        command
            .args([
                "build", "--progress", "plain", "--frontend", "dockerfile.v0",
            ])
            .args(["--opt", "platform=windows/amd64"])
            .args(["--local", &local("context")])
            .args(["--local", &local("dockerfile")])
            .arg("--output")
            .arg(format!("type=oci,dest={}", archive.display()));
        let output = command.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        let dockerfile = fs::read_to_string(folder.join("Dockerfile")).unwrap();
        assert!(output.status.success(), "{printed}\n{dockerfile}");
        fs::create_dir_all(layout).unwrap();
        let file = fs::File::open(archive).unwrap();
        tar::Archive::new(file).unpack(layout).unwrap();
    }
}

/// An image in a layout: its configuration, and the entries of the layers above its base.
struct Built {
    config: Value,
    entries: BTreeMap<String, LayerEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LayerEntry {
    kind: String,
    content: Vec<u8>,
    attributes: String,
    descriptor: String,
}

fn read(layout: &Path, base_layers: usize) -> Built {
    let mut entries = BTreeMap::new();
    for layer in &layers_in(layout)[base_layers..] {
        for entry in entries_in(layer) {
            let record = |name: &str| entry.records.get(name).cloned().unwrap_or_default();
            let mut kind = format!("{:?}", entry.kind);
            if let Some(target) = &entry.target {
                kind = format!("{kind} to {target}");
            }
            let found = LayerEntry {
                kind,
                attributes: record("MSWINDOWS.fileattr"),
                descriptor: record("MSWINDOWS.rawsd"),
                content: entry.bytes,
            };
            entries.insert(entry.path, found);
        }
    }
    Built {
        config: config_in(layout),
        entries,
    }
}

fn differences(direct: &Built, buildkit: &Built) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut compare = |what: String, direct: String, buildkit: String| {
        if direct != buildkit {
            found.push(Difference {
                what,
                direct,
                buildkit,
            });
        }
    };
    let text = |value: Option<&Value>| value.map_or_else(|| "-".to_owned(), Value::to_string);
    for field in ["architecture", "os", "os.version", "os.features", "variant"] {
        let value = |built: &Built| text(built.config.get(field));
        compare(field.to_owned(), value(direct), value(buildkit));
    }
    // BuildKit records the base and the time in attestations.
    let container = |built: &Built| {
        let mut container = built.config["config"].as_object().unwrap().clone();
        if let Some(Value::Object(labels)) = container.get_mut("Labels") {
            for key in [BASE_NAME, BASE_DIGEST, CREATED] {
                labels.shift_remove(key);
            }
            if labels.is_empty() {
                container.shift_remove("Labels");
            }
        }
        container
    };
    let (ours, theirs) = (container(direct), container(buildkit));
    let mut fields: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
    fields.sort_unstable();
    fields.dedup();
    for field in fields {
        let what = format!("config {field}");
        compare(what, text(ours.get(field)), text(theirs.get(field)));
    }
    let is_file = |path: &&String| path.starts_with("Files") || !path.starts_with("Hives/");
    let paths = direct.entries.keys().chain(buildkit.entries.keys());
    let mut paths: Vec<&String> = paths.filter(is_file).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let (ours, theirs) = (direct.entries.get(path), buildkit.entries.get(path));
        let kind = |entry: Option<&LayerEntry>| entry.map_or("-".to_owned(), |it| it.kind.clone());
        compare(format!("kind of {path}"), kind(ours), kind(theirs));
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            continue;
        };
        let content = |entry: &LayerEntry| String::from_utf8_lossy(&entry.content).into_owned();
        compare(format!("content of {path}"), content(ours), content(theirs));
        let attributes = |entry: &LayerEntry| entry.attributes.clone();
        compare(
            format!("attributes of {path}"),
            attributes(ours),
            attributes(theirs),
        );
        let descriptor = |entry: &LayerEntry| entry.descriptor.clone();
        compare(
            format!("descriptor of {path}"),
            descriptor(ours),
            descriptor(theirs),
        );
    }
    found
}

/// A recipe with everything that a Dockerfile supports without running a program.
const EVERYTHING: &str = r#"
name = "everything"
base = "servercore"
user = "ContainerAdministrator"
working_dir = 'C:\app\inner'
ports = [80, "53/udp"]
entrypoint = ['C:\app\run it.exe', "--name", 'a "b" c\']
cmd = ["serve", ""]
env = { PATH = 'C:\own', NEW = 2 }
labels = { "team" = "a \"b\" $c `d", "empty" = "" }
[[files]]
from = "files"
to = 'C:\app'
[[files]]
content = "made\r\n"
to = 'C:\ProgramData\made.txt'
"#;

/// The page's recipe without the parts that require Windows.
const WEB: &str = r#"
name = "web"
base = "nanoserver"
entrypoint = ['C:\wincimg\shim.exe', "--", 'C:\app\web.exe', "--port", "8080"]
working_dir = 'C:\app'
ports = [8080]
[[files]]
from = "files"
to = 'C:\app'
[[files]]
context = "dist"
to = 'C:\app\static'
[[files]]
embedded = "shim"
to = 'C:\wincimg\shim.exe'
[[registry]]
key = 'HKLM\SOFTWARE\Shop'
values = { Region = "eu", Workers = 4 }
[env]
ASPNETCORE_URLS = "http://+:8080"
"#;

/// A base with a variable, a command and a label of its own.
fn publish_base(site: &Site) {
    let mut base = StandIn::new(
        ManifestFormat::Docker,
        "10.0.17763.973",
        &[(2000, 1), (3000, 2)],
    );
    let edit = base.image.edit_config(|config| {
        let container = &mut config.config;
        container.shell = None;
        container.env = vec!["Path=C:\\base".to_owned(), "KEPT=1".to_owned()];
        container.cmd = Some(vec!["c:\\windows\\system32\\cmd.exe".to_owned()]);
        container
            .labels
            .insert("of".to_owned(), "the base".to_owned());
        container.working_dir = Some("C:\\".to_owned());
    });
    base.image = edit.unwrap();
    site.registry.with(|stored| {
        let repository = "mcr/windows/servercore";
        stored.add_blob(repository, base.image.config().bytes().clone());
        for (_, bytes) in &base.layers {
            stored.add_blob(repository, bytes.clone());
        }
        let manifest = base.image.manifest();
        let digest = base.image.digest().to_string();
        let bytes = manifest.bytes().clone();
        stored.add_manifest(repository, &digest, manifest.media_type(), bytes);
        let index = Index::new(ManifestFormat::Docker, vec![base.image.index_entry()]);
        let index = Document::Index(Verbatim::new(index).unwrap());
        let bytes = index.bytes().clone();
        stored.add_manifest(repository, "10.0.17763.973", index.media_type(), bytes);
    });
}

/// Removes the lines that only Windows can run.
fn without_runs(dockerfile: &str) -> String {
    let needs_windows =
        |line: &&str| line.starts_with("RUN ") || line.starts_with("COPY [\"registry-");
    let lines = dockerfile.lines().filter(|line| !needs_windows(line));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn buildkit_makes_the_same_images_but_for_what_is_known() {
    let site = Site::new();
    let buildkit = BuildKit::start(&site.host());
    publish_base(&site);
    for file in [
        "app/server.exe", "app/lib/a.dll", "site/index.html", "dist/index.html",
    ] {
        site.write(file, file);
    }
    for (recipe, text) in [("everything", EVERYTHING), ("web", WEB)] {
        site.write(&format!("{recipe}/recipe.toml"), text);
        for file in [
            "web.exe", "run it.exe", "deep/er/x.txt", "deep/.hidden", "deep/ü.txt",
        ] {
            site.write(&format!("{recipe}/files/{file}"), file);
        }
        fs::create_dir_all(site.path(&format!("{recipe}/files/empty"))).unwrap();
        std::os::unix::fs::symlink("x.txt", site.path(&format!("{recipe}/files/deep/er/link")))
            .unwrap();
    }
    let mut known = KnownDifferences::new(&ALLOWED);
    for (recipe, layers, settings) in [
        ("pause", 1, &[][..]),
        ("app", 1, &["--set", "program=server.exe"]),
        ("iis", 1, &[]),
        ("./web", 1, &[]),
        ("./everything", 2, &[]),
    ] {
        let name = recipe.trim_start_matches("./");
        let host = ["--host-build", "17763.973"];
        let folder = site.path(&format!("rendered-{name}"));
        let mut command = site.with_bases(&["render", recipe]);
        command
            .args(host)
            .args(settings)
            .arg("--output")
            .arg(&folder);
        command.assert().success();
        let dockerfile = folder.join("Dockerfile");
        let text = without_runs(&fs::read_to_string(&dockerfile).unwrap());
        fs::write(&dockerfile, text).unwrap();
        let layout = site.path(&format!("buildkit-{name}"));
        buildkit.build(&folder, &layout);
        let output = format!("oci:direct-{name}");
        let mut command = site.build(recipe);
        command
            .args(host)
            .args(settings)
            .args(["--output", &output]);
        json_of(&mut command);
        let direct = read(&site.path(&format!("direct-{name}")), layers);
        known.classify(name, differences(&direct, &read(&layout, layers)));
    }
    known.check();
}

/// A Dockerfile with everything that does not require Windows; `BASE` stands for the base.
const DOCKERFILE: &str = r#"# escape=`
ARG VERSION=1.22.3
FROM BASE AS files
WORKDIR /out
COPY dist/ ./static/
COPY app/lib/*.dll lib/

FROM BASE
ARG VERSION
ENV APP_VERSION=${VERSION%.*} MESSAGE="a b" PLAIN=x`$y
ENV OLD the rest
LABEL team="web servers" version=$VERSION
WORKDIR C:\app
COPY app .
COPY app/server.exe renamed.exe
COPY app/server.exe lib
COPY ["site/index.html", "site/other page.html", "pages/"]
COPY --from=files /out/static /app/static
COPY --from=0 C:\out\lib\ lib2\
COPY --exclude=**/*.log logs /logs/
ADD bundle.tar.gz /opt/
ADD bundle.zip /opt/
COPY <<EOF <<'RAW' /app/made/
version $VERSION
EOF
version $VERSION
RAW
EXPOSE 80 53/udp 8000-8002
VOLUME C:/data
USER ContainerUser
WORKDIR inner
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --retries=3 CMD ["C:\\app\\server.exe", "--health"]
ONBUILD COPY . /site
ENTRYPOINT ["C:\\app\\server.exe"]
CMD ["serve"]
"#;

/// Copies between stages, expansion of variables, and destinations of copies.
const STAGES: &str = r#"ARG NAME=app
ARG UNSET
FROM BASE AS first
ARG NAME
ARG KIND=${NAME:-none}-${UNSET:-plain}
ENV A=1 B=${A}2
ENV C=$A$B D="${KIND}" E=${UNSET:+set}
WORKDIR /one
WORKDIR two
COPY app/lib/?.dll app/lib/[b-c].txt ./
COPY dist new/folder
LABEL a.b=c \
  d="e \
f"
SHELL ["powershell", "-Command"]

FROM first AS second
ARG NAME
ENV F=${D}/${NAME}
COPY --from=first /one/ /handed
COPY site .
COPY app/server.exe app/lib/a.dll /x/y/
ENTRYPOINT run --now
CMD ["unused"]

FROM second
LABEL d=other
USER ContainerAdministrator
ENV A=9
COPY --from=second /x/y/a.dll /x/z.dll
COPY . /all/
CMD serve $A
"#;

/// Known differences of Dockerfiles.
const ALLOWED_OF_DOCKERFILES: [Allowed; 4] = [
    OF_WORKING_DIRS,
    OF_MARKS,
    Allowed {
        what: "config Cmd",
        is: |direct, buildkit| {
            direct == r#"["powershell -Command serve $A"]"#
                && buildkit == r#"["powershell","-Command","serve $A"]"#
        },
        reason: OF_LINES,
    },
    Allowed {
        what: "config Entrypoint",
        is: |direct, buildkit| {
            direct == r#"["powershell -Command run --now"]"#
                && buildkit == r#"["powershell","-Command","run --now"]"#
        },
        reason: OF_LINES,
    },
];

const OF_LINES: &str =
    "Docker's builder for Windows makes a line in shell form one ready command line";

#[test]
fn buildkit_makes_the_same_of_dockerfiles_that_run_nothing() {
    let site = Site::new();
    let buildkit = BuildKit::start(&site.host());
    publish_base(&site);
    let base = format!("{}/mcr/windows/servercore:10.0.17763.973", site.host());
    site.write("docker/Dockerfile", DOCKERFILE.replace("BASE", &base));
    for file in [
        "dist/index.html", "dist/deep/er/ü.txt", "app/server.exe", "app/lib/a.dll",
        "app/lib/b.txt", "site/index.html", "site/other page.html", "logs/one.txt",
        "logs/in/two.log", "bundle.zip",
    ] {
        site.write(&format!("docker/{file}"), file);
    }
    fs::create_dir_all(site.path("docker/app/empty")).unwrap();
    let bundle = gzip(&tar_of(&[("in/one.txt", "one")]));
    site.write("docker/bundle.tar.gz", bundle);
    let mut known = KnownDifferences::new(&ALLOWED_OF_DOCKERFILES);
    let mut compared = |name: &str| {
        let (ours, theirs) = (format!("direct-{name}"), format!("buildkit-{name}"));
        let layout = site.path(&theirs);
        buildkit.build(&site.path("docker"), &layout);
        let mut command = site.build("./docker");
        command.args(["--host-build", "17763.973", "--output"]);
        command.arg(format!("oci:{ours}"));
        json_of(&mut command);
        let (direct, buildkit) = (read(&site.path(&ours), 2), read(&layout, 2));
        known.classify(name, differences(&direct, &buildkit));
        (direct, buildkit)
    };
    let (direct, buildkit) = compared("instructions");
    site.write("docker/Dockerfile", STAGES.replace("BASE", &base));
    site.write(
        "docker/.dockerignore",
        "bundle.*\n**/*.log\n!logs/in/two.log\n",
    );
    compared("stages");
    known.check();
    let history = |built: &Built| -> Vec<String> {
        let steps = built.config["history"].as_array().unwrap().iter();
        let texts = steps.filter_map(|step| step["created_by"].as_str());
        texts
            .map(|text| text.replace("C:", "").replace('\\', "/"))
            .collect()
    };
    for (ours, theirs) in history(&direct).iter().zip(history(&buildkit)) {
        println!("{ours}\n{theirs}\n");
    }
}

/// Differences, sorted into known and unknown ones.
struct KnownDifferences {
    allowed: &'static [Allowed],
    met: Vec<bool>,
    unknown: Vec<String>,
}

impl KnownDifferences {
    fn new(allowed: &'static [Allowed]) -> Self {
        Self {
            allowed,
            met: vec![false; allowed.len()],
            unknown: Vec::new(),
        }
    }

    fn classify(&mut self, name: &str, found: Vec<Difference>) {
        for difference in found {
            let known = self.allowed.iter().position(|allowed| {
                let is_meant = match allowed.what.strip_suffix('*') {
                    Some(start) => difference.what.starts_with(start),
                    None => difference.what == allowed.what,
                };
                is_meant && (allowed.is)(&difference.direct, &difference.buildkit)
            });
            match known {
                Some(place) => {
                    self.met[place] = true;
                    println!(
                        "{name}: {difference} (known: {})",
                        self.allowed[place].reason
                    );
                }
                None => self.unknown.push(format!("{name}: {difference}")),
            }
        }
    }

    fn check(&self) {
        assert!(self.unknown.is_empty(), "{}", self.unknown.join("\n"));
        for (allowed, met) in self.allowed.iter().zip(&self.met) {
            assert!(
                met,
                "no longer different: {} ({})",
                allowed.what, allowed.reason
            );
        }
    }
}
