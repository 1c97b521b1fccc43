#!/usr/bin/env bash
# run.sh MOST_LINES PROGRAM COMPILER FLAGS…: the program must fail with one error that says what it must.
#
# `// expect: REGEX` in the program: the output has a line like this (extended regular expression); at least one is needed.
set -uo pipefail
most=$1 program=$2
shift 2

output=$("$@" -fsyntax-only "$program" 2>&1)
status=$?
problems=()
[ $status -ne 0 ] || problems+=("it compiles")

lines=$(grep -c '' <<<"$output")
errors=$(grep -c ' error: ' <<<"$output")
[ "$lines" -le "$most" ] || problems+=("$lines lines of output, at most $most are right")
[ "$errors" -eq 1 ] || problems+=("$errors errors, exactly one is right")

mapfile -t expected < <(sed -nE 's|^// expect: ||p' "$program")
[ ${#expected[@]} -gt 0 ] || problems+=("no '// expect: ' line in the program")
for e in "${expected[@]}"; do
  grep -qE -e "$e" <<<"$output" || problems+=("no line like: $e")
done

[ ${#problems[@]} -eq 0 ] && exit 0
printf '%s\n' "$program:" "${problems[@]}"
printf -- '--- output of the compiler\n%s\n' "$output"
exit 1
