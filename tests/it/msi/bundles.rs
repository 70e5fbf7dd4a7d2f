//! Bundles, and installers that are programs.

use std::fs;
use std::path::Path;

use predicates::str::contains;
use wincimg_testkit::cabinet::cabinet;
use wincimg_testkit::harness::skip_always;

use super::{HEAD, make, program};
use crate::run_lines::{Bench, files_of, key_of};
use crate::site::wincimg;

/// A `WiX` bundle with these packages in its chain, signed or not.
fn bundle(chain: &str, package: &[u8], signature: u32) -> Vec<u8> {
    const STUB: u32 = 0x400;
    let manifest = format!(
        "<BurnManifest><Payload Id='p' FilePath='in.msi' Packaging='embedded' SourcePath='a0' \
         Container='WixAttachedContainer'/><UX><Payload FilePath='wixstdba.dll'/></UX>\
         <Chain>{chain}</Chain></BurnManifest>"
    );
    let first = cabinet(&[("0", manifest.as_bytes()), ("u0", b"a window")]);
    let attached = cabinet(&[("a0", package)]);
    let mut bytes = program(b".wixburn");
    // The section is in the file from here on.
    bytes[0x178 + 20..0x178 + 24].copy_from_slice(&0x200_u32.to_le_bytes());
    let size = u32::try_from(first.len()).unwrap();
    let end = STUB + size;
    let signed_at = if signature == 0 { 0 } else { end };
    let attached_size = u32::try_from(attached.len()).unwrap();
    for (at, number) in [
        (0, 0x00f1_4300),
        (24, STUB),
        (32, signed_at),
        (36, signature),
        (40, 1),
        (44, 2),
        (48, size),
        (52, attached_size),
    ] {
        bytes[0x200 + at..0x204 + at].copy_from_slice(&number.to_le_bytes());
    }
    bytes.extend(first);
    bytes.extend(vec![7; signature as usize]);
    bytes.extend(attached);
    bytes
}

#[test]
fn inspect_takes_no_installer_for_an_image() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, expected) in [
        (
            "Setup.exe",
            bundle("", b"", 0),
            "is a WiX bundle (Burn), not a package",
        ),
        (
            "tool.exe",
            b"MZ and more".to_vec(),
            "tool.exe is a program, not a package (.msi)",
        ),
        (
            "Own.msm",
            b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1".to_vec(),
            "it is not a package",
        ),
    ] {
        fs::write(folder.path().join(name), bytes).unwrap();
        let done = wincimg(folder.path(), &["inspect", name]).assert();
        done.failure().stderr(contains(expected));
    }
}

#[test(multi_thread)]
async fn a_bundle_of_one_package_installs_it() {
    const ONE: &str = "<MsiPackage Id='A'><MsiProperty Id='INSTALLDIR' Value='C:\\own'/>\
                       <PayloadRef Id='p'/></MsiPackage>";
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), "");
    let bench = Bench::new().await.indexed();
    for signature in [0, 100] {
        bench.write("setup.exe", bundle(ONE, &package, signature));
        for line in [
            r"RUN C:\setup.exe /quiet /norestart",
            "SHELL [\"powershell\", \"-Command\"]\n\
             RUN Start-Process C:\\setup.exe -ArgumentList '/install','/quiet' -Wait",
        ] {
            let layers = bench.layers(&format!("COPY setup.exe C:/\n{line}"));
            let files = files_of(&layers[1]);
            assert_eq!(files["Files/own/server.exe"], b"a server\n", "{line}");
            let key = key_of(&layers[1], "Software_Delta", r"\Contoso");
            assert_eq!(key, [r#""Dir"="C:\\own\\""#]);
        }
    }
    // Parts for an older Windows are left out.
    let parts = "<MsuPackage Id='U' InstallCondition='VersionNT = v6.1'/>";
    bench.write("setup.exe", bundle(&format!("{parts}{ONE}"), &package, 0));
    let layers = bench.layers("COPY setup.exe C:/\nRUN C:\\setup.exe /quiet");
    assert_eq!(files_of(&layers[1])["Files/own/server.exe"], b"a server\n");
    let two = format!("{ONE}<ExePackage Id='Redist'/>");
    bench.write("two.exe", bundle(&two, &package, 0));
    let whole = bundle(ONE, &package, 0);
    bench.write("cut.exe", &whole[..whole.len() - 1]);
    for (line, code, value) in [
        (
            r"C:\two.exe /quiet",
            "dockerfile/needs-windows",
            "Redist, which is no MSI",
        ),
        (
            r"C:\cut.exe /quiet",
            "dockerfile/refused",
            "ends before the packages",
        ),
        (
            r"C:\setup.exe",
            "dockerfile/needs-windows",
            "does not run programs",
        ),
        (
            r"C:\setup.exe /quiet /layout",
            "dockerfile/not-understood",
            "/layout",
        ),
    ] {
        bench
            .refused(&format!("COPY *.exe C:/\nRUN {line}"))
            .is(code, &[value]);
    }
}

#[test(multi_thread)]
async fn an_installer_that_is_a_program_is_named() {
    let bench = Bench::new().await.indexed();
    bench.write("bundle.exe", program(b".wixburn"));
    let mut nsis = program(b".text");
    nsis.extend(b"\0\0\0\0\xEF\xBE\xAD\xDENullsoftInst");
    bench.write("setup.exe", nsis);
    bench.write("own.exe", program(b".text"));
    for (line, what, help) in [
        (r"C:\bundle.exe /quiet", "another header", "dark -x"),
        (r"C:\setup /S", "an NSIS installer", "the zip"),
        (
            r"C:\own.exe /S", "does not run programs", "the vendor's zip",
        ),
    ] {
        let text = format!("COPY bundle.exe setup.exe own.exe C:/\nRUN {line}");
        bench
            .refused(&text)
            .is("dockerfile/needs-windows", &[what, help]);
    }
}

const RUNTIME: &str = "msvc_runtime-14.44.35112-cp311-cp311-win_amd64.whl";

#[test(multi_thread)]
async fn a_runtime_is_pinned_by_the_table() {
    let bench = Bench::new().await.indexed();
    let text = format!("{HEAD}runtimes = [\"vcruntime-14\"]\n");
    for (content, problem) in [(None, "No such file"), (Some("another"), "has the digest")] {
        if let Some(content) = content {
            bench.write(RUNTIME, content);
        }
        bench
            .recipe_refused(&text)
            .is("recipe/invalid", &[RUNTIME, problem, "pip download"]);
    }
}

/// The real archive is Microsoft's, and not part of the project.
#[test(multi_thread)]
async fn a_runtime_is_installed_from_its_archive() {
    let Some(real) = std::env::var_os("WINCIMG_RUNTIMES") else {
        skip_always("a folder of Microsoft's archives (WINCIMG_RUNTIMES)")
    };
    let bench = Bench::new().await.indexed();
    bench.write(RUNTIME, fs::read(Path::new(&real).join(RUNTIME)).unwrap());
    let recipe = format!("{HEAD}runtimes = [\"vcruntime-14\"]\n");
    let done = bench.build_recipe(&recipe, &[]).success();
    let printed = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert_contains!(printed, "is under: Microsoft");
    let layer = &bench.built()[0];
    let files = files_of(layer);
    let libraries = files.keys().filter(|name| name.contains(".dll"));
    assert_eq!(libraries.count(), 12);
    assert!(files["Files/Windows/System32/vcruntime140.dll"].starts_with(b"MZ"));
    let key = r"\Microsoft\VisualStudio\14.0\VC\Runtimes\X64";
    let values = key_of(layer, "Software_Delta", key);
    assert!(
        values.contains(&"\"Bld\"=dword:00008928".to_owned()),
        "{values:?}"
    );
}
