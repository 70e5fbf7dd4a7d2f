//! Recipes to start from: one that builds as it is, and one for a .NET project.

mod dotnet;

use std::fmt::Write as _;

pub use dotnet::{Project, ProjectKind};
use wincimg_common::shell::quote;

/// A recipe to start from, and what to do with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StarterRecipe {
    /// Its text.
    pub recipe: String,
    /// Commands to run before the build.
    pub before: Vec<String>,
    /// The host to build for if the user names none: the name of a release, or a version.
    pub host: &'static str,
}

/// A recipe that prints a line, with comments on further keys.
pub fn plain(name: &str) -> StarterRecipe {
    let recipe = format!(
        r#"# Recipe of the image {name}. For completion in an editor, write the schema:
# `wincimg recipe schema > recipe.schema.json`
name = "{name}"
base = "nanoserver"              # servercore, server, windows, aspnet, iis, or a repository

# The program that a container runs, and its arguments.
entrypoint = ['C:\Windows\System32\cmd.exe', "/d", "/c", "type", 'C:\app\hello.txt']
# entrypoint = ['C:\wincimg\shim.exe', "--", 'C:\app\app.exe', "--port", "8080"]
working_dir = 'C:\app'
# ports = [8080]
# user = "ContainerUser"
# path = ['C:\app\bin']          # in front of the base's PATH
# shutdown_timeout = 60          # seconds to stop; the shim forwards the request

[[files]]
content = "Hello from Windows\r\n"
to = 'C:\app\hello.txt'

# [[files]]
# from = "files"                 # a folder next to this file: its contents go into the image
# to = 'C:\app'

# [[files]]
# embedded = "shim"              # the entry point above
# to = 'C:\wincimg\shim.exe'

# [env]
# APP_MODE = "production"

# [[registry]]
# key = 'HKLM\SOFTWARE\App'
# values = {{ Region = "eu", Workers = 4 }}

# [certificates]
# root = "company-ca.pem"
"#
    );
    StarterRecipe {
        recipe,
        before: Vec::new(),
        host: "17763.973",
    }
}

impl Project {
    /// A recipe for what the project publishes; `shown` is its folder as commands name it.
    pub fn start(&self, name: &str, shown: &str) -> StarterRecipe {
        let publish = self.publish(shown);
        let mut recipe = format!(
            "# {} on Windows, {}.\nname = \"{name}\"\nbase = \"{}\"\n",
            self.assembly,
            self.words(),
            self.base()
        );
        recipe.push_str(&self.entrypoint());
        let folder = if self.is_framework_site() {
            r"C:\inetpub\wwwroot"
        } else {
            recipe.push_str("working_dir = 'C:\\app'\n");
            r"C:\app"
        };
        if self.is_web {
            let port = if self.is_framework_site() { 80 } else { 8080 };
            let _ = writeln!(recipe, "ports = [{port}]");
        }
        let _ = write!(
            recipe,
            "\n[[files]]\nfrom = \"publish\"               # {publish}\nto = '{folder}'\n"
        );
        if self.is_web && !self.is_framework_site() {
            recipe.push_str("\n[env]\nASPNETCORE_URLS = \"http://+:8080\"\n");
        }
        if self.is_framework_site() {
            recipe.push_str(
                "\n# [iis]                        # application pools, bindings, handlers, content types\n\
                 # file_extensions = [\"json\", \"woff2\"]\n",
            );
        }
        StarterRecipe {
            recipe,
            before: vec![publish],
            host: self.host(),
        }
    }

    fn entrypoint(&self) -> String {
        let program = &self.assembly;
        match &self.kind {
            ProjectKind::Core {
                is_self_contained: false,
                ..
            } => format!("entrypoint = [\"dotnet\", 'C:\\app\\{program}.dll']\n"),
            ProjectKind::Framework { .. } if self.is_web => {
                "# The base's entry point starts IIS and passes it the container's variables.\n"
                    .to_owned()
            }
            _ => format!("entrypoint = ['C:\\app\\{program}.exe']\n"),
        }
    }

    /// The command that publishes the files.
    fn publish(&self, shown: &str) -> String {
        let project = quote(&format!("{shown}/{}", self.file));
        let output = quote(&format!("{shown}/publish"));
        match &self.kind {
            ProjectKind::Core {
                is_self_contained, ..
            } => format!(
                "dotnet publish {project} -c Release -r win-x64 --self-contained {is_self_contained} -o {output}"
            ),
            ProjectKind::Framework { .. } if self.is_web => format!(
                "msbuild {project} -restore -p:Configuration=Release -p:DeployOnBuild=true -p:WebPublishMethod=FileSystem -p:PublishUrl=publish"
            ),
            ProjectKind::Framework { is_sdk: true } => {
                format!("dotnet publish {project} -c Release -o {output}")
            }
            ProjectKind::Framework { is_sdk: false } => {
                format!("msbuild {project} -restore -p:Configuration=Release -p:OutDir=publish/")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Recipe;

    #[test]
    fn what_is_written_is_a_recipe() {
        let read = |start: &StarterRecipe| {
            Recipe::from_text("recipe.toml", start.recipe.clone(), Path::new(".")).unwrap()
        };
        assert_eq!(read(&plain("shop")).name(), "shop");
        for text in [
            "<Project Sdk=\"Microsoft.NET.Sdk.Web\"><PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup></Project>",
            "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><TargetFramework>net48</TargetFramework><OutputType>Exe</OutputType></PropertyGroup></Project>",
        ] {
            let project = Project::parse("Shop.csproj", text, None).unwrap();
            assert_eq!(read(&project.start("shop", "./src")).name(), "shop");
        }
    }
}
