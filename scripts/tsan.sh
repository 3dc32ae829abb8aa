#!/bin/sh
# Builds the library with ThreadSanitizer in build-tsan/ and runs the test of four threads with sessions on one model.
set -eu
cd "$(dirname "$0")/.."
cmake --preset tsan "$@" >/dev/null
cmake --build build-tsan -j "$(nproc)" --target test_threads
TSAN_OPTIONS=halt_on_error=1 build-tsan/tests/test_threads
