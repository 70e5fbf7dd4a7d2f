//! Independent readers of bills of materials: the libraries of the specifications and, for grype's
//! view, syft. `tests/run` installs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub fn python_with_readers() -> PathBuf {
    super::programs::python_with(
        "readers of SBOMs",
        &[
            "spdx_tools", "cyclonedx", "jsonschema", "in_toto_attestation",
        ],
    )
}

const CHECK: &str = r#"
import json, sys
form, *paths = sys.argv[1:]

def problems(path):
    if form == "spdx":
        from spdx_tools.spdx.parser.error import SPDXParsingError
        from spdx_tools.spdx.parser.parse_anything import parse_file
        from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
        try:
            found = validate_full_spdx_document(parse_file(path), "SPDX-2.3")
            return [problem.validation_message for problem in found]
        except SPDXParsingError as error:
            return error.get_messages()
    if form == "slsa":
        from google.protobuf.json_format import ParseDict, ParseError
        from in_toto_attestation.v1 import statement_pb2
        from in_toto_attestation.v1.statement import Statement
        from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
        text = json.load(open(path))
        try:
            Statement.copy_from_pb(ParseDict(text, statement_pb2.Statement())).validate()
            ParseDict(text["predicate"], provenance_pb2.Provenance())
        except (ParseError, ValueError) as error:
            return [str(error)]
        return []
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(path).read())
    return [str(found)] if found else []

print(json.dumps([problems(path)[:5] for path in paths]))
"#;

/// Errors of documents according to the library of their format: `spdx`, `cyclonedx` or `slsa`.
/// The library starts once for all, which takes a second.
pub fn problems<const N: usize>(
    python: &Path,
    form: &str,
    documents: [&[u8]; N],
) -> [Vec<String>; N] {
    let mut command = Command::new(python);
    command.args(["-c", CHECK, form]);
    let answer = answer_about(&mut command, form, &documents);
    let found: Vec<Vec<String>> = serde_json::from_value(answer).unwrap();
    found.try_into().unwrap()
}

/// A document as read by syft, in syft's own format.
pub fn as_syft_reads_it(python: &Path, form: &str, document: &[u8]) -> Value {
    let mut command = Command::new(python.with_file_name("syft"));
    command
        .args(["convert", "--quiet", "--output", "syft-json"])
        .env("SYFT_CHECK_FOR_APP_UPDATE", "false");
    answer_about(&mut command, form, &[document])
}

/// The JSON that a program prints about documents in files, its last arguments.
fn answer_about(command: &mut Command, form: &str, documents: &[&[u8]]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    for (number, document) in documents.iter().enumerate() {
        let path = folder.path().join(format!("{number}.{form}.json"));
        std::fs::write(&path, document).unwrap();
        command.arg(path);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}
