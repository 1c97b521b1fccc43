#!/usr/bin/env bash
# run.sh COMPILER_ID MOST_LINES PROGRAM COMPILER FLAGS…: the program must fail with one error that says what it must.
#
# `// expect: REGEX` in the program: the output has a line like this (extended regular expression); at least one is needed.
# `// lines: G C`: at most so many lines from g++ and from clang, where the default of 8 and 14 cannot be held.
set -uo pipefail
id=$1 most=$2 program=$3
shift 3

output=$("$@" -fsyntax-only "$program" 2>&1)
status=$?
problems=()
[ $status -ne 0 ] || problems+=("it compiles")

if read -r gnu clang < <(sed -nE 's|^// lines: ||p' "$program"); then
  [ "$id" = GNU ] && most=$gnu || most=$clang
fi
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
