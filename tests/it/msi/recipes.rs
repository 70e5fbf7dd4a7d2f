//! Packages of recipes, and transforms.

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use wincimg_registry::RegistryData;
use wincimg_testkit::file_server::FileServer;
use wincimg_testkit::test_bases::{ENVIRONMENT, image_of, set, upper_layer};

use super::{ACTION, HEAD, SERVER, SOURCE, bench_with, make, make_of, round_trip, transform};
use crate::base_permissions::layer_with_data;
use crate::failure::Failure;
use crate::inside::VERSION;
use crate::run_lines::{Bench, files_of, key_of};
use crate::site::zip_of;

/// The contents of the documents in a layout that name something.
fn documents_with(layout: &Path, text: &str) -> Vec<String> {
    let blobs = fs::read_dir(layout.join("blobs/sha256")).unwrap();
    let blobs = blobs.filter_map(|blob| fs::read_to_string(blob.unwrap().path()).ok());
    blobs.filter(|blob| blob.contains(text)).collect()
}

#[test(multi_thread)]
async fn a_recipe_installs_a_package_like_a_dockerfile() {
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), ACTION);
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", &package);
    let refused = bench.build_recipe(&format!("{HEAD}[[msi]]\nfile = \"a.msi\"\n"), &[]);
    let printed = String::from_utf8_lossy(&refused.failure().get_output().stderr).into_owned();
    let named = "Configure (type 3090) runs C:\\Program Files\\Contoso\\server.exe --configure, if \
                 NOT Installed requires Windows";
    for text in [named, "skip_custom_actions = [\"Configure\"]"] {
        assert_contains!(printed, text);
    }
    let entry = "[[msi]]\nfile = \"a.msi\"\nskip_custom_actions = [\"Configure\"]\n\
                 properties = { installdir = 'C:\\own' }\n\
                 [[msi]]\nfile = \"b.msi\"\nextract = true\n\
                 [[files]]\nfrom = \"a.txt\"\nto = 'C:\\own\\a.txt'\n";
    bench.write("b.msi", &package);
    let documents = ["--sbom", "spdx", "--sbom", "cyclonedx"];
    let misspelt = entry.replace("[\"Configure\"]", "[\"Configure\", \"Typo\"]");
    bench
        .recipe_refused(&format!("{HEAD}{misspelt}"))
        .is("recipe/msi", &["\"Typo\", an action"]);
    let done = bench.build_recipe(&format!("{HEAD}{entry}"), &documents);
    let done = done.success();
    let printed = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert_contains!(
        printed,
        "a.msi: custom action Configure is skipped as requested",
        "b.msi: files only, without ",
        "the service ContosoSvc, the action Configure"
    );
    let layers = bench.built();
    assert_eq!(layers.len(), 3);
    let files = files_of(&layers[0]);
    assert_eq!(files["Files/own/server.exe"], b"a server\n");
    assert!(
        files
            .keys()
            .any(|name| name.starts_with("Files/Windows/Installer/"))
    );
    let key = |key: &str| key_of(&layers[0], "Software_Delta", key);
    assert_eq!(key(r"\Contoso"), [r#""Dir"="C:\\own\\""#]);
    // The second has the files alone.
    let files = files_of(&layers[1]);
    assert_eq!(files[SERVER], b"a server\n");
    assert!(!files.keys().any(|name| name.contains("Installer")));
    let purl = "pkg:generic/Contoso%20Server@1.2.3?product_code=%7B10000000-0000-0000-0000-000000000001%7D";
    assert_eq!(documents_with(&bench.layout(), purl).len(), 2);
}

#[test(multi_thread)]
async fn a_package_needs_windows_installer_unless_only_its_files_are_added() {
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), "");
    let bench = Bench::without_programs().await.indexed();
    bench.write("a.msi", &package);
    let entry = format!("{HEAD}[[msi]]\nfile = \"a.msi\"\n");
    bench
        .recipe_refused(&entry)
        .is("recipe/msi", &["no Windows Installer"])
        .names(&["a.msi"]);
    bench
        .build_recipe(&format!("{entry}extract = true\n"), &[])
        .success();
    let files = files_of(&bench.built()[0]);
    assert_eq!(files[SERVER], b"a server\n");
}

#[test(multi_thread)]
async fn conditions_of_a_package_of_which_only_the_files_are_added_know_the_processor() {
    let folder = tempfile::tempdir().unwrap();
    let name = "PROCESSOR_ARCHITECTURE";
    let processor = upper_layer(&[set(ENVIRONMENT, name, RegistryData::sz("AMD64"))]);
    let base = image_of(VERSION, vec![layer_with_data("16").tar(), processor.tar()]);
    let bench = Bench::on(&base).await.indexed();
    let entry = format!("{HEAD}[[msi]]\nfile = \"a.msi\"\nextract = true\n");
    let requires = |condition: &str| {
        let condition = format!("<Condition Message='x'>{condition}</Condition>");
        bench.write("a.msi", make(folder.path(), &condition));
        bench.build_recipe(&entry, &["--format", "json"])
    };
    requires(&format!("%{name} = \"AMD64\"")).success();
    // Only Windows knows who installs it.
    let refused = requires("USERNAME");
    Failure::of(refused.failure().get_output())
        .is("recipe/msi", &["USERNAME"])
        .advises(&["[[run]]"]);
}

#[test(multi_thread)]
async fn a_package_is_downloaded_and_pinned_as_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), "");
    let server = FileServer::start();
    server.put("/a.msi", package);
    let bench = Bench::new().await.indexed();
    let url = server.url("/a.msi");
    let entry = format!("{HEAD}[[msi]]\nurl = \"{url}\"\nfeatures = [\"Complete\"]\n");
    bench
        .recipe_refused(&entry)
        .is("download/not-pinned", &[&url]);
    bench.build_recipe(&entry, &["--update-lock"]).success();
    // The lock file pins it now.
    bench.build_recipe(&entry, &[]).success();
    let files = files_of(&bench.built()[0]);
    assert_eq!(files[SERVER], b"a server\n");
}

#[test(multi_thread)]
async fn a_line_that_installs_a_package_becomes_an_entry_of_a_recipe() {
    let bench = bench_with("").await;
    let recipe =
        bench.convert("COPY a.msi C:/temp/\nRUN msiexec /i C:\\temp\\a.msi /qn INSTALLDIR=C:\\own");
    let expected = "[[msi]]\nlayer = \"run-4\"\nfile = \"a.msi\"\nsource = 'C:\\temp'\n\
                    [msi.properties]\nINSTALLDIR = 'C:\\own'\n";
    assert_contains!(recipe, expected);
    assert!(!recipe.contains("[[registry]]"), "{recipe}");
    bench.build_recipe(&recipe, &[]).success();
    let files = files_of(&bench.built()[1]);
    assert_eq!(files["Files/own/server.exe"], b"a server\n");
}

#[test(multi_thread)]
async fn a_line_that_does_more_than_install_becomes_a_recipe() {
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), "");
    transform().add_to(&folder.path().join("a.msi"), "own");
    let inside = fs::read(folder.path().join("a.msi")).unwrap();
    let server = FileServer::start();
    server.put("/a.msi", package.clone());
    let url = server.url("/a.msi");
    let digest = hex::encode(Sha256::digest(&package));
    let archive = zip_of(&[("t-1/bin/t.exe", "program")]);
    let archive_digest = hex::encode(Sha256::digest(&archive));
    server.put("/t.zip", archive);
    let archive_url = format!(
        "--checksum=sha256:{archive_digest} {}",
        server.url("/t.zip")
    );
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", &package);
    bench.write("b.msi", &inside);
    let other = SOURCE.replace(
        "0-0000-0000-0000-000000000001",
        "0-0000-0000-0000-000000000002",
    );
    let other = other.replace("Contoso", "Fabrikam").replace("ACTION", "");
    bench.write("other.msi", make_of(folder.path(), &other));
    bench.write("own.mst", transform().bytes());
    for (instructions, parts) in [
        (
            "COPY a.msi other.msi C:/\nRUN msiexec /i C:\\a.msi /qn && msiexec /i C:\\other.msi /qn".to_owned(),
            &["file = \"a.msi\"\n\n[[msi]]\nlayer = \"run-4\"\nfile = \"other.msi\"\n"][..],
        ),
        (
            "COPY a.msi C:/in/\nRUN msiexec /i C:\\in\\a.msi /qn ADDLOCAL=Complete INSTALLDIR=C:\\own && \
             del C:\\in\\a.msi && echo x> C:\\own\\x.txt&& reg add HKLM\\SOFTWARE\\Own /v A /d 1 /f"
                .to_owned(),
            &["deletes = ['C:\\in\\a.msi']", "features = [\"Complete\"]", "to = 'C:\\own\\x.txt'"],
        ),
        (
            "COPY a.msi own.mst C:/in/\nRUN msiexec /i C:\\in\\a.msi /qn TRANSFORMS=C:\\in\\own.mst".to_owned(),
            &["file = \"a.msi\"", "transforms = [\"own.mst\"]"],
        ),
        (
            "COPY b.msi C:/\nRUN msiexec /i C:\\b.msi /qn TRANSFORMS=:own".to_owned(),
            &["transforms = [\":own\"]"],
        ),
        (
            format!("ADD --checksum=sha256:{digest} {url} C:/in/\nRUN msiexec /i C:\\in\\a.msi /qn"),
            &["[[msi]]\nlayer = \"run-4\"\nurl = ", "sha256 = "],
        ),
        (
            format!("SHELL [\"powershell\", \"-Command\"]\nADD {archive_url} C:/in/\nRUN Expand-Archive C:\\in\\t.zip -DestinationPath C:\\two; Remove-Item C:\\in\\t.zip"),
            &["\nunpack = true\nto = 'C:\\two'\n", "\nurl = ", "\nsha256 = "],
        ),
    ] {
        let recipe = round_trip(&bench, &instructions);
        assert!(!recipe.contains("ContosoSvc") && !recipe.contains("OwnSvc"), "{recipe}");
        for part in parts {
            assert!(recipe.contains(part), "{part}: {recipe}");
        }
    }
}

#[test(multi_thread)]
async fn a_transform_changes_the_package() {
    let bench = bench_with("").await;
    bench.write("own.mst", transform().bytes());
    let line = r"RUN msiexec /i C:\in\a.msi /qn TRANSFORMS=own.mst";
    let layers = bench.layers(&format!("COPY a.msi own.mst C:/in/\n{line}"));
    let service = key_of(
        &layers[1],
        "System_Delta",
        r"\ControlSet001\Services\OwnSvc",
    );
    assert!(!service.is_empty());
    let product = r"\Classes\Installer\Products\00000001000000000000000000000010";
    let listed = key_of(&layers[1], "Software_Delta", product);
    assert!(
        listed.iter().any(|it| it.starts_with("\"Transforms\"=")),
        "{listed:?}"
    );
    let copy = "Files/Windows/Installer/{10000000-0000-0000-0000-000000000001}/own.mst";
    assert_eq!(files_of(&layers[1])[copy], transform().bytes());
    bench
        .refused(&format!("COPY a.msi C:/in/\n{line}"))
        .is("dockerfile/fails", &[r"C:\in\own.mst"]);
    let mut other = transform();
    other.revision.replace_range(..2, "{2");
    bench.write("own.mst", other.bytes());
    bench
        .refused(&format!("COPY a.msi own.mst C:/in/\n{line}"))
        .is("dockerfile/fails", &["for the product {2"]);
}
