#!/bin/sh
# Reports what clang-format, clang-tidy, cppcheck and shellcheck find; changes nothing. Exits non-zero on any finding.
# Takes the directory of a debug build: what the asserts say is then known to clang-tidy.
set -u
build=${1:-build-debug}
status=0
for tool in clang-format clang-tidy cppcheck shellcheck; do
    command -v $tool >/dev/null 2>&1 || { echo "lint: $tool is missing: apt-get install $tool" >&2; exit 1; }
done
git ls-files -z '*.c' '*.h' | xargs -0 clang-format --dry-run --Werror || status=1
git ls-files -z 'src/*.c' 'bench/bench_*.c' | xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build" 2>/dev/null || status=1
cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
    -I include -I src src bench/bench_*.c || status=1
git ls-files -z 'scripts/*.sh' 'bench/*.sh' 'examples/*.sh' 'tests/cli/run.sh' 'tests/headers/*.sh' \
    'tests/install/*.sh' 'tests/real/*.sh' 'tests/stress/*.sh' 'bindings/python/tests/*.sh' | xargs -0 shellcheck || status=1
exit $status
