#!/usr/bin/env bash
# usage: push-to-bot.sh PROGRAM
# Runs Examples/PushToBot against the service's double, and checks that it prints an answer and that its audio was played.
set -euo pipefail

output=$(mktemp)
trap 'rm -f "$output"' EXIT
"$1" | tee "$output"
fail() { echo "push to bot: $*" >&2; exit 1; }
grep -q '^bot: .' "$output" || fail "no answer was printed"
# More than half a second of it.
grep -qE '^(0\.[5-9]|[1-9])[0-9.]* s of the answer were played$' "$output" || fail "the answer was not played"
