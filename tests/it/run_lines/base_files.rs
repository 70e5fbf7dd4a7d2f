//! Files of the base and of earlier lines.

use wincimg_registry::hive::{Hive, Semantics};
use wincimg_testkit::image_locations::put_at;

use super::{BASE, Bench, OWN, base, files_of, names, printed};
use crate::base_permissions::{DATA, entries_of};
use crate::failure::{Failure, note, says};
use crate::inside::VERSION;
use crate::site::each;

#[test(multi_thread)]
async fn files_of_the_base_are_listed_copied_moved_and_changed() {
    let lines = r#"RUN del /q C:\inetpub\wwwroot\*
RUN copy C:\inetpub\app\fixed.txt C:\data2\copy.txt
RUN move C:\inetpub\app C:\moved
RUN echo three>>C:\moved\config.txt
SHELL ["powershell", "-Command"]
RUN (Get-Content C:\moved\config.txt) -replace 'two', '2' | Set-Content C:\moved\config.txt; Remove-Item -Recurse C:\moved\deep\*"#;
    let mut built = Vec::new();
    for bench in [Bench::new().await, Bench::new().await.indexed()] {
        let layers = bench.layers(lines);
        let expected = ["", ".wh.iisstart.htm", ".wh.iisstart.png"];
        assert_eq!(names(&layers[0], "inetpub/wwwroot/"), expected);

        let copied = entries_of(&layers[1]);
        let (security, attributes) = &copied["Files/data2/copy.txt"];
        assert_eq!(files_of(&layers[1])["Files/data2/copy.txt"], b"fixed");
        assert!(security.as_ref().unwrap().contains("ID;"), "{security:?}");
        assert_eq!(attributes, "33");

        let moved = entries_of(&layers[2]);
        assert_eq!(names(&layers[2], "inetpub/.wh."), ["app"]);
        let content = files_of(&layers[2]);
        for path in ["Files/moved/Config.txt", "Files/moved/deep/again.txt"] {
            assert_eq!(content[path], b"one\r\ntwo\r\n", "{path}");
            assert_eq!(moved[path].0, Some(printed(OWN)), "{path}");
        }
        assert_eq!(moved["Files/moved/deep"].0, Some(printed(DATA)));
        assert_eq!(
            moved["Files/moved/fixed.txt"],
            (Some(printed(OWN)), "33".to_owned())
        );

        let path = "Files/moved/Config.txt";
        assert_eq!(files_of(&layers[3])[path], b"one\r\ntwo\r\nthree\r\n");
        assert_eq!(entries_of(&layers[3])[path].0, Some(printed(OWN)));
        assert_eq!(files_of(&layers[4])[path], b"one\r\n2\r\nthree\r\n");
        assert_eq!(names(&layers[4], "moved/deep/"), ["", ".wh.again.txt"]);
        built.push(layers.iter().map(|it| files_of(it)).collect::<Vec<_>>());
    }
    assert_eq!(
        built[0], built[1],
        "what is known beforehand changes nothing"
    );
    let bench = Bench::new().await.indexed();
    for (line, code, value) in [
        (
            r"copy C:\inetpub\linked\x C:\x",
            "dockerfile/not-known",
            r"C:\inetpub\linked\x is a link",
        ),
        (
            r"del C:\inetpub\linked\x\y",
            "dockerfile/not-known",
            r"C:\inetpub\linked\x is a link",
        ),
        (
            r"move C:\inetpub\linked C:\x",
            "dockerfile/not-understood",
            r"C:\inetpub\linked\x",
        ),
        (
            r"copy C:\inetpub\app\none.txt C:\x",
            "dockerfile/fails",
            r"C:\inetpub\app\none.txt",
        ),
    ] {
        let failure = bench
            .refused(&format!("RUN {line}"))
            .is(code, &[value])
            .names(&["Dockerfile:3: "]);
        assert!(!failure.hint.is_empty(), "{failure:#?}");
    }
    // A plan reads no layers, and notes that a build does.
    let bench = Bench::new().await;
    let text = format!(
        "FROM {BASE}\nRUN del /q C:\\inetpub\\wwwroot\\*\n\
         RUN reg add HKLM\\SOFTWARE\\Corp /v A /d 1 /f\n"
    );
    bench.write("Dockerfile", text);
    let host = bench.server.host();
    let dry = [
        "build", "./app", "--dry-run", "--host-build", "17763.973", "--base-registry",
    ];
    let dry = bench.machine.run(&[&dry[..], &[&host]].concat()).success();
    let found = String::from_utf8_lossy(&dry.get_output().stderr).into_owned();
    says(&found, &note(&[&format!("{host}/windows/nanoserver")]));
    says(&found, &note(&["Dockerfile:2: ", "del"]));
    // However often more of it turns out to be required.
    assert_eq!(found.matches("from its layers").count(), 1, "{found}");
}

#[test(multi_thread)]
async fn what_lies_below_a_link_is_not_known() {
    let bench = Bench::new().await.indexed();
    let link = r"USER ContainerAdministrator
RUN mkdir C:\v && mklink /d C:\l C:\v";
    for rest in [
        "\nRUN copy C:\\l\\x C:\\x",
        "\nRUN type C:\\l\\x",
        " && if exist C:\\l\\x mkdir C:\\yes",
        " && mkdir C:\\l\\x",
        // Copies of a folder have what its links are to.
        "\nRUN mkdir C:\\t && mklink /d C:\\t\\l C:\\v\nRUN xcopy C:\\t C:\\c /e /i",
        "\nRUN mkdir C:\\t && mklink /d C:\\t\\l C:\\v && xcopy C:\\t C:\\c /e /i",
    ] {
        let failure = bench.refused(&format!("{link}{rest}"));
        failure.is("dockerfile/not-known", &[r"\l is a link"]);
    }
    // The link itself can be deleted.
    let layers = bench.layers(&format!("{link}\nRUN rd C:\\l"));
    let last = files_of(layers.last().unwrap());
    assert!(last.contains_key("Files/.wh.l"), "{last:?}");
}

#[test(multi_thread)]
async fn a_link_comes_where_an_earlier_line_deleted_something() {
    const USER: &str = "USER ContainerAdministrator\n";
    const PAGE: &str = r"C:\inetpub\wwwroot\iisstart.png";
    let bench = Bench::new().await.indexed();
    let link = format!(r"mklink {PAGE} C:\data\own.txt");
    let layers = bench.layers(&format!("{USER}RUN del {PAGE}\nRUN {link}"));
    let root = "inetpub/wwwroot/";
    assert_eq!(names(&layers[0], root), ["", ".wh.iisstart.png"]);
    assert_eq!(names(&layers[1], root), ["", "iisstart.png"]);
    bench
        .refused(&format!("{USER}RUN del {PAGE} && {link}"))
        .is("dockerfile/not-understood", &[PAGE])
        .advises(&["RUN of its own"]);
    let below = r"RUN mkdir C:\r1 && mkdir C:\r2 && mklink /d C:\cur C:\r1";
    let lines = "RUN rd C:\\cur\nRUN mklink /d C:\\cur C:\\r2";
    bench.build_on(&format!("{USER}{below}"), lines).success();
    assert!(files_of(bench.built().last().unwrap()).contains_key("Files/cur"));
}

#[test(multi_thread)]
async fn attributes_of_the_base_count_as_on_windows() {
    let bench = Bench::new().await.indexed();
    let copied = r"RUN copy C:\inetpub\app\fixed.txt C:\data2\";
    for (lines, line) in [
        (r"RUN del C:\inetpub\app\fixed.txt".to_owned(), 3),
        (format!("{copied}\nRUN del C:\\data2\\fixed.txt"), 4),
    ] {
        bench
            .refused(&lines)
            .is("dockerfile/refused", &["fixed.txt is denied"])
            .advises(&["/f"])
            .on_line(line);
    }
    bench
        .refused(r"RUN echo x> C:\inetpub\app\fixed.txt")
        .is("dockerfile/fails", &["fixed.txt is denied"]);
    let layers = bench.layers(
        "RUN xcopy C:\\data C:\\q\\ /e\nRUN xcopy C:\\data C:\\r\\ /e /h\n\
         RUN del /f C:\\inetpub\\app\\fixed.txt",
    );
    assert_eq!(names(&layers[0], "q/"), ["", "apart/", "own.txt"]);
    assert_eq!(names(&layers[1], "r/"), ["", "Logs/", "apart/", "own.txt"]);
    assert_eq!(names(&layers[2], "inetpub/app/"), ["", ".wh.fixed.txt"]);
}

#[test(multi_thread)]
async fn a_plan_lists_what_is_left_of_its_files_and_what_goes_of_the_base() {
    let bench = Bench::new().await.indexed();
    let instructions = "COPY a.txt b.txt C:/d/sub/\nRUN del C:\\d\\sub\\a.txt\n\
        RUN move C:\\d\\sub C:\\d\\sub2\nRUN del C:\\inetpub\\wwwroot\\iisstart.png";
    bench.write("Dockerfile", format!("FROM {BASE}\n{instructions}\n"));
    let host = bench.server.host();
    let plan = ["build", "./app", "--dry-run", "--host-build", "17763.973"];
    let plan = [&plan[..], &["--base-registry", &host]].concat();
    let shown = &bench.machine.json(&plan)["plans"][0];
    assert_eq!(each(&shown["content"], "path"), [r"C:\d\sub2\b.txt"]);
    let deleted = r"C:\inetpub\wwwroot\iisstart.png";
    assert_eq!(shown["deleted"], serde_json::json!([deleted]));
    let text = bench.machine.run(&plan).success();
    let text = String::from_utf8_lossy(&text.get_output().stdout).into_owned();
    assert_contains!(text, &format!("\ndeletes     {deleted}\n"));
}

#[test(multi_thread)]
async fn another_stage_is_copied_from_as_its_lines_left_its_base() {
    let mut built = Vec::new();
    for is_known in [false, true] {
        let bench = Bench::new().await;
        let bench = if is_known { bench.indexed() } else { bench };
        let begin = format!(
            "# escape=`\nFROM {BASE} AS core\nCOPY a.txt C:/inetpub/app/deep/\n\
             RUN del /f C:\\inetpub\\app\\fixed.txt && rd /s /q C:\\inetpub\\linked\nFROM {BASE}\n"
        );
        bench
            .build_file(&format!(
                "{begin}COPY --from=core C:/inetpub/app /x/\n\
                 COPY --from=core C:/inetpub/wwwroot/*.png C:/Windows/System32/SC.exe /y/\n\
                 COPY --from=core /inetpub/app/deep/again.txt /z.txt\n"
            ))
            .success();
        let layers = bench.built();
        assert_eq!(
            names(&layers[0], "x/"),
            ["", "Config.txt", "deep/", "deep/a.txt", "deep/again.txt"]
        );
        assert_eq!(names(&layers[1], "y/"), ["", "iisstart.png", "sc.exe"]);
        assert_eq!(files_of(&layers[2])["Files/z.txt"], b"one\r\ntwo\r\n");
        built.push(layers.iter().map(|it| files_of(it)).collect::<Vec<_>>());
        for gone in ["app/fixed.txt", "linked", "linked/x"] {
            let copy = format!("COPY --from=core /inetpub/{gone} /x/");
            let text = format!("{begin}{copy}\n");
            let failed = bench.build_with(&text, &["--format", "json"]).failure();
            let gone = format!("\"inetpub/{gone}\"");
            Failure::of(failed.get_output())
                .is("dockerfile/invalid", &["Dockerfile:6: ", &gone, "\"core\""])
                .on_line(6);
        }
    }
    assert_eq!(
        built[0], built[1],
        "what is known beforehand changes nothing"
    );
}

#[test(multi_thread)]
async fn rights_on_a_folder_of_the_base_reach_its_files() {
    let bench = Bench::new().await;
    let layers = bench.layers(r"RUN icacls C:\inetpub\wwwroot /grant Everyone:(OI)(CI)M");
    // Its list is protected from inheritance, those of its files are not.
    let found = entries_of(&layers[0]);
    let of = |path: &str| found[path].0.clone().unwrap();
    assert_eq!(
        of("Files/inetpub/wwwroot"),
        printed(&format!("{DATA}(A;OICI;0x1301bf;;;WD)"))
    );
    let file = of("Files/inetpub/wwwroot/iisstart.htm");
    assert_contains!(file, "(A;ID;0x1301bf;;;WD)");
    assert_eq!(
        files_of(&layers[0])["Files/inetpub/wwwroot/iisstart.htm"],
        b"start"
    );
    let without = bench.layers(r"RUN icacls C:\inetpub\wwwroot /grant Everyone:(CI)M");
    assert_eq!(names(&without[0], "inetpub/wwwroot/"), [""]);
}

#[test(multi_thread)]
async fn a_folder_can_be_deleted_and_made_again_in_one_line() {
    let bench = Bench::new().await;
    let layers = bench.layers(
        r"COPY a.txt C:/inetpub/wwwroot/in/
RUN rd /s /q C:\inetpub\wwwroot && md C:\inetpub\wwwroot\in && echo new>C:\inetpub\wwwroot\iisstart.htm
RUN echo more>C:\inetpub\wwwroot\in\b.txt",
    );
    let expected = [
        "", ".wh.iisstart.png", "iisstart.htm", "in/", "in/.wh.a.txt",
    ];
    assert_eq!(names(&layers[1], "inetpub/wwwroot/"), expected);
    let found = entries_of(&layers[1]);
    for path in ["Files/inetpub/wwwroot", "Files/inetpub/wwwroot/in"] {
        // It inherits its permissions, like a new one.
        let security = found[path].0.clone().unwrap();
        assert!(
            security.contains("ID;") && !security.contains(";;;BG"),
            "{path}: {security}"
        );
    }
    assert_eq!(
        names(&layers[2], "inetpub/wwwroot/"),
        ["", "in/", "in/b.txt"]
    );
    bench
        .refused(r"RUN rd /s /q C:\inetpub\app && echo x>C:\inetpub\app")
        .is("dockerfile/not-understood", &[r"C:\inetpub\app"])
        .advises(&["RUN"]);
}

#[test(multi_thread)]
async fn later_lines_keep_what_earlier_ones_wrote_to_the_registry() {
    for bench in [Bench::new().await, Bench::new().await.indexed()] {
        let layers = bench.layers(
            r"RUN reg add HKLM\SOFTWARE\Acme\Sub /v a /t REG_SZ /d 1 /f
RUN reg add HKLM\SOFTWARE\Acme\Sub /v b /t REG_SZ /d 2 /f
RUN reg delete HKLM\SOFTWARE\Acme\Sub /v a /f
RUN reg delete HKLM\SOFTWARE\Acme /f
RUN reg add HKLM\SOFTWARE\Acme\Sub /v c /t REG_SZ /d 3 /f",
        );
        let hives: Vec<Vec<u8>> = layers
            .iter()
            .map(|layer| files_of(layer)["Hives/Software_Delta"].clone())
            .collect();
        let hives: Vec<Hive<'_>> = hives.iter().map(|it| Hive::read(it).unwrap()).collect();
        let sub = |layer: usize| hives[layer].root.at(r"Acme\Sub").unwrap();
        assert_eq!(sub(1).layer.semantics, Semantics::Merge, "a is not hidden");
        assert_eq!(sub(2).layer.semantics, Semantics::Merge);
        for layer in [1, 2] {
            assert_eq!(sub(layer).security, sub(0).security);
        }
        let all = hives.iter().take(3).map(|hive| hive.root.clone());
        let seen = wincimg_registry::hive::merge(None, all).unwrap();
        let seen = seen.at(r"Acme\Sub").unwrap();
        let values: Vec<&str> = seen.values.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(values, ["b"]);
        let gone = hives[3].root.at("Acme").unwrap();
        assert_eq!(gone.layer.semantics, Semantics::Tombstone);
        assert_eq!(sub(4).layer.semantics, Semantics::SupersedeTree);
    }
}

#[test(multi_thread)]
async fn every_stage_gets_a_look_into_its_own_base() {
    let bench = Bench::new().await;
    let host = bench.server.host();
    put_at(&base(), &format!("{host}/windows/servercore:{VERSION}")).await;
    let file = format!(
        "# escape=`\nFROM mcr.microsoft.com/windows/servercore:ltsc2019 AS tools\n\
         RUN md C:\\out && move C:\\inetpub\\app\\config.txt C:\\out\nRUN del /q C:\\data\\*.txt\n\
         FROM {BASE}\nCOPY --from=tools C:/out/ C:/got/\nRUN del /q C:\\inetpub\\wwwroot\\*.png\n"
    );
    bench.build_file(&file).success();
    let layers = bench.built();
    assert_eq!(
        files_of(&layers[0])["Files/got/config.txt"],
        b"one\r\ntwo\r\n"
    );
    assert_eq!(
        names(&layers[1], "inetpub/wwwroot/"),
        ["", ".wh.iisstart.png"]
    );
}

#[test(multi_thread)]
async fn folders_made_on_the_way_stay() {
    let bench = Bench::new().await.indexed();
    for (line, left, next) in [
        (
            r"mkdir C:\p\q\r && rmdir /s /q C:\p\q",
            vec!["p/"],
            r"rmdir C:\p",
        ),
        (
            r"mkdir C:\p\q\r && move C:\p\q C:\z",
            vec!["p/", "z/", "z/r/"],
            r"rmdir C:\p C:\z\r",
        ),
        (
            r"mkdir C:\p\q\r && ren C:\p\q z && rmdir /s /q C:\p\z",
            vec!["p/"],
            r"rmdir C:\p",
        ),
        (
            r"mkdir C:\p\q\r && rmdir C:\p\q\r && rmdir C:\p\q",
            vec!["p/"],
            r"rmdir C:\p",
        ),
        (
            r"powershell New-Item -ItemType Directory C:\p\q\r; Remove-Item -Recurse C:\p\q",
            vec!["p/"],
            r"powershell Remove-Item C:\p",
        ),
        (
            r"powershell New-Item -Force C:\p\q\a.txt; Move-Item C:\p\q C:\z; Remove-Item C:\z\a.txt",
            vec!["p/", "z/"],
            r"rmdir C:\z && rmdir C:\p",
        ),
        (
            r#"powershell "mkdir C:\data\p\q | Out-Null; Rename-Item C:\data\p\q z; Remove-Item C:\data\p\z""#,
            vec!["data/", "data/p/"],
            r"rmdir C:\data\p",
        ),
    ] {
        let layers = bench.layers(&format!("RUN {line}\nRUN {next}"));
        let found: Vec<String> = names(&layers[0], "")
            .into_iter()
            .filter(|name| !name.is_empty())
            .collect();
        assert_eq!(found, left, "{line}");
        let folder = left.iter().find(|name| name.contains('p')).unwrap();
        let gone = folder.trim_end_matches('/');
        let gone = if left.contains(&"data/p/") {
            "data/.wh.p".to_owned()
        } else {
            format!(".wh.{gone}")
        };
        assert!(names(&layers[1], "").contains(&gone), "{line}");
    }
    // What is deleted, too, is not there.
    let layers = bench.layers(r"RUN mkdir C:\p\q && rmdir /s /q C:\p && mkdir C:\other");
    assert_eq!(names(&layers[0], ""), ["", "other/"]);
}
