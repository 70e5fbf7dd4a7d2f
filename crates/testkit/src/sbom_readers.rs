//! Independent readers of bills of materials: the libraries of the specifications and, for grype's
//! view, syft. `tests/run` installs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub fn python_with_readers() -> PathBuf {
    super::programs::python_with(
        "readers of SBOMs",
        "import spdx_tools, cyclonedx.validation.json, jsonschema, in_toto_attestation.v1.statement",
    )
}

const CHECK: &str = r#"
import json, sys
form, path = sys.argv[1:]
if form == "spdx":
    from spdx_tools.spdx.parser.error import SPDXParsingError
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    try:
        problems = validate_full_spdx_document(parse_file(path), "SPDX-2.3")
        problems = [problem.validation_message for problem in problems]
    except SPDXParsingError as error:
        problems = error.get_messages()
elif form == "slsa":
    from google.protobuf.json_format import ParseDict, ParseError
    from in_toto_attestation.v1 import statement_pb2
    from in_toto_attestation.v1.statement import Statement
    from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
    text = json.load(open(path))
    problems = []
    try:
        Statement.copy_from_pb(ParseDict(text, statement_pb2.Statement())).validate()
        ParseDict(text["predicate"], provenance_pb2.Provenance())
    except (ParseError, ValueError) as error:
        problems = [str(error)]
else:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(path).read())
    problems = [str(found)] if found else []
print(json.dumps(problems[:5]))
"#;

/// Errors of a document according to the library of its format: `spdx`, `cyclonedx` or `slsa`.
pub fn problems(python: &Path, form: &str, document: &[u8]) -> Vec<String> {
    let mut command = Command::new(python);
    command.args(["-c", CHECK, form]);
    let answer = answer_about(&mut command, form, document);
    serde_json::from_value(answer).unwrap()
}

/// A document as read by syft, in syft's own format.
pub fn as_syft_reads_it(python: &Path, form: &str, document: &[u8]) -> Value {
    let mut command = Command::new(python.with_file_name("syft"));
    command
        .args(["convert", "--quiet", "--output", "syft-json"])
        .env("SYFT_CHECK_FOR_APP_UPDATE", "false");
    answer_about(&mut command, form, document)
}

/// The JSON that a program prints about a document in a file, its last argument.
fn answer_about(command: &mut Command, form: &str, document: &[u8]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{form}.json"));
    std::fs::write(&path, document).unwrap();
    let output = command.arg(&path).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}
