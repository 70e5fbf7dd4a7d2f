#!/usr/bin/env bash
# Runs check-compat once and writes its answer in every form that a pipeline shows: Markdown, JUnit,
# SARIF, HTML and JSON, in the folder $REPORT. Ends as check-compat does: 0 everything starts,
# 1 something does not, 2 invalid usage, 3 failure.
#
# Reads from the environment, lists separated by spaces: IMAGES, WORKLOADS, NODES, HOST_BUILDS,
# STRICT, REPORT, WINCIMG.
set -uo pipefail

wincimg=${WINCIMG:-wincimg}
report=${REPORT:-wincimg-report}
arguments=(check-compat)
read -ra images <<< "${IMAGES:-}"
read -ra workloads <<< "${WORKLOADS:-}"
read -ra builds <<< "${HOST_BUILDS:-}"
for file in "${workloads[@]}"; do arguments+=(--workloads "$file"); done
for build in "${builds[@]}"; do arguments+=(--host-build "$build"); done
if [ -n "${NODES:-}" ]; then arguments+=(--nodes "$NODES"); fi
if [ "${STRICT:-false}" = true ]; then arguments+=(--strict); fi
arguments+=(-- "${images[@]}")

mkdir -p "$report"
# One run asks the registries and answers in all forms, so that they cannot differ.
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
