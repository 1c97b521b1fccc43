#!/usr/bin/env bash
# Fuzzes what reads files: scripts/fuzz.sh [SECONDS [TARGET…]]. Each of the targets (fuzz_targets of scripts/common.sh) runs for that
# long, 600 s by default, from tests/fuzz/corpus and from what earlier runs found in build/fuzz/corpus. What breaks one is
# kept as build/fuzz/TARGET-…; run build/fuzz/tests/fuzz/fuzz_TARGET with that file to see it again.
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." || exit 2
. scripts/common.sh

seconds=${1:-600}
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
  printf 'usage: scripts/fuzz.sh [SECONDS [TARGET…]]; a number of seconds is needed, not %s\n' "$seconds" >&2
  exit 2
fi
shift
targets=("$@")
[ ${#targets[@]} -eq 0 ] && targets=("${fuzz_targets[@]}")
build fuzz "${targets[@]/#/fuzz_}" >build/fuzz.build.log 2>&1 || { tail -n 40 build/fuzz.build.log >&2; exit 1; }

status=0
for t in "${targets[@]}"; do
  mkdir -p "build/fuzz/corpus/$t"
  log=build/fuzz/$t.log
  if "build/fuzz/tests/fuzz/fuzz_$t" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=1024 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/$t-" "build/fuzz/corpus/$t" "tests/fuzz/corpus/$t" >"$log" 2>&1; then
    say "fuzz $t: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s, none breaks it"
  else
    tail -n 40 "$log" >&2
    say "fuzz $t: broken, see $log"
    status=1
  fi
done
exit $status
