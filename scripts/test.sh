#!/bin/sh
# Runs the tests of a build directory and ends with one plain line: N passed, M failed.
set -u
build=${1:-build}
log=$build/test.log
# Side by side. Tests use several threads too: those that wait must not keep a core from those that work.
GOMP_SPINCOUNT=${GOMP_SPINCOUNT-1000} ctest --test-dir "$build" -j "$(nproc)" --output-on-failure 2>&1 | tee "$log"
total=$(sed -n 's/.* tests failed out of \([0-9]*\)$/\1/p' "$log")
failed=$(sed -n 's/.* \([0-9]*\) tests failed out of [0-9]*$/\1/p' "$log")
if [ -z "$total" ] || [ "$total" -eq 0 ]; then
    echo "no test was run" >&2
    exit 1
fi
echo "$((total - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
