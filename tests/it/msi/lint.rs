//! What `lint` says of a package.

use predicates::str::contains;

use super::{ACTION, HEAD, SOURCE, lint, make, make_of, make_searching, write_conditional};
use crate::run_lines::{Bench, key_of};
use crate::site::{wincimg, write};

#[test]
fn lint_knows_that_a_package_fails() {
    let folder = tempfile::tempdir().unwrap();
    let context = folder.path().join("context");
    write_conditional(folder.path(), &|name, bytes| {
        write(&context, name, bytes);
    });
    for (line, found) in [
        (r"msiexec /i C:\needs.msi /qn", "failing-run Needs X"),
        (r#"msiexec /i C:\needs.msi /qn NEEDX="1""#, ""),
        (r"msiexec /i C:\needs.msi /qn || echo a", ""),
        (
            r"msiexec /i C:\needs.msi /qn NEEDX=1 ADDLOCAL=No",
            "failing-run \"No\"",
        ),
        (
            r"msiexec /i C:\restart.msi /qn REBOOT=Force",
            "refused-package REBOOT=Force",
        ),
    ] {
        let base = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\nCOPY *.msi C:/\n";
        write(&context, "Dockerfile", format!("{base}RUN {line}\n"));
        let findings = lint(folder.path(), &["failing-run", "refused-package"]);
        let Some((rule, text)) = found.split_once(' ') else {
            assert!(findings.is_empty(), "{line}");
            continue;
        };
        assert_eq!(findings[0]["rule"], rule, "{line}");
        let message = findings[0]["message"].as_str().unwrap();
        assert_contains!(message, text);
    }
}

#[test]
fn lint_names_the_action_that_stops_a_build() {
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), ACTION);
    let context = folder.path().join("context");
    let write = |name: &str, content: &[u8]| write(&context, name, content);
    write("a.msi", &package);
    write("setup/own.msi", &make(folder.path(), ""));
    write("setup/A.msi", &package);
    write("hidden/a.msi", &package);
    let unless_found = ACTION.replace("NOT Installed", "NOT FOUND");
    let searching = make_searching(folder.path(), &unless_found);
    write("search/a.msi", &searching);
    write(".dockerignore", b"hidden");
    let outside = folder.path().join("a.msi");
    let inside = folder.path().join("context/outside.msi");
    std::os::unix::fs::symlink(outside, inside).unwrap();
    let refused = |instructions: &str| {
        let base = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\n";
        write("Dockerfile", format!("{base}{instructions}\n").as_bytes());
        let findings = lint(folder.path(), &["refused-package"]);
        let messages = findings.iter().map(|it| {
            assert_eq!(it["severity"], "note");
            it["message"].as_str().unwrap().to_owned()
        });
        messages.collect::<Vec<_>>()
    };
    let quiet = "SHELL [\"powershell\", \"-Command\"]\n";
    for found in [
        r"COPY a.msi C:/
RUN msiexec /i C:\a.msi /qn",
        r"WORKDIR C:/in
COPY . .
RUN msiexec /qn /i setup\a.msi",
        r"COPY *.msi C:/in/
RUN msiexec /i C:\in\a.msi /qn",
        r#"COPY a.msi C:/b.msi
RUN ["msiexec", "/i", "C:\\b.msi", "/qn"]"#,
        &format!(
            "{quiet}COPY setup C:/\nRUN Start-Process msiexec -ArgumentList '/i','C:\\a.msi','/qn' -Wait"
        ),
    ] {
        let messages = refused(found);
        let [message] = messages.as_slice() else {
            panic!("{found}: {messages:?}");
        };
        assert_contains!(
            message,
            "Configure (type 3090) runs",
            "--configure",
            "--skip-custom-action Configure",
        );
    }
    for nothing in [
        r"COPY setup/own.msi C:/a.msi
RUN msiexec /i C:\a.msi /qn",
        r"COPY search C:/
RUN msiexec /i C:\a.msi /qn",
        r"COPY a.msi C:/
RUN msiexec /i C:\b.msi /qn",
        r"COPY a.msi C:/
RUN msiexec /x C:\a.msi /qn",
        r"COPY a.msi C:/
RUN del C:\a.msi",
        r"COPY hidden C:/
RUN msiexec /i C:\a.msi /qn",
        r"COPY outside.msi C:/
RUN msiexec /i C:\outside.msi /qn",
        r"COPY --from=x a.msi C:/
RUN msiexec /i C:\a.msi /qn",
        r"COPY a.msi C:/
# wincimg: ignore=refused-package a daemon builds it
RUN msiexec /i C:\a.msi /qn",
    ] {
        assert_eq!(refused(nothing), Vec::<String>::new(), "{nothing}");
    }
}

#[test(multi_thread)]
async fn a_feature_that_the_package_does_not_have_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", make(folder.path(), ""));
    let named = r#"the feature "complete"; the package has Complete"#;
    for (property, code, value) in [
        ("ADDLOCAL=Complete,complete", "dockerfile/fails", named),
        ("REMOVE=complete", "dockerfile/fails", named),
        ("REMOVE=all", "dockerfile/not-understood", "REMOVE=ALL"),
    ] {
        let line = format!(r"RUN msiexec /i C:\a.msi /qn {property}");
        bench
            .refused(&format!("COPY a.msi C:/\n{line}"))
            .is(code, &[value]);
        let mut inspect = wincimg(folder.path(), &["inspect", "a.msi", property]);
        inspect.assert().failure().stderr(contains(value));
    }
    let entry = format!("{HEAD}[[msi]]\nfile = \"a.msi\"\nfeatures = [\"complete\"]\n");
    bench
        .recipe_refused(&entry)
        .is("recipe/msi", &[named, "use a base"]);
}

#[test(multi_thread)]
async fn a_text_of_a_package_may_have_brackets_and_variables() {
    let text = |value: &str| {
        let setting = "Name='Dir' Type='string' Value='[INSTALLDIR]'";
        let own = format!("Name='Dir' Type='string' Value='{value}'");
        SOURCE.replace(setting, &own).replace("ACTION", "")
    };
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().await.indexed();
    let line = "ENV LIGHT=bright\nRUN setx /M SHADE dark\nCOPY a.msi C:/\n\
                RUN msiexec /i C:\\a.msi /qn";
    let value = r"[\[]x[\]y] [\~] [%comspec] [%Light] [%SHADE] {[\]]}{[%NONE]none}";
    bench.write("a.msi", make_of(folder.path(), &text(value)));
    let layers = bench.layers(line);
    let key = key_of(&layers[2], "Software_Delta", r"\Contoso");
    let written = r#""Dir"="[x] ~ C:\\Windows\\system32\\cmd.exe bright dark ]""#;
    assert_eq!(key, [written]);
    // No image records the variables of a user, or what Windows says of the machine.
    let launch = "<Condition Message='small'>PhysicalMemory &gt;= 64</Condition><Media";
    for (source, unknown) in [
        (text("[%Temp]"), "the variable TEMP"),
        (text("[ScreenX]"), "the property ScreenX"),
        (
            text("x").replacen("<Media", launch, 1),
            "the property PhysicalMemory",
        ),
    ] {
        bench.write("a.msi", make_of(folder.path(), &source));
        bench
            .refused(line)
            .is("dockerfile/not-known", &[unknown, "with ENV"]);
    }
}
