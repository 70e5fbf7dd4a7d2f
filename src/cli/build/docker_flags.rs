//! Flags of `docker build`, buildx and kaniko that `build` does not have, or has with other values.

/// Flags, and what to do in their place. The table in `docs/guide/coming-from.md` has each of them.
const ALTERNATIVES: [(&[&str], &str); 23] = [
    (
        &["--load"],
        "write --output docker-archive:FILE, then run `docker load -i FILE`",
    ),
    (
        &["--secret", "--ssh"],
        "run what needs it before the build, and name the folder of its result: --stage NAME=DIR",
    ),
    (
        &["--build-context"],
        "name a folder or an image in place of a stage: --stage NAME=DIR",
    ),
    (
        &["--platform"],
        "build the Linux image as before, then this one with --join, which keeps the other in the \
         index",
    ),
    (
        &["--cache-to"],
        "remove it, or name the repository for images below steps that run on Windows; layers of \
         the tag are reused anyway",
    ),
    (
        &["--builder"],
        "for lines that require Windows, name a Docker daemon with --docker-host, or pods with \
         --builder kube://NAMESPACE/NAME",
    ),
    (&["--provenance"], "add --provenance without a value"),
    (&["--attest"], "add --sbom spdx or --provenance"),
    (&["-m"], "write --memory"),
    (
        &["--no-cache-filter"],
        "add --no-cache, which is for all stages",
    ),
    (
        &["--check", "--call"],
        "check the Dockerfile with `wincimg lint DIR`",
    ),
    (&["--debug", "-D"], "add --verbose"),
    (
        &["--progress"],
        "remove it: without a terminal, progress is plain lines, and --quiet prints only the result",
    ),
    (
        &["--network", "--add-host"],
        "remove it: only a Docker daemon has containers, in its default network",
    ),
    (
        &["--rm", "--force-rm"],
        "remove it: containers of a build are always removed",
    ),
    (
        &["--squash", "--compress"],
        "remove it: each instruction has its layer, whose compression is --compression",
    ),
    (
        &[
            "-c", "--cpu-period", "--cpu-quota", "--cpu-shares", "--cpuset-cpus", "--cpuset-mems",
            "--memory-swap", "--cgroup-parent", "--shm-size", "--ulimit", "--security-opt",
        ],
        "remove it: of the settings of containers, only --memory and --isolation exist",
    ),
    (
        &["--allow", "--disable-content-trust", "--policy"],
        "remove it: it has no meaning for Windows images",
    ),
    (&["--destination"], "write -t NAME --push"),
    (&["--dockerfile"], "write --file"),
    (
        &["--no-push", "--tar-path"],
        "write --output docker-archive:FILE",
    ),
    (&["--registry-mirror"], "write --base-registry"),
    (
        &["--digest-file"],
        "write --metadata-file, which has the digest",
    ),
];

/// What to do in place of a flag.
pub(in crate::cli) fn in_place_of(flag: &str) -> Option<&'static str> {
    let mut rows = ALTERNATIVES.iter();
    rows.find_map(|(flags, tip)| flags.contains(&flag).then_some(*tip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_names_every_flag_and_the_tips_name_flags_that_exist() {
        let root = env!("CARGO_MANIFEST_DIR");
        let page = std::fs::read_to_string(format!("{root}/docs/guide/coming-from.md")).unwrap();
        for (flags, tip) in ALTERNATIVES {
            for flag in flags {
                assert!(page.contains(&format!("`{flag}")), "{flag}");
            }
            #[cfg(debug_assertions)]
            crate::cli::hint_check::check(tip, std::iter::empty());
            assert_eq!(in_place_of(flags[0]), Some(tip));
        }
        assert_eq!(in_place_of("--push"), None);
    }
}
