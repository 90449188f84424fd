#!/usr/bin/env bash
# usage: speech-server.sh PROGRAM
# Starts Examples/SpeechServer on free ports, requests speech, checks the responses with opusinfo, and ends the server with SIGTERM.
set -euo pipefail

program=$1
work=$(mktemp --directory)
server=0
: >"$work/out" >"$work/errors"
trap '((server == 0)) || kill -KILL "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

fail() { echo "speech server: $*" >&2; cat "$work/errors" >&2; exit 1; }

"$program" 0 0 >"$work/out" 2>"$work/errors" &
server=$!
say='' metrics=''
for _ in {1..600}; do
  read -r say metrics <"$work/out" || true
  [[ -z $metrics ]] || break
  kill -0 "$server" 2>/dev/null || fail "it ended immediately"
  sleep 0.1
done
[[ -n $metrics ]] || fail "it did not print its addresses"

# The second text has characters that a shell would interpret.
for text in 'Hello from a graph' '--help; $(exit 1) `exit 2` "quoted" -- &'; do
  curl --silent --show-error --fail --max-time 60 --get --data-urlencode "text=$text" "$say" --output "$work/said.opus" ||
    fail "it does not speak"
  opusinfo "$work/said.opus" >"$work/info" 2>&1 || { cat "$work/info" >&2; fail "opusinfo rejects the file"; }
  grep -q 'Playback length: 0m:0[1-9]' "$work/info" || { cat "$work/info" >&2; fail "the file has the wrong length"; }
  echo "\"$text\": $(grep 'Playback length' "$work/info" | tr -s '\t ' ' ')"
done
for number in {1..8}; do
  curl --silent --fail --max-time 60 "$say?text=Number+$number" --output "$work/$number.opus" &
  voices[number]=$!
done
for voice in "${voices[@]}"; do wait "$voice" || fail "eight simultaneous requests failed"; done
[[ $(curl --silent --max-time 10 --output /dev/null --write-out '%{http_code}' "$say") == 404 ]] || fail "a request without a text is accepted"
curl --silent --fail --max-time 10 "$metrics" | grep -q '^millrace_runs_created_total{graph="say"} 10$' ||
  fail "the metrics do not count ten runs"
echo "the metrics count ten runs"

kill -TERM "$server"
status=0
wait "$server" || status=$?
server=0
((status == 0)) || fail "it ended with status $status"
