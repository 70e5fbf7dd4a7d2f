//! Rights of files and folders, and certificates.

use std::fs;
use std::process::Command;

use wincimg_registry::security::SecurityDescriptor;
use wincimg_testkit::component;
use wincimg_testkit::test_bases::{FILE, image_of};

use super::{BASE, Bench, base_layer, files_of};
use crate::base_permissions::{DATA, entries_of};
use crate::inside::VERSION;

#[test(multi_thread)]
async fn rights_reach_what_earlier_lines_made() {
    // Content of the Dockerfile itself is known; the base need not be.
    for bench in [Bench::new().await, Bench::new().await.indexed()] {
        let layers = bench.layers(
            r#"COPY a.txt C:/new/in/
RUN icacls C:\new /grant:r "Users:(OI)(CI)(RX,W)" "NETWORK SERVICE:R" /T"#,
        );
        let files = files_of(&layers[1]);
        assert_eq!(files["Files/new/in/a.txt"], b"a.txt");
        let found = entries_of(&layers[1]);
        let granted = |path: &str| {
            let (security, _) = &found[path];
            let descriptor: SecurityDescriptor = security.as_ref().unwrap().parse().unwrap();
            let list = descriptor.dacl.unwrap().entries.into_iter();
            let own = list.filter(|entry| {
                let sid = entry.sid.to_string();
                ["BU", "NS"].contains(&sid.as_str()) || sid.ends_with("-545")
            });
            own.map(|entry| (entry.flags, entry.mask))
                .collect::<Vec<_>>()
        };
        let (users, network) = (0x12_00A9 | 0x10_0116, 0x12_0089);
        for path in ["Files/new", "Files/new/in"] {
            let entries = granted(path);
            assert!(entries.contains(&(3, users)), "{path}: {entries:x?}");
            assert!(entries.contains(&(0, network)), "{path}: {entries:x?}");
        }
        let entries = granted("Files/new/in/a.txt");
        assert!(entries.contains(&(0, users)), "{entries:x?}");
        assert!(entries.contains(&(0x10, users)), "{entries:x?}");
    }
    let bench = Bench::new().await.indexed();
    for (line, value) in [
        (r"icacls C:\data /grant Nobody:F", "\"Nobody\""),
        (r"icacls C:\data /grant Users:D", "\"D\""),
        (r"icacls C:\ /grant Users:F", "icacls: "),
    ] {
        bench
            .refused(&format!("RUN {line}"))
            .is("dockerfile/not-understood", &[value])
            .names(&["Dockerfile:3: ", "icacls: "]);
    }
}

#[test(multi_thread)]
async fn alternate_data_streams_of_the_base_are_no_files() {
    let mut layer = base_layer();
    layer
        .folder("Files/Windows/d", Some(DATA))
        .file("Files/Windows/d/own.txt", b"x", Some(FILE))
        .file("Files/Windows/d/own.txt:Zone", b"[Zone]", Some(FILE));
    let base = image_of(VERSION, vec![layer.tar()]);
    let change = format!("FROM {BASE}\nRUN icacls C:\\Windows\\d /grant \"Users:(OI)(CI)M\"\n");
    let of_stage = format!("FROM {BASE} AS one\nFROM {BASE}\nCOPY --from=one");
    for (text, copied) in [
        (change, "Files/Windows/d/own.txt"),
        (
            format!("{of_stage} C:/Windows/d C:/two\n"),
            "Files/two/own.txt",
        ),
        (
            format!("{of_stage} C:/Windows/d/own.txt C:/two/\n"),
            "Files/two/own.txt",
        ),
    ] {
        let bench = Bench::on(&base).await.indexed();
        bench
            .build_file(&format!("# escape=`\n{text}"))
            .success()
            .stderr(predicates::str::contains(r"C:\Windows\d\own.txt:Zone"));
        let files = files_of(bench.built().last().unwrap());
        assert_eq!(files[copied], b"x", "{text}");
        assert!(!files.keys().any(|path| path.contains(':')), "{files:?}");
    }
}

#[test(multi_thread)]
async fn rights_move_with_what_a_line_moves() {
    let bench = Bench::new().await.indexed();
    for (line, path) in [
        (
            r#"mkdir C:\a && icacls C:\a /grant "Users:(OI)(CI)M" && ren C:\a b"#,
            "b",
        ),
        (
            r#"mkdir C:\a\c && icacls C:\a\c /grant "Users:(OI)(CI)M" && move C:\a C:\b"#,
            "b/c",
        ),
        (
            r#"mkdir C:\a && icacls C:\a /grant:r "Users:(OI)(CI)M" && ren C:\a b && ren C:\b c"#,
            "c",
        ),
    ] {
        let layers = bench.layers(&format!("RUN {line}\nCOPY a.txt C:/{path}/"));
        for layer in &layers[..2] {
            let found = entries_of(layer);
            let (security, _) = &found[&format!("Files/{path}")];
            let descriptor: SecurityDescriptor = security.as_ref().unwrap().parse().unwrap();
            let mut entries = descriptor.dacl.unwrap().entries.into_iter();
            let is_granted = entries.any(|entry| (entry.flags, entry.mask) == (3, 0x13_01BF));
            assert!(is_granted, "{line}: {security:?}");
        }
        let files = files_of(&layers[1]);
        assert_eq!(files[&format!("Files/{path}/a.txt")], b"a.txt");
    }
}

#[test(multi_thread)]
async fn a_rename_that_changes_only_the_case_loses_nothing() {
    let bench = Bench::new().await.indexed();
    let layers = bench.layers(
        "RUN ren C:\\inetpub INETPUB&& mkdir C:\\new\\in && ren C:\\new NEW\nRUN ren C:\\NEW New",
    );
    assert_eq!(layers.len(), 1, "the last line changes nothing");
    let found: Vec<String> = entries_of(&layers[0]).into_keys().collect();
    assert!(found.contains(&"Files/NEW/in".to_owned()), "{found:?}");
    assert!(!found.iter().any(|path| path.contains(".wh.")), "{found:?}");
}

#[test(multi_thread)]
async fn what_a_line_of_another_user_makes_belongs_to_it() {
    const USER: &str = "S-1-5-93-2-2";
    for bench in [Bench::new().await, Bench::new().await.indexed()] {
        let layers = bench.layers(
            "USER ContainerUser\nRUN mkdir C:\\u\\v && echo a>C:\\u\\v\\f.txt\nRUN echo b>C:\\u\\v\\f.txt",
        );
        for (layer, path) in [(0, "u"), (0, "u/v"), (0, "u/v/f.txt"), (1, "u/v/f.txt")] {
            let found = entries_of(&layers[layer]);
            let (security, _) = &found[&format!("Files/{path}")];
            let security = security.as_ref().unwrap();
            assert!(
                security.starts_with(&format!("O:{USER}")),
                "{path}: {security}"
            );
            let full = format!("(A;ID;FA;;;{USER})");
            assert!(security.contains(&full), "{path}: {security}");
        }
    }
}

#[test(multi_thread)]
async fn what_windows_needs_stays() {
    let bench = Bench::new().await;
    for line in [
        r"rd /s /q C:\Windows",
        r"del C:\Windows\System32\config\SOFTWARE",
    ] {
        bench
            .refused(&format!("RUN {line}"))
            .names(&["Dockerfile:3: ", "cannot be deleted: Windows needs it"]);
    }
    let copy = "COPY a.txt C:/Windows/System32/config/SOFTWARE";
    let failure = bench.refused(copy);
    failure.names(&["Dockerfile:3: ", "is a file of the registry"]);
    for (line, key) in [
        (
            r"reg delete HKLM\SYSTEM\CurrentControlSet /f",
            r"HKLM\SYSTEM\ControlSet001",
        ),
        (r"reg delete HKLM\SOFTWARE /f", r"HKLM\SOFTWARE"),
    ] {
        bench
            .refused(&format!("RUN {line}"))
            .is("dockerfile/refused", &[&format!("{key} cannot be deleted")])
            .advises(&["delete the keys or values below it"])
            .on_line(3);
    }
    for entry in [
        "[[registry]]\nkey = 'HKLM\\SYSTEM\\CurrentControlSet'\ndelete = true\n",
        "[[registry]]\nkey = 'HKLM\\SOFTWARE\\microsoft'\nmode = \"replace\"\n",
        "[[files]]\ncontent = \"x\"\nto = 'C:\\Windows'\n",
        "[[layers]]\nname = \"one\"\ndeletes = ['C:\\windows\\SYSTEM32']\n",
    ] {
        let recipe = format!("name = \"app\"\nbase = \"nanoserver\"\n{entry}");
        let done = bench.build_recipe(&recipe, &[]).failure();
        let printed = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert_contains!(printed, "indows needs");
    }
}

#[test(multi_thread)]
async fn a_layer_of_a_recipe_deletes_a_value_of_a_base_that_is_read() {
    let bench = Bench::new().await;
    let recipe = "name = \"app\"\nbase = \"nanoserver\"\nlook_inside = true\n[[layers]]\nname = \"one\"\n\
        [[registry]]\nlayer = \"one\"\nkey = 'HKLM\\SOFTWARE\\Acme'\ndelete_values = [\"x\"]\n";
    let done = bench.build_recipe(recipe, &[]);
    let printed = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(!printed.contains("if the base may lack"), "{printed}");
}

#[test(multi_thread)]
async fn certificates_come_in_every_form_that_windows_reads() {
    let bench = Bench::new().await;
    let openssl = component("openssl");
    let folder = bench.machine.0.path().join("app");
    let run = |arguments: &str| {
        let mut command = Command::new(&openssl);
        command.current_dir(&folder).args(arguments.split(' '));
        assert!(command.output().unwrap().status.success(), "{arguments}");
    };
    run(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout /dev/null -out ca.pem -subj /CN=Lab -days 30",
    );
    run("x509 -in ca.pem -outform DER -out ca.cer");
    run("crl2pkcs7 -nocrl -certfile ca.pem -outform DER -out ca.p7b");
    let pem = fs::read_to_string(folder.join("ca.pem")).unwrap();
    let lines = pem.lines().filter(|line| !line.starts_with('-'));
    bench.write("base64.cer", lines.collect::<Vec<_>>().join("\r\n"));
    bench.write("two.pem", format!("{pem}{pem}"));
    let mut blobs = Vec::new();
    for file in ["ca.pem", "ca.cer", "ca.p7b", "base64.cer"] {
        let layers = bench.layers(&format!(
            "COPY {file} C:/c/\nRUN certutil -addstore -f Root C:\\c\\{file}\n\
             SHELL [\"powershell\", \"-Command\"]\n\
             RUN Import-Certificate -FilePath C:\\c\\{file} -CertStoreLocation Cert:\\LocalMachine\\Root"
        ));
        // In the second layer, the keys above the certificate exist.
        blobs.push([1, 2].map(|layer| files_of(&layers[layer])["Hives/Software_Delta"].clone()));
    }
    assert!(blobs.iter().all(|blob| *blob == blobs[0]));
    let twice = "COPY two.pem C:/c/\nRUN certutil -addstore Root C:\\c\\two.pem";
    let failure = bench
        .refused(twice)
        .is("dockerfile/not-understood", &["two.pem"]);
    assert!(!failure.hint.is_empty(), "{failure:#?}");
}

#[test(multi_thread)]
async fn recipes_do_not_lose_what_moved_files_keep() {
    let bench = Bench::new().await;
    let reported = bench.conversion(
        1,
        r"COPY a.txt C:\in\
RUN del /q C:\inetpub\wwwroot\*
RUN move C:\in\a.txt C:\a.txt",
    );
    let first = reported.lines().next().unwrap();
    assert!(first.starts_with("./app/Dockerfile:5: "), "{reported}");
    assert_contains!(first, r"C:\a.txt", r"C:\in\a.txt");
    // A recipe grants, and does nothing else to rights.
    let reported = bench.conversion(1, r"RUN mkdir C:\d && icacls C:\d /deny Users:W");
    assert!(reported.starts_with("./app/Dockerfile:3: "), "{reported}");
}
