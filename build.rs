//! Finds the commit for `--version`. For Windows it gives the executable its version and its manifest.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rustc-env=WINCIMG_VERSION={}", version());
    let of_target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}"));
    match (of_target("OS")?.as_str(), of_target("ENV")?.as_str()) {
        ("windows", "gnu") => {
            // The same source gives the same bytes.
            println!("cargo:rustc-link-arg-bins=-Wl,--no-insert-timestamp");
            // As much as Linux gives the first thread; Windows' own 1 MiB is soon used up.
            println!("cargo:rustc-link-arg-bins=-Wl,--stack,8388608");
            resources(&out)?;
        }
        // Tests start it thousands of times: nothing to relocate takes a quarter off each start.
        ("linux", "gnu") if env::var("PROFILE")? == "debug" => {
            println!("cargo:rustc-link-arg-bins=-no-pie");
        }
        _ => {}
    }
    Ok(())
}

/// Compiles what Windows reads of an executable before it runs it, where there is a compiler for that;
/// without one the program works all the same, but for paths of more than 260 characters.
fn resources(out: &Path) -> Result<(), Box<dyn Error>> {
    let manifest = "packaging/wincimg.exe.manifest";
    println!("cargo:rerun-if-changed={manifest}");
    let version = env!("CARGO_PKG_VERSION");
    // A preview has the numbers of its release.
    let numbers = version.split(['-', '+']).next().unwrap_or(version);
    let numbers = numbers.replace('.', ",") + ",0";
    let mut script = format!("1 24 {manifest:?}\n1 VERSIONINFO\n");
    writeln!(script, "FILEVERSION {numbers}\nPRODUCTVERSION {numbers}")?;
    script += "FILEOS 0x40004\nFILETYPE 1\nBEGIN\nBLOCK \"StringFileInfo\" BEGIN BLOCK \"040904b0\" BEGIN\n";
    for (name, value) in [
        ("FileDescription", env!("CARGO_PKG_DESCRIPTION")),
        ("FileVersion", version),
        ("InternalName", "wincimg"),
        ("LegalCopyright", env!("CARGO_PKG_LICENSE")),
        ("OriginalFilename", "wincimg.exe"),
        ("ProductName", "wincimg"),
        ("ProductVersion", version),
    ] {
        writeln!(script, "VALUE {name:?}, {value:?}")?;
    }
    script += "END END\nBLOCK \"VarFileInfo\" BEGIN VALUE \"Translation\", 0x409, 1200 END\nEND\n";
    let (source, object) = (out.join("wincimg.rc"), out.join("wincimg-resources.o"));
    fs::write(&source, script)?;
    let compiler = format!("{}-w64-mingw32-windres", env::var("CARGO_CFG_TARGET_ARCH")?);
    let done = [compiler.as_str(), "windres"].iter().any(|compiler| {
        let status = Command::new(compiler)
            .args(["--output-format=coff", "-o"])
            .arg(&object)
            .arg(&source)
            .status();
        status.is_ok_and(|status| status.success())
    });
    if done {
        println!("cargo:rustc-link-arg-bins={}", object.display());
    } else {
        println!("cargo:warning=no windres: wincimg.exe will have no manifest");
    }
    Ok(())
}

fn version() -> String {
    println!("cargo:rerun-if-env-changed=WINCIMG_COMMIT");
    for path in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", path]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    let commit = env::var("WINCIMG_COMMIT")
        .ok()
        .or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
