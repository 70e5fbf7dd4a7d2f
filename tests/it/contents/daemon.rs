//! Images of a Docker daemon: of a real one for Linux, and of a replayed one for Windows.

use wincimg_testkit::dockerd::Dockerd;
use wincimg_testkit::layout::{blob_in, json_in};
use wincimg_testkit::windows_daemon::WindowsDaemon;

use super::*;

impl Images {
    /// The image of a layout as an archive.
    fn archive(&self, name: &str, saved_as: &str) -> PathBuf {
        let file = self.path(&format!("{name}.tar"));
        let target = format!("docker-archive:{}:{saved_as}", file.display());
        run(&mut self.command(&["copy", &format!("oci:{name}"), &target]));
        file
    }
}

#[test(multi_thread = 2)]
async fn an_image_of_a_windows_daemon_is_read_as_one_of_a_layout() {
    let images = tokio::task::spawn_blocking(versions).await.unwrap();
    let saved = fs::read(images.archive("one", "apps/web:1.4")).unwrap();
    let windows = WindowsDaemon::start();
    windows.script(|script| script.saved = saved);
    let host = windows.host();
    let of_daemon = |arguments: &[&str]| {
        let mut command = images.command(arguments);
        command.args(["--docker-host", &host, "--format", "json"]);
        let output = run(&mut command);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let name = "docker-daemon:apps/web:1.4";
    let listed = of_daemon(&["ls", name, r"C:\app", "--recursive"]);
    let expected = images.json(&["ls", "oci:one", r"C:\app", "--recursive"]);
    assert_eq!(listed["reference"], name);
    assert_eq!(
        (&listed["digest"], &listed["entries"]),
        (&expected["digest"], &expected["entries"])
    );
    assert!(!rows(&listed).is_empty());
    let different = of_daemon(&["diff", name, "oci:one"]);
    assert_eq!(different["identical"], true, "{different}");
    of_daemon(&["cp", &format!(r"{name}:C:\app\big.bin"), "out"]);
    let copied = BTreeMap::from([("big.bin".to_owned(), vec![0; 5000])]);
    assert_eq!(files_in(&images.path("out")), copied);
    let inspected = of_daemon(&["inspect", name]);
    assert_eq!(inspected["reference"], name);

    let asked = windows.asked("/images/get");
    assert_eq!(asked.len(), 4);
    assert!(asked.iter().all(|it| it.query["names"] == "apps/web:1.4"));
}

#[test]
fn a_real_daemon_exports_the_image_that_it_loaded() {
    let daemon = Dockerd::start();
    let images = Images::new();
    let mut stand_in = StandIn::new(ManifestFormat::Docker, "10.0.17763.973", &[(5_000, 1)]);
    // A daemon on Linux cannot load Windows images.
    stand_in.image = stand_in
        .image
        .edit_config(|config| config.os = "linux".to_owned())
        .unwrap();
    images.put("linux", &stand_in);
    let file = images.archive("linux", "app:1.4");
    daemon.must(&["load", "--input", file.to_str().unwrap()]);

    let told = |arguments: &[&str], code: i32| {
        let mut command = images.command(arguments);
        command.args(["--docker-host", &daemon.host()]).tells(code)
    };
    told(&["copy", "docker-daemon:app:1.4", "oci:back"], 0);
    let index = json_in(&images.path("back/index.json"));
    let entry = &index["manifests"][0];
    assert_eq!(
        entry["annotations"]["org.opencontainers.image.ref.name"],
        "1.4"
    );
    let manifest = json_in(&blob_in(&images.path("back"), &entry["digest"]));
    assert_eq!(
        manifest["config"]["digest"],
        stand_in.image.config().digest().to_string()
    );

    let errors = told(&["ls", "docker-daemon:app:1.4"], 2);
    assert_contains!(errors, "docker-daemon:app:1.4 is for linux/amd64");
    let errors = told(&["ls", "docker-daemon:none:1"], 3);
    assert_contains!(errors, "none:1");
}

#[test]
fn a_daemon_that_does_not_run_is_reported_with_what_to_do() {
    let images = Images::new();
    let mut command = images.command(&["ls", "docker-daemon:app:1"]);
    let errors = command
        .args(["--docker-host", "unix:///nowhere/docker.sock"])
        .tells(3);
    assert_contains!(errors, "start the daemon");
}
