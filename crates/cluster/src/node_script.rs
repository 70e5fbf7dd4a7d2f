//! The PowerShell script that configures a node's images: a table of settings, followed by a text
//! that is the same for every node.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use wincimg_common::Named;
use wincimg_windows::compat::revisions_alike;
use wincimg_windows::node_script::{self, switch};
use wincimg_windows::quoting::powershell;
use wincimg_windows::version::WindowsVersion;

/// Settings of a node script.
#[derive(Debug, Clone, Serialize)]
pub struct NodeScript<'a> {
    /// Container runtime; detected on the node if absent.
    pub runtime: Option<NodeRuntime>,
    /// Registries to trust.
    pub registries: &'a [NodeRegistry],
    /// Images for each Windows version.
    pub images: &'a [NodeImages],
    /// Pull progress deadline, such as `30m`.
    #[serde(rename = "pull_deadline")]
    pub deadline: &'a str,
    /// True if Windows Update is held back on the node.
    pub hold_updates: bool,
    /// True if the script undoes everything by default.
    pub undo: bool,
}

/// Container runtime of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Named)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum NodeRuntime {
    /// containerd.
    Containerd,
    /// Docker, behind dockershim or cri-dockerd.
    Docker,
}

/// A registry to trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeRegistry {
    /// Host, with the port if any.
    pub host: String,
    /// True to allow plain HTTP and any certificate.
    #[serde(rename = "insecure")]
    pub is_insecure: bool,
    /// CAs to trust there, in PEM; as JSON only whether there are any.
    #[serde(serialize_with = "is_some")]
    pub certificates: Option<String>,
}

/// Images for nodes of one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeImages {
    /// The version.
    #[serde(rename = "build")]
    pub version: WindowsVersion,
    /// The pause image.
    pub pause: String,
    /// Images to pull in advance.
    pub bases: Vec<String>,
}

const PARAMETERS: &str = include_str!("node_script/parameters.ps1");
const BODY: &str = include_str!("node_script/node.ps1");

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn is_some<S: Serializer>(value: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(value.is_some())
}

impl NodeRegistry {
    /// Its folder in containerd's `certs.d`: a name on Windows has no colon.
    fn containerd_folder(&self) -> String {
        match self.host.rsplit_once(':') {
            Some((name, port)) => format!("{name}_{port}_").replace(':', ""),
            None => self.host.clone(),
        }
    }

    /// The host of its API.
    fn server(&self) -> &str {
        match self.host.as_str() {
            "docker.io" => "registry-1.docker.io",
            host => host,
        }
    }

    /// Its folder in Docker's `certs.d`; containerd reads one of that name too.
    fn docker_folder(&self) -> String {
        self.host.replace(':', "")
    }
}

impl NodeScript<'_> {
    /// The script's text, for Windows PowerShell 5.1 and later.
    pub fn render(&self) -> String {
        let verb = if self.undo { "Restores" } else { "Configures" };
        let comment = format!("{verb} the container runtime of the Windows node on which it runs.");
        node_script::script(&comment, PARAMETERS, ("node", &self.settings()), BODY)
    }

    // Writing to a string cannot fail.
    fn settings(&self) -> String {
        let mut text = String::new();
        let runtime = self.runtime.map_or("", NodeRuntime::name);
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(text, "    {key:<11} = {value}");
        };
        line("Runtime", &powershell::literal(runtime));
        line("Deadline", &powershell::literal(self.deadline));
        line("HoldUpdates", switch(self.hold_updates));
        line("Undo", switch(self.undo));
        line("Registries", "@(");
        for registry in self.registries {
            let certificates = registry.certificates.as_deref();
            let _ = writeln!(
                text,
                "        @{{ Host = {}; Server = {}; Containerd = {}; Docker = {}; Insecure = {}; Certificates = {} }}",
                powershell::literal(&registry.host),
                powershell::literal(registry.server()),
                powershell::literal(&registry.containerd_folder()),
                powershell::literal(&registry.docker_folder()),
                switch(registry.is_insecure),
                certificates.map_or_else(|| "$null".to_owned(), powershell::literal),
            );
        }
        text.push_str("    )\n    Images      = @(\n");
        for images in self.images {
            let pull = std::iter::once(&images.pause).chain(&images.bases);
            let pull: Vec<String> = pull.map(|image| powershell::literal(image)).collect();
            // Hosts of other revisions do not start them.
            let alike = revisions_alike(images.version).unwrap_or(0..=u32::MAX);
            let _ = writeln!(
                text,
                "        @{{ Build = {}; Revision = {}; First = {}; Last = {}; Pause = {}; Pull = @({}) }}",
                images.version.build,
                images.version.revision.unwrap_or_default(),
                alike.start(),
                alike.end(),
                powershell::literal(&images.pause),
                pull.join(", "),
            );
        }
        text.push_str("    )\n");
        text
    }
}
