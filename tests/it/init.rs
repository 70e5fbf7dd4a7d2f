//! `wincimg init`: its output builds, or the error tells what to publish first.

use std::fs;

use crate::failure::Fails;
use crate::site::{Site, answer_of, json_of, stderr};

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
    let output = site.with_no_bases(&["init", "shop"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--force"), "{}", stderr(&output));
    site.with_no_bases(&["init", "shop", "--force"])
        .assert()
        .success();
    // In this folder, under its name.
    site.with_no_bases(&["init"]).assert().success();
    assert!(site.text("recipe.toml").contains("base = \"nanoserver\""));
    for (arguments, values) in [
        (&["init", "pause"][..], &["\"pause\""][..]),
        (&["init", "My Shop"], &["wincimg init my-shop"]),
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
    let output = build().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("msbuild ./src/Shop"),
        "{}",
        stderr(&output)
    );
    site.write("src/Shop/publish/Web.config", "<configuration/>");
    let plan = json_of(&mut build());
    let base = plan["plans"][0]["base"]["name"].as_str().unwrap();
    assert!(base.contains("dotnet/framework/aspnet"), "{base}");

    // A program with several projects in a folder.
    site.write(
        "Directory.Build.props",
        "<Project><PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup></Project>",
    );
    site.write(
        "tool/Tool.csproj",
        "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><OutputType>Exe</OutputType></PropertyGroup></Project>",
    );
    let output = site
        .with_no_bases(&["init", "mytool", "--dotnet", "tool/Tool.csproj"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("dotnet publish ./tool/Tool.csproj -c Release -r win-x64"),
        "{said}"
    );
    let recipe = site.text("tool/recipe.toml");
    for part in [
        "name = \"mytool\"",
        "dotnet/runtime:8.0-nanoserver",
        r"C:\app\Tool.dll",
    ] {
        assert!(recipe.contains(part), "{part}: {recipe}");
    }
}

#[test]
fn a_dockerfile_is_converted() {
    let site = Site::new();
    site.write(
        "app/Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\nENV A=1\n",
    );
    let arguments = [
        "init",
        "own",
        "--from",
        "app/Dockerfile",
        "--host-build",
        "17763.973",
    ];
    site.with_bases(&arguments).assert().success();
    let recipe = site.text("app/recipe.toml");
    assert!(recipe.contains("name = \"own\""), "{recipe}");
    fs::remove_file(site.path("app/recipe.toml")).unwrap();
    site.write(
        "app/Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\nRUN msiexec /i a.msi\n",
    );
    site.with_bases(&arguments).assert().code(4);
    assert!(!site.path("app/recipe.toml").exists());
}
