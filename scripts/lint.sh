#!/bin/sh
# Reports what clang-format, clang-tidy and cppcheck find; changes nothing. Exits non-zero on any finding.
set -u
build=${1:-build}
status=0
for tool in clang-format clang-tidy cppcheck; do
    command -v $tool >/dev/null 2>&1 || { echo "lint: $tool is missing: apt-get install $tool" >&2; exit 1; }
done
files=$(git ls-files '*.c' '*.h')
# shellcheck disable=SC2086
clang-format --dry-run --Werror $files || status=1
sources=$(git ls-files 'src/*.c')
# shellcheck disable=SC2086
clang-tidy --quiet -p "$build" $sources 2>/dev/null || status=1
cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
    -I include -I src src || status=1
exit $status
