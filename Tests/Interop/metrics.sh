#!/usr/bin/env bash
# usage: metrics.sh MILLRACE PYTHON_PATH VOICE
# Runs a dialogue with the service's double, reads its page of metrics as others do, and looks at what they say of it:
# curl and promtool of Prometheus at the page, ten thousand requests at once, OpenTelemetry's own messages at the trace of its turns.
# PYTHON_PATH has opentelemetry-proto from PyPI. Prints a line a check; fails on the first that does not hold.
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
  kill -0 "$dialogue" 2>/dev/null || fail "the dialogue ended before it told where its metrics are"
  sleep 0.1
done
[[ -n $address ]] || fail "the dialogue does not tell where its metrics are"

# Until the bot has something to say: then every kind of figure is there.
for _ in {1..600}; do
  curl --silent --show-error --fail --max-time 10 "$address" >"$work/page" || fail "curl cannot read $address"
  ! grep -q '^millrace_node_packets_taken_total{graph="[^"]*",node="speech"} [1-9]' "$work/page" || break
  sleep 0.1
done
grep -q '^millrace_node_packets_taken_total{.*node="speech"} [1-9]' "$work/page" || fail "no reply is on the page"
promtool check metrics <"$work/page" >"$work/lint" 2>&1 || { cat "$work/lint" >&2; fail "promtool refuses the page"; }
[[ ! -s $work/lint ]] || { cat "$work/lint" >&2; fail "promtool finds fault with the page"; }
echo "promtool: $(grep -c '^# TYPE' "$work/page") families, $(grep -vc '^#' "$work/page") samples, no fault"

[[ $(curl --silent --max-time 10 --output /dev/null --write-out '%{http_code} %{content_type}' "$address") == \
  "200 text/plain; version=0.0.4; charset=utf-8" ]] || fail "the page does not say what it is"
[[ $(curl --silent --max-time 10 "${address%metrics}health") == ok ]] || fail "the process is not healthy"
for wish in "404 GET ${address%metrics}" "405 POST $address" "405 DELETE $address"; do
  read -r status method place <<<"$wish"
  [[ $(curl --silent --max-time 10 --output /dev/null --write-out '%{http_code}' --request "$method" "$place") == "$status" ]] ||
    fail "$method $place is not answered with $status"
done
[[ $(curl --silent --max-time 10 --output /dev/null --write-out '%{http_code}' --header 'Host: evil.example' "$address") == 403 ]] ||
  fail "a foreign host name is let in"
echo "refusals: other paths, other methods, another host name"

status=0
wait "$dialogue" || status=$?
dialogue=0
: >"$work/errors"
((status == 0)) || fail "the dialogue ended with status $status"
Tests/Interop/metrics.py trace "$work/turns.json" || fail "the trace is none of OpenTelemetry's"

# Ten thousand at once, while twenty voices run in real time and until they are asked to end.
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
  sleep 0.1
done
Tests/Interop/metrics.py flood "$address" 10000 || fail "ten thousand requests at once were not all answered"
kill -TERM "$hum"
status=0
wait "$hum" || status=$?
((status == 0)) || fail "twenty voices ended with status $status"
Tests/Interop/metrics.py voices "$work/hum-report.json" || fail "the voices were held up"
