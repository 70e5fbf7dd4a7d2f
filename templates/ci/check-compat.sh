#!/usr/bin/env bash
# Runs check-compat and writes its report as Markdown, JUnit, SARIF, HTML and JSON to the folder
# $REPORT. Exit code as of check-compat: 0 everything starts, 1 something does not, 2 wrong usage,
# 3 failed.
#
# Environment, with lists separated by spaces or line ends: IMAGES, WORKLOADS (files, folders and
# patterns), NODES, HOST_BUILDS, STRICT, REPORT, WINCIMG.
set -uo pipefail

wincimg=${WINCIMG:-wincimg}
report=${REPORT:-wincimg-report}
arguments=(check-compat)
list() { tr '\r' ' ' <<< "$1"; }
read -rd '' -a images < <(list "${IMAGES:-}")
read -rd '' -a workloads < <(list "${WORKLOADS:-}")
read -rd '' -a builds < <(list "${HOST_BUILDS:-}")
for file in "${workloads[@]}"; do arguments+=(--workloads "$file"); done
for build in "${builds[@]}"; do arguments+=(--host-build "$build"); done
if [ -n "${NODES:-}" ]; then arguments+=(--nodes "$NODES"); fi
if [ "${STRICT:-false}" = true ]; then arguments+=(--strict); fi
arguments+=(-- "${images[@]}")

mkdir -p "$report"
# A single run for all formats, so that they cannot differ.
"$wincimg" "${arguments[0]}" --plan \
  --report "markdown:$report/check-compat.md" \
  --report "junit:$report/check-compat.xml" \
  --report "sarif:$report/check-compat.sarif" \
  --report "html:$report/check-compat.html" \
  --report "json:$report/check-compat.json" \
  "${arguments[@]:1}"
code=$?

if [ -n "${GITHUB_OUTPUT:-}" ]; then
  if [ "$code" -eq 0 ]; then compatible=true; else compatible=false; fi
  echo "compatible=$compatible" >> "$GITHUB_OUTPUT"
fi
exit "$code"
