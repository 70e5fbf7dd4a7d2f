//! What the base and the line decide of a package.

use wincimg_testkit::transform::Cell;

use super::{
    ACTION, HEAD, SERVER, SOURCE, bench_with, make, make_of, make_searching, transform,
    write_conditional,
};
use crate::run_lines::{Bench, files_of};

#[test(multi_thread)]
async fn what_the_base_decides_is_read_before_a_package_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let line = r"COPY a.msi C:/
RUN msiexec /i C:\a.msi /qn";
    let condition = "<Condition Message='Needs Windows'>FOUND</Condition>";
    let action = |condition: &str| ACTION.replace("NOT Installed", condition);
    for more in [condition, &action("NOT FOUND")] {
        for is_indexed in [false, true] {
            let bench = Bench::new().await;
            let bench = if is_indexed { bench.indexed() } else { bench };
            bench.write("a.msi", make_searching(folder.path(), more));
            let files = files_of(&bench.layers(line)[1]);
            assert!(files.contains_key(SERVER));
        }
    }
    let bench = Bench::new().await;
    for (more, code, value) in [
        (
            condition.replace("FOUND", "NOT FOUND"),
            "dockerfile/fails",
            "Needs Windows",
        ),
        (action("FOUND"), "dockerfile/needs-windows", "Configure"),
    ] {
        bench.write("a.msi", make_searching(folder.path(), &more));
        let failure = bench.refused(line);
        assert!(failure.stderr.contains(value), "{failure:#?}");
        failure.is(code, &[]);
    }
}

#[test(multi_thread)]
async fn what_only_windows_can_install_is_named() {
    let bench = bench_with(ACTION).await;
    bench.write("b.msi", "not a package");
    let mut dialogs = transform();
    dialogs.add_table("Dialog", &[("Dialog", 0x2D48)]);
    dialogs.add("Dialog", &[Cell::Text("Welcome")]);
    bench.write("ui.mst", dialogs.bytes());
    let quiet = "SHELL [\"powershell\", \"-Command\"]\n";
    for (instructions, code, value) in [
        (
            r"RUN msiexec /i C:\a.msi /qn",
            "dockerfile/needs-windows",
            "Configure",
        ),
        (
            r"RUN msiexec /i C:\a.msi",
            "dockerfile/needs-windows",
            "Configure",
        ),
        (
            "COPY ui.mst C:/\nRUN msiexec /i C:\\a.msi TRANSFORMS=C:\\ui.mst",
            "dockerfile/refused",
            "without /qn it opens a window and waits for it",
        ),
        (
            r"RUN msiexec /i C:\b.msi /qn",
            "dockerfile/refused",
            "not a whole package",
        ),
        (
            r"RUN msiexec /i C:\c.msi /qn",
            "dockerfile/fails",
            r"C:\c.msi",
        ),
        (
            &format!(r"{quiet}RUN msiexec /i C:\a.msi /qn"),
            "dockerfile/refused",
            "does not wait",
        ),
        (
            &format!(r"{quiet}RUN Start-Process msiexec -ArgumentList '/i C:\a.msi /qn'"),
            "dockerfile/refused",
            "does not wait",
        ),
        (
            r#"RUN msiexec /i C:\a.msi /qn "DIR=C:\a b""#,
            "dockerfile/fails",
            r#"1639): write DIR="C:\a b""#,
        ),
        (
            r#"RUN ["msiexec", "/i", "C:\\a.msi", "/qn", "DIR=C:\\a b"]"#,
            "dockerfile/fails",
            r#"1639): write DIR="C:\a b", in the shell form"#,
        ),
        (
            r#"RUN ["msiexec", "/i", "C:\\a.msi", "/qn", "DIR=\"C:\\a b\""]"#,
            "dockerfile/not-understood",
            r#"write NAME="VALUE" without it, in the shell form"#,
        ),
        (
            "USER ContainerUser\nRUN msiexec /i C:\\a.msi /qn",
            "dockerfile/fails",
            "ContainerUser",
        ),
    ] {
        let failure = bench.refused(&format!("COPY a.msi b.msi C:/\n{instructions}"));
        assert!(failure.stderr.contains(value), "{failure:#?}");
        failure.is(code, &[]);
    }
}

#[test(multi_thread)]
async fn a_product_is_installed_once() {
    const CODE: &str = "30000000-0000-0000-0000-000000000001";
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", make(folder.path(), ""));
    let other = SOURCE.replace(CODE, "30000000-0000-0000-0000-000000000002");
    let other = make_of(folder.path(), &other.replace("ACTION", ""));
    bench.write("b.msi", other);
    let install = r"COPY a.msi b.msi C:/
RUN msiexec /i C:\a.msi /qn";
    let again = format!(r"{install} && msiexec /i C:\a.msi /qn");
    let done = bench.build_lines(&again, &[]).success();
    let printed = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert_contains!(printed, "Contoso Server is already installed: nothing");
    assert!(files_of(&bench.built()[1]).contains_key(SERVER));
    for (line, code, value) in [
        (r"msiexec /i C:\b.msi /qn", "dockerfile/fails", "1638"),
        (
            r"msiexec /i C:\a.msi /qn REMOVE=Complete",
            "dockerfile/not-understood",
            "REMOVE changes",
        ),
    ] {
        bench
            .refused(&format!("{install}\nRUN {line}"))
            .is(code, &[value]);
    }
    let entries = "[[msi]]\nfile = \"a.msi\"\n[[msi]]\nfile = \"b.msi\"\n";
    bench
        .recipe_refused(&format!("{HEAD}{entries}"))
        .is("recipe/msi", &["1638"]);
}

#[test(multi_thread)]
async fn a_log_exists_and_only_windows_writes_it() {
    let bench = bench_with("").await;
    let install = r"COPY a.msi C:/
RUN msiexec /i C:\a.msi /qn /l*v C:\i.log && type C:\i.log";
    let more = r"RUN powershell Get-Content C:\i.log
RUN del C:\i.log";
    let layers = bench.layers(&format!("{install}\n{more}"));
    let files = files_of(&layers[1]);
    assert!(files.contains_key(SERVER));
    assert!(!files.contains_key("Files/i.log"));
    for (line, code, value) in [
        (
            r"type C:\i.log > C:\o.log",
            "dockerfile/needs-windows",
            r"log C:\i.log",
        ),
        (
            r"copy C:\i.log C:\o.log",
            "dockerfile/needs-windows",
            r"log C:\i.log",
        ),
        (
            r"del C:\i.log && type C:\i.log",
            "dockerfile/fails",
            "not found",
        ),
    ] {
        bench
            .refused(&format!("{install}\nRUN {line}"))
            .is(code, &[value]);
    }
}

#[test(multi_thread)]
async fn a_line_may_handle_the_exit_code_of_a_package() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().await.indexed();
    write_conditional(folder.path(), &|name, bytes| bench.write(name, bytes));
    let shell = "SHELL [\"powershell\", \"-Command\"]\n";
    let start = "$p = Start-Process msiexec -Wait -PassThru -ArgumentList";
    for (instructions, is_installed) in [
        (
            r"RUN msiexec /i C:\needs.msi /qn || echo a> C:\x.txt".to_owned(),
            false,
        ),
        (
            format!(
                "{shell}RUN {start} '/i C:\\restart.msi /qn /norestart'; \
                 if ($p.ExitCode -eq 3010) {{ Set-Content C:\\x.txt a }}"
            ),
            true,
        ),
    ] {
        let layers = bench.layers(&format!("COPY *.msi C:/\n{instructions}"));
        let files = files_of(&layers[1]);
        assert!(files.contains_key("Files/x.txt"), "{instructions}");
        let server = files.get(SERVER);
        assert_eq!(server.is_some(), is_installed, "{instructions}");
    }
    for (instructions, code, value) in [
        (
            r"RUN msiexec /i C:\needs.msi /qn".to_owned(),
            "dockerfile/fails",
            "Needs X",
        ),
        (
            r"RUN msiexec /i C:\restart.msi /qn".to_owned(),
            "dockerfile/fails",
            "1641",
        ),
        (
            format!(
                "{shell}RUN Start-Process msiexec -Wait -ArgumentList '/i C:\\needs.msi /qn'; \
                 Write-Host done"
            ),
            "dockerfile/refused",
            "Needs X",
        ),
    ] {
        bench
            .refused(&format!("COPY *.msi C:/\n{instructions}"))
            .is(code, &[value]);
    }
}
