//! The command line.

/// Parses the arguments, runs the command and answers with its exit code.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
