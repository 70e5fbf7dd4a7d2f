//! Build provenance of an image: an in-toto statement (v1) with SLSA provenance (v1).

use jiff::Timestamp;
use serde_json::{Value, json};
use wincimg_oci::document::Digest;

use super::document::{Tool, present};

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

/// Writes the statement about one image.
pub(super) fn write(
    name: &str,
    image: &Digest,
    build: &BuildProvenance,
    tool: Tool,
) -> Result<Vec<u8>, serde_json::Error> {
    let source = build.source.as_ref();
    let source = source.map(|it| descriptor(it.kind, Some(&it.name), Some(&it.digest)));
    let dependencies = build.dependencies.iter();
    let dependencies: Vec<Value> = dependencies
        .map(|it| descriptor(&it.name, Some(&it.uri), it.digest.as_ref()))
        .collect();
    let (started, finished) = (build.started.map(second), build.finished.map(second));
    let has_times = started.is_some() || finished.is_some();
    let metadata = present(json!({ "startedOn": started, "finishedOn": finished }));
    serde_json::to_vec(&json!({
        "_type": STATEMENT,
        "subject": [descriptor(name, None, Some(image))],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": format!("{}/build/v1", tool.home),
                "externalParameters": present(json!({
                    "source": source,
                    "arguments": build.arguments,
                    "hostBuild": build.host_build,
                })),
                "internalParameters": {
                    "engine": build.engine,
                    "plan": { "digest": { "sha256": build.plan } },
                },
                "resolvedDependencies": dependencies,
            },
            "runDetails": present(json!({
                "builder": {
                    "id": build.builder.as_deref().unwrap_or(tool.home),
                    "version": { (tool.name): tool.version },
                },
                "metadata": has_times.then_some(metadata),
            })),
        },
    }))
}

/// A resource descriptor of in-toto.
fn descriptor(name: &str, uri: Option<&str>, digest: Option<&Digest>) -> Value {
    present(json!({
        "name": name,
        "uri": uri,
        "digest": digest.map(|it| json!({ (it.algorithm()): it.digest() })),
    }))
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
        let other = BuildProvenance {
            plan: "cd".to_owned(),
            ..build.clone()
        };
        let [build, later, other] = [build, later, other].map(|it| statement(&it));
        assert_ne!(build, later);
        assert!(is_equal_ignoring_times(&build, &later));
        assert!(!is_equal_ignoring_times(&build, &other));
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
