//! An independent PowerShell parser, for generated scripts.

/// Syntax errors of a script according to a PowerShell grammar, by line.
pub fn syntax_errors(script: &str) -> Vec<String> {
    let mut parser = tree_sitter::Parser::new();
    parser
        .set_language(&tree_sitter_powershell::LANGUAGE.into())
        .unwrap();
    let script = script.trim_start_matches('\u{feff}');
    let tree = parser.parse(script, None).unwrap();
    let mut errors = Vec::new();
    let mut rest = vec![tree.root_node()];
    while let Some(node) = rest.pop() {
        if node.is_error() || node.is_missing() {
            let line = node.start_position().row;
            errors.push(format!("{}: {:?}", line + 1, script.lines().nth(line)));
        }
        let mut cursor = node.walk();
        rest.extend(
            node.children(&mut cursor)
                .filter(tree_sitter::Node::has_error),
        );
    }
    errors
}
