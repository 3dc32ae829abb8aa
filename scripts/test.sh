#!/bin/sh
# Runs the tests of a build directory and ends with one plain line: N passed, M failed.
#
#   scripts/test.sh [BUILD [OPTIONS OF CTEST]]
#
# Tests that could not run here (no registry to fetch a model from) are in neither number: the line then ends in
# ", K skipped", and the reasons stand before it.
set -u
build=${1:-build}
[ $# -eq 0 ] || shift
log=$build/test.log
# Side by side. Tests use several threads too: those that wait must not keep a core from those that work.
GOMP_SPINCOUNT=${GOMP_SPINCOUNT-1000} ctest --test-dir "$build" -j "$(nproc)" --output-on-failure "$@" 2>&1 | tee "$log"
total=$(sed -n 's/.* tests failed out of \([0-9]*\)$/\1/p' "$log")
failed=$(sed -n 's/.* \([0-9]*\) tests failed out of [0-9]*$/\1/p' "$log")
if [ -z "$total" ] || [ "$total" -eq 0 ]; then
    echo "no test was run" >&2
    exit 1
fi
skipped=$(grep -c '\*\*\*Skipped' "$log")
end=
if [ "$skipped" -gt 0 ]; then
    grep -h '^skipped: ' "$build/Testing/Temporary/LastTest.log"
    end=", $skipped skipped"
fi
echo "$((total - failed - skipped)) passed, $failed failed$end"
[ "$failed" -eq 0 ]
