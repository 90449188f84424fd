#!/usr/bin/env bash
# Runs the fuzz targets, each for a bounded time, starting from its committed seeds.
#
#   [SEED=N] [RUNS=N] Tests/Fuzz/run.sh SECONDS [TARGET]
#
# SECONDS  how long each target runs at most
# TARGET   only this one, e.g. FuzzJSON; all of them otherwise
# SEED     seed of the random inputs, to repeat a run; a different one each time otherwise
# RUNS     how many inputs each target gets at most; limited by time only otherwise
#
# New inputs and crashes are written to a temporary directory, never to Corpus. After a crash the exit status is 1
# and the input is named; without a crash the directory is removed.
set -euo pipefail

usage() { echo "usage: Tests/Fuzz/run.sh SECONDS [TARGET]" >&2; exit 2; }
[[ $# -ge 1 && $# -le 2 && $1 =~ ^[1-9][0-9]*$ ]] || usage
seconds=$1
cd "$(dirname "${BASH_SOURCE[0]}")"

all=$(cd Sources && echo Fuzz*)
targets=${2:-$all}
[[ -d Sources/$targets || $# -eq 1 ]] || { echo "run.sh: no target $targets; there are: $all" >&2; exit 2; }

# The backtracer would hang in a process that libFuzzer is terminating.
export SWIFT_BACKTRACE=enable=no
# -enable-testing: some parsers are internal to their modules.
build=(-c release --sanitize=fuzzer -Xswiftc -enable-testing --scratch-path ../../.build-fuzz)
findings=$(mktemp -d "${TMPDIR:-/tmp}/millrace-fuzz.XXXXXX")
status=0

for target in $targets; do
  # One product at a time: each has its own main from libFuzzer.
  swift build "${build[@]}" --product "$target"
  binary=$(swift build "${build[@]}" --show-bin-path)/$target
  name=$(tr '[:upper:]' '[:lower:]' <<<"${target#Fuzz}")
  mkdir -p "$findings/$name"
  dictionary=()
  [[ -f Corpus/$name.dict ]] && dictionary=("-dict=Corpus/$name.dict")
  echo "== $target, $seconds s =="
  # New inputs go to the first directory; the second is only read. The outer timeout is for an input that never ends.
  if timeout --kill-after=10 $((seconds + 120)) "$binary" "$findings/$name" "Corpus/$name" "${dictionary[@]}" \
    -seed="${SEED:-0}" -runs="${RUNS:--1}" -max_total_time="$seconds" -timeout=10 -max_len=8192 -print_final_stats=1 \
    -artifact_prefix="$findings/$name-" &> "$findings/$name.log"
  then
    grep -E '^(Done|stat::)' "$findings/$name.log"
  else
    tail -n 60 "$findings/$name.log"
    status=1
  fi
done

if [[ $status -ne 0 ]]; then
  echo "fuzzing failed; the inputs are in $findings:" >&2
  find "$findings" -maxdepth 1 -type f >&2
  exit 1
fi
rm -rf "$findings"
