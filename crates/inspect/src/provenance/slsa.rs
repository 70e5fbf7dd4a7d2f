//! Build provenance of an image: an in-toto statement (v1) with SLSA provenance (v1).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use wincimg_oci::document::Digest;

use super::document::Tool;

/// Predicate type of the statement.
pub(super) const PREDICATE: &str = "https://slsa.dev/provenance/v1";
const STATEMENT: &str = "https://in-toto.io/Statement/v1";

/// Facts about a build.
#[derive(Debug, Clone, Default)]
pub struct BuildProvenance {
    /// Builder: a URI of the entity that vouches for it.
    pub builder: Option<String>,
    /// The engine.
    pub engine: &'static str,
    /// The recipe or Dockerfile.
    pub source: Option<SourceFile>,
    /// Names of the build arguments; the values may be secrets.
    pub arguments: Vec<String>,
    /// The host that the image is for.
    pub host_build: Option<String>,
    /// Digest of the plan, in hexadecimal.
    pub plan: String,
    /// Inputs from elsewhere than the disk.
    pub dependencies: Vec<ResolvedDependency>,
    /// Start time; none if the result must not depend on it.
    pub started: Option<Timestamp>,
    /// Time at which the image was finished.
    pub finished: Option<Timestamp>,
}

/// Recipe or Dockerfile of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// `recipe` or `dockerfile`.
    pub kind: &'static str,
    /// Its name, without the folders of the machine.
    pub name: String,
    /// Its digest.
    pub digest: Digest,
}

/// An input that a build took from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedDependency {
    /// Usual name.
    pub name: String,
    /// Location.
    pub uri: String,
    /// Digest.
    pub digest: Option<Digest>,
}

#[derive(Serialize)]
struct Statement<'a> {
    _type: &'static str,
    subject: [ResourceDescriptor<'a>; 1],
    #[serde(rename = "predicateType")]
    predicate_type: &'static str,
    predicate: Predicate<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Predicate<'a> {
    build_definition: SlsaBuildDefinition<'a>,
    run_details: Details<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SlsaBuildDefinition<'a> {
    build_type: String,
    external_parameters: ExternalParameters<'a>,
    internal_parameters: InternalParameters<'a>,
    resolved_dependencies: Vec<ResourceDescriptor<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExternalParameters<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<ResourceDescriptor<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    arguments: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    host_build: Option<&'a str>,
}

#[derive(Serialize)]
struct InternalParameters<'a> {
    engine: &'static str,
    plan: DigestSet<'a>,
}

#[derive(Serialize)]
struct DigestSet<'a> {
    digest: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct ResourceDescriptor<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    digest: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct Details<'a> {
    builder: Builder<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
}

#[derive(Serialize)]
struct Builder<'a> {
    id: &'a str,
    version: BTreeMap<&'static str, &'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    started_on: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_on: Option<String>,
}

/// Writes the statement about one image.
pub(super) fn write(
    name: &str,
    image: &Digest,
    build: &BuildProvenance,
    tool: Tool,
) -> Result<Vec<u8>, serde_json::Error> {
    let dependencies = build
        .dependencies
        .iter()
        .map(|dependency| ResourceDescriptor {
            name: Some(&dependency.name),
            uri: Some(&dependency.uri),
            digest: dependency.digest.as_ref().map(set_of).unwrap_or_default(),
        });
    let (started, finished) = (build.started.map(second), build.finished.map(second));
    let metadata = Metadata {
        started_on: started,
        finished_on: finished,
    };
    let has_times = metadata.started_on.is_some() || metadata.finished_on.is_some();
    serde_json::to_vec(&Statement {
        _type: STATEMENT,
        subject: [ResourceDescriptor {
            name: Some(name),
            uri: None,
            digest: set_of(image),
        }],
        predicate_type: PREDICATE,
        predicate: Predicate {
            build_definition: SlsaBuildDefinition {
                build_type: format!("{}/build/v1", tool.home),
                external_parameters: ExternalParameters {
                    source: build.source.as_ref().map(|source| ResourceDescriptor {
                        name: Some(source.kind),
                        uri: Some(&source.name),
                        digest: set_of(&source.digest),
                    }),
                    arguments: &build.arguments,
                    host_build: build.host_build.as_deref(),
                },
                internal_parameters: InternalParameters {
                    engine: build.engine,
                    plan: DigestSet {
                        digest: BTreeMap::from([("sha256", build.plan.as_str())]),
                    },
                },
                resolved_dependencies: dependencies.collect(),
            },
            run_details: Details {
                builder: Builder {
                    id: build.builder.as_deref().unwrap_or(tool.home),
                    version: BTreeMap::from([(tool.name, tool.version)]),
                },
                metadata: has_times.then_some(metadata),
            },
        },
    })
}

fn set_of(digest: &Digest) -> BTreeMap<&str, &str> {
    let text: &str = digest.as_ref();
    text.split_once(':').into_iter().collect()
}

fn second(time: Timestamp) -> String {
    let time = Timestamp::from_second(time.as_second()).unwrap_or_default();
    time.to_string()
}

/// Returns true if two statements are equal apart from their times.
pub(super) fn is_equal_ignoring_times(one: &[u8], other: &[u8]) -> bool {
    let timeless = |bytes: &[u8]| {
        let mut statement: Value = serde_json::from_slice(bytes).ok()?;
        let details = statement.pointer_mut("/predicate/runDetails")?;
        details.as_object_mut()?.remove("metadata");
        Some(statement)
    };
    let one = timeless(one);
    one.is_some() && one == timeless(other)
}

#[cfg(test)]
mod tests {
    use wincimg_oci::document::sha256;

    use super::*;

    #[test]
    fn statements_of_two_runs_are_the_same_and_those_of_two_plans_are_not() {
        let image = sha256(b"image");
        let statement = |build: &BuildProvenance| {
            write("repo.lan/app", &image, build, Tool::default()).unwrap()
        };
        let build = BuildProvenance {
            plan: "ab".to_owned(),
            ..BuildProvenance::default()
        };
        let later = BuildProvenance {
            started: Some(Timestamp::UNIX_EPOCH),
            ..build.clone()
        };
        assert_ne!(statement(&build), statement(&later));
        assert!(is_equal_ignoring_times(
            &statement(&build),
            &statement(&later)
        ));
        let other = BuildProvenance {
            plan: "cd".to_owned(),
            ..build.clone()
        };
        assert!(!is_equal_ignoring_times(
            &statement(&build),
            &statement(&other)
        ));
        assert!(!is_equal_ignoring_times(b"{}", b"{}"));
    }

    #[test]
    fn times_have_seconds() {
        let time: Timestamp = "2026-11-22T06:00:00.5Z".parse().unwrap();
        let build = BuildProvenance {
            started: Some(time),
            ..BuildProvenance::default()
        };
        let bytes = write("app", &sha256(b"image"), &build, Tool::default()).unwrap();
        let statement: Value = serde_json::from_slice(&bytes).unwrap();
        let metadata = &statement["predicate"]["runDetails"]["metadata"];
        assert_eq!(metadata["startedOn"], "2026-11-22T06:00:00Z");
    }
}
