//! The `wincimg` program: everything it does lives in the library.

fn main() -> std::process::ExitCode {
    wincimg::main()
}
