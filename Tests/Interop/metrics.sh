#!/usr/bin/env bash
# usage: metrics.sh MILLRACE PYTHON_PATH VOICE
# Runs a dialogue with the service's double and checks its metrics and traces with other programs: the page with curl and Prometheus'
# promtool, ten thousand simultaneous requests, and the trace of its turns with OpenTelemetry's protobuf messages.
# PYTHON_PATH contains opentelemetry-proto from PyPI. Prints one line per check; stops at the first failure.
set -euo pipefail
cd "$(dirname "$0")/../.."

millrace=$1 voice=$3
export PYTHONPATH=$2
work=$(mktemp --directory)
dialogue=0
: >"$work/errors"
trap '((dialogue == 0)) || kill "$dialogue" 2>/dev/null || true; rm -rf "$work"' EXIT

fail() { echo "metrics: $*" >&2; cat "$work/errors" >&2; exit 1; }

sox "$voice" --channels 1 --rate 48000 "$work/microphone.wav" pad 0.5 4
timeout --kill-after=10 120 "$millrace" talk graphs/bailian-voice.json --plain --double \
  --scenario graphs/scenarios/front-center.json --set microphone=file --set input="$work/microphone.wav" --set rate=48000 \
  --set loudspeaker=file --set output="$work/answer.wav" --set log=/dev/null --set linger=8000 \
  --metrics 0 --otel "$work/turns.json" </dev/null >"$work/out" 2>"$work/errors" &
dialogue=$!

address=
for _ in {1..600}; do
  address=$(sed -n 's/^metrics: //p' "$work/errors")
  [[ -z $address ]] || break
  kill -0 "$dialogue" 2>/dev/null || fail "the dialogue ended before it printed the address of its metrics"
  sleep 0.1
done
[[ -n $address ]] || fail "the dialogue did not print the address of its metrics"

# Wait until the bot speaks: then all metrics are present.
for _ in {1..600}; do
  curl --silent --show-error --fail --max-time 10 "$address" >"$work/page" || fail "curl cannot read $address"
  ! grep -q '^millrace_node_packets_taken_total{graph="[^"]*",node="speech"} [1-9]' "$work/page" || break
  sleep 0.1
done
grep -q '^millrace_node_packets_taken_total{.*node="speech"} [1-9]' "$work/page" || fail "the page has no packets of a reply"
promtool check metrics <"$work/page" >"$work/lint" 2>&1 || { cat "$work/lint" >&2; fail "promtool rejects the page"; }
[[ ! -s $work/lint ]] || { cat "$work/lint" >&2; fail "promtool reports problems on the page"; }
echo "promtool: $(grep -c '^# TYPE' "$work/page") families, $(grep -vc '^#' "$work/page") samples, no problems"

[[ $(curl --silent --max-time 10 --output /dev/null --write-out '%{http_code} %{content_type}' "$address") == \
  "200 text/plain; version=0.0.4; charset=utf-8" ]] || fail "the content type of the page is wrong"
[[ $(curl --silent --max-time 10 "${address%metrics}health") == ok ]] || fail "the process is not healthy"
for request in "404 GET ${address%metrics}" "405 POST $address" "405 DELETE $address"; do
  read -r status method place <<<"$request"
  [[ $(curl --silent --max-time 10 --output /dev/null --write-out '%{http_code}' --request "$method" "$place") == "$status" ]] ||
    fail "$method $place is not answered with $status"
done
[[ $(curl --silent --max-time 10 --output /dev/null --write-out '%{http_code}' --header 'Host: evil.example' "$address") == 403 ]] ||
  fail "a request for another host name is accepted"
echo "rejected: other paths, other methods, another host name"

status=0
wait "$dialogue" || status=$?
dialogue=0
((status == 0)) || fail "the dialogue ended with status $status"
Tests/Interop/metrics.py trace "$work/turns.json" || fail "the trace is not valid OpenTelemetry JSON"

# Ten thousand simultaneous requests while twenty voices run in real time.
cat >"$work/hum.json" <<'JSON'
{ "millrace": 1, "name": "hum", "clock": "realtime",
  "nodes": { "tone": { "type": "audio.tone", "rate": 16000 }, "meter": { "type": "audio.level" }, "end": { "type": "flow.null" } },
  "links": ["tone -> meter -> end"] }
JSON
: >"$work/errors"
"$millrace" run "$work/hum.json" --instances 20 --metrics 0 --report "$work/hum-report.json" </dev/null 2>"$work/errors" &
hum=$!
trap 'kill "$hum" 2>/dev/null || true; rm -rf "$work"' EXIT
address=
for _ in {1..600}; do
  address=$(sed -n 's/^metrics: //p' "$work/errors")
  [[ -z $address ]] || break
  kill -0 "$hum" 2>/dev/null || fail "the voices ended before the address of their metrics was printed"
  sleep 0.1
done
[[ -n $address ]] || fail "the voices did not print the address of their metrics"
Tests/Interop/metrics.py flood "$address" 10000 || fail "not all of ten thousand simultaneous requests were answered"
kill -TERM "$hum"
status=0
wait "$hum" || status=$?
trap 'rm -rf "$work"' EXIT
((status == 0)) || fail "twenty voices ended with status $status"
Tests/Interop/metrics.py voices "$work/hum-report.json" || fail "the voices were disturbed"
