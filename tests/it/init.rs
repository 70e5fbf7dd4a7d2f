//! `wincimg recipe init`: its output builds, or the error tells what to publish first.

use std::fs;

use wincimg_oci::document::ManifestFormat;
use wincimg_testkit::windows_base::StandIn;

use crate::failure::Fails;
use crate::site::{Site, add_base, answer_of, json_of, stderr};

const WEB: &str = "<Project Sdk=\"Microsoft.NET.Sdk.Web\">\n  <PropertyGroup>\n    \
                   <TargetFramework>net48</TargetFramework>\n  </PropertyGroup>\n</Project>\n";

#[test]
fn a_recipe_to_start_from_builds_as_it_is() {
    let site = Site::new();
    let (code, answer) = answer_of(&mut site.with_no_bases(&["init", "shop"]));
    assert_eq!(code, 0);
    assert_eq!(answer["file"], "shop/recipe.toml");
    assert_eq!(
        answer["next"][0],
        "wincimg build ./shop --host-build 17763.973"
    );
    let mut build = site.build("./shop");
    let plan = json_of(build.args(["--host-build", "17763.973", "--dry-run"]));
    assert_eq!(plan["plans"][0]["content"][0]["path"], r"C:\app\hello.txt");

    // An existing file is not overwritten.
    let printed = site.with_no_bases(&["init", "shop"]).tells(2);
    assert_contains!(printed, "--force");
    site.with_no_bases(&["init", "shop", "--force"])
        .assert()
        .success();
    // In this folder, under its name.
    site.with_no_bases(&["init"]).assert().success();
    assert!(site.text("recipe.toml").contains("base = \"nanoserver\""));
    for (arguments, values) in [
        (&["init", "pause"][..], &["\"pause\""][..]),
        (&["init", "My Shop"], &["wincimg recipe init my-shop"]),
        (&["init", "--dotnet", "shop"], &["shop"]),
        (
            &["init", "--dotnet", "shop/recipe.toml"],
            &["shop/recipe.toml"],
        ),
    ] {
        site.with_no_bases(arguments).fails(2, "usage", values);
    }
}

#[test]
fn a_hint_about_a_missing_dockerfile_has_no_flag_of_another_command() {
    let site = Site::new();
    site.write("Dockerfile", "FROM nanoserver:1809\n");
    for missing in ["missing", "Dockerfle"] {
        let refused = site
            .with_no_bases(&["init", "own", "--from", missing])
            .fails(3, "dockerfile/unreadable", &[missing]);
        assert!(!refused.hint.is_empty(), "{refused:#?}");
        assert!(!refused.hint.contains("-f"), "{refused:#?}");
    }
}

#[test]
fn a_project_gets_a_recipe_that_says_what_to_publish() {
    let site = Site::new();
    site.write("src/Shop/Shop.Web.csproj", WEB);
    let (code, answer) = answer_of(&mut site.with_no_bases(&["init", "--dotnet", "src/Shop"]));
    assert_eq!(code, 0);
    let publish = answer["next"][0].as_str().unwrap();
    assert!(
        publish.starts_with("msbuild ./src/Shop/Shop.Web.csproj "),
        "{publish}"
    );
    let recipe = site.text("src/Shop/recipe.toml");
    for part in ["name = \"shop-web\"", "ports = [80]", r"C:\inetpub\wwwroot"] {
        assert!(recipe.contains(part), "{part}: {recipe}");
    }
    // Not published yet; the output has the command for it.
    let build = || {
        let mut build = site.build("./src/Shop");
        build.args(["--host-build", "17763.973", "--dry-run"]);
        build
    };
    let printed = build().tells(2);
    assert_contains!(printed, "msbuild ./src/Shop");
    site.write("src/Shop/publish/Web.config", "<configuration/>");
    let plan = json_of(&mut build());
    let base = plan["plans"][0]["base"]["name"].as_str().unwrap();
    assert_contains!(base, "dotnet/framework/aspnet");

    // A program with several projects in a folder.
    site.write(
        "Directory.Build.props",
        "<Project><PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup></Project>",
    );
    site.write(
        "tool/Tool.csproj",
        "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><OutputType>Exe</OutputType></PropertyGroup></Project>",
    );
    let printed = site
        .with_no_bases(&["init", "mytool", "--dotnet", "tool/Tool.csproj"])
        .prints();
    assert_contains!(
        printed,
        "dotnet publish ./tool/Tool.csproj -c Release -r win-x64"
    );
    site.write("my tool/A.csproj", site.text("tool/Tool.csproj"));
    let (_, answer) = answer_of(&mut site.with_no_bases(&["init", "--dotnet", "my tool"]));
    let publish = answer["next"][0].as_str().unwrap();
    assert_contains!(
        publish,
        "dotnet publish './my tool/A.csproj' ",
        " -o './my tool/publish'"
    );
    let recipe = site.text("tool/recipe.toml");
    assert_contains!(
        recipe,
        "name = \"mytool\"",
        "dotnet/runtime:8.0-nanoserver",
        r"C:\app\Tool.dll"
    );
}

#[test]
fn a_dockerfile_is_converted() {
    let site = Site::new();
    site.write(
        "app/Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\nENV A=1\n",
    );
    let arguments = [
        "init", "own", "--from", "app/Dockerfile", "--host-build", "17763.973",
    ];
    site.with_bases(&arguments).assert().success();
    let recipe = site.text("app/recipe.toml");
    assert_contains!(recipe, "name = \"own\"");
    fs::remove_file(site.path("app/recipe.toml")).unwrap();
    site.write(
        "app/Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\nRUN msiexec /x a.msi\n",
    );
    site.with_bases(&arguments).assert().code(4);
    assert!(!site.path("app/recipe.toml").exists());
}

/// What `init` prints for a project is typed as it is, on bases tagged as Microsoft tags them.
#[test]
fn the_printed_commands_build_a_project_of_each_framework() {
    for (framework, repository, tags) in [
        (
            "netcoreapp3.1",
            "dotnet/aspnet",
            &["3.1-nanoserver-1809"][..],
        ),
        (
            "net8.0",
            "dotnet/aspnet",
            &["8.0-nanoserver-ltsc2022", "8.0-nanoserver-1809"],
        ),
        (
            "net9.0",
            "dotnet/aspnet",
            &["9.0-nanoserver-ltsc2025", "9.0-nanoserver-ltsc2022"],
        ),
        (
            "net10.0",
            "dotnet/aspnet",
            &["10.0-nanoserver-ltsc2025", "10.0-nanoserver-ltsc2022"],
        ),
        (
            "net48",
            "dotnet/framework/aspnet",
            &["4.8-windowsservercore-ltsc2022"],
        ),
        (
            "net481",
            "dotnet/framework/aspnet",
            &["4.8.1-windowsservercore-ltsc2022"],
        ),
        (
            "net35",
            "dotnet/framework/aspnet",
            &["3.5-windowsservercore-ltsc2022"],
        ),
    ] {
        let site = Site::new();
        for (seed, tag) in (1..).zip(tags) {
            // Published long after the host of the other examples.
            let version = match tag.rsplit('-').next() {
                Some("1809") => "10.0.17763.6893",
                Some("ltsc2025") => "10.0.26100.3194",
                _ => "10.0.20348.3207",
            };
            let base = StandIn::new(ManifestFormat::Docker, version, &[(400, seed)]);
            let repository = format!("mcr/{repository}");
            site.registry
                .with(|stored| add_base(stored, &repository, tag, base));
        }
        let text = WEB.replace("net48", framework);
        site.write("Shop.csproj", text);
        site.write("publish/Shop.dll", "x");
        let (_, answer) = answer_of(&mut site.with_no_bases(&["init", "--dotnet", "."]));
        let next = answer["next"].as_array().unwrap();
        let command = next.last().unwrap().as_str().unwrap();
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(words[0], "wincimg");
        let output = site.with_bases(&words[1..]).output().unwrap();
        assert!(
            output.status.success(),
            "{framework}: {command}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn the_printed_commands_have_the_hosts_that_were_named() {
    let site = Site::new();
    site.write("Shop.csproj", WEB);
    let typed = ["init", "--dotnet", ".", "--host-build", "win2019"];
    let (_, answer) = answer_of(&mut site.with_no_bases(&typed));
    assert_eq!(answer["next"][1], "wincimg build . --host-build win2019");
}
