#!/usr/bin/env bash
# Lints Dockerfiles: annotations of GitHub Actions on stdout, and lint.sarif in the folder $REPORT.
# Exit code as of lint: 0 no errors, 1 at least one error, 2 wrong usage, 3 failed.
#
# Environment: DOCKERFILES, separated by spaces or line ends (wincimg expands their patterns);
# LINT_SHELL, HOST_BUILD, SELECT, IGNORE, REPORT, WINCIMG.
set -uo pipefail

wincimg=${WINCIMG:-wincimg}
report=${REPORT:-wincimg-report}
arguments=()
read -rd '' -a dockerfiles < <(tr '\r' ' ' <<< "${DOCKERFILES:-.}")
if [ -n "${LINT_SHELL:-}" ]; then arguments+=(--shell "$LINT_SHELL"); fi
if [ -n "${HOST_BUILD:-}" ]; then arguments+=(--host-build "$HOST_BUILD"); fi
if [ -n "${SELECT:-}" ]; then arguments+=(--select "$SELECT"); fi
if [ -n "${IGNORE:-}" ]; then arguments+=(--ignore "$IGNORE"); fi
arguments+=(-- "${dockerfiles[@]}")

mkdir -p "$report"
"$wincimg" lint --quiet --format sarif "${arguments[@]}" > "$report/lint.sarif"
code=$?
# Without results, nothing is uploaded.
if [ ! -s "$report/lint.sarif" ]; then rm "$report/lint.sarif"; fi
# Errors of usage are on stderr already.
if [ "$code" -le 1 ]; then
  "$wincimg" lint --format github "${arguments[@]}"
  code=$?
fi

if [ -n "${GITHUB_OUTPUT:-}" ]; then
  if [ "$code" -eq 0 ]; then clean=true; else clean=false; fi
  echo "clean=$clean" >> "$GITHUB_OUTPUT"
fi
exit "$code"
