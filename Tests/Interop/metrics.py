#!/usr/bin/env python3
"""usage: metrics.py flood ADDRESS COUNT | metrics.py voices REPORT | metrics.py trace FILE

flood: sends COUNT simultaneous requests to ADDRESS, each on its own connection; all must be answered with 200.
voices: checks the report of runs with a tone of 20 ms packets; no packet may be missing.
trace: parses FILE as an OpenTelemetry trace (OTLP/JSON) and checks its spans.
"""

import asyncio
import base64
import json
import resource
import sys
import time
from urllib.parse import urlsplit


async def ask(place, gate):
    # Limits the number of open sockets; further requests start as others end.
    async with gate:
        for _ in range(20):
            try:
                reader, writer = await asyncio.open_connection(place.hostname, place.port)
                writer.write(f"GET {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n".encode())
                answer = await reader.read()
                writer.close()
                return answer.startswith(b"HTTP/1.1 200 ") and b"millrace_runs{" in answer
            except ConnectionError:
                # The system's queue was full.
                await asyncio.sleep(0.2)
        return False


async def flood(address, count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gate = asyncio.Semaphore(min(count, max(64, hard - 64)))
    start = time.monotonic()
    place = urlsplit(address)
    answers = await asyncio.wait_for(asyncio.gather(*(ask(place, gate) for _ in range(count))), 300)
    print(f"flood: {sum(answers)} of {count} requests answered in {time.monotonic() - start:.1f} s")
    return all(answers)


def voices(path):
    with open(path, encoding="utf-8") as file:
        runs = json.load(file)["runs"]
    oldest = 0
    for run in runs:
        tone, end = run["nodes"][0], run["nodes"][-1]
        assert tone["packetsOut"] >= run["duration"] / 20 - 2, f"{run['name']} emitted {tone['packetsOut']} packets"
        assert end["packetsIn"] == tone["packetsOut"], f"{run['name']} lost packets"
        oldest = max(oldest, end["ages"]["p99"])
    print(f"voices: {len(runs)} of {runs[0]['duration'] / 1e3:.0f} s, no packet lost; p99 of the packet age {oldest:.1f} ms")
    return True


def trace(path):
    from google.protobuf import json_format
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    # OTLP writes ids in hexadecimal, where protobuf's JSON mapping uses Base64.
    for part in data["resourceSpans"]:
        for scope in part["scopeSpans"]:
            for span in scope["spans"]:
                for name, size in (("traceId", 16), ("spanId", 8), ("parentSpanId", 8)):
                    if name in span:
                        value = bytes.fromhex(span[name])
                        assert len(value) == size, f"{name} has {len(value)} bytes"
                        span[name] = base64.b64encode(value).decode()
    message = json_format.ParseDict(data, TracesData())
    names = {a.key: a.value.string_value for a in message.resource_spans[0].resource.attributes}
    assert names.get("service.name") == "millrace", names
    spans = [s for r in message.resource_spans for scope in r.scope_spans for s in scope.spans]
    roots = [s for s in spans if not s.parent_span_id]
    assert roots and all(s.name == "turn" for s in roots), "there is no turn"
    for root in roots:
        parts = [s for s in spans if s.parent_span_id == root.span_id]
        assert all(s.trace_id == root.trace_id for s in parts)
        assert all(root.start_time_unix_nano <= s.start_time_unix_nano <= s.end_time_unix_nano <= root.end_time_unix_nano for s in parts)
        assert abs(time.time() - root.start_time_unix_nano / 1e9) < 3_600, "the start time is not that of today"
        lengths = ", ".join(f"{s.name} {(s.end_time_unix_nano - s.start_time_unix_nano) / 1e6:.0f} ms" for s in parts)
        print(f"trace: a turn of {(root.end_time_unix_nano - root.start_time_unix_nano) / 1e9:.2f} s: {lengths}")
    assert any(len([s for s in spans if s.parent_span_id == r.span_id]) >= 4 for r in roots), "no turn has all its parts"
    return True


if sys.argv[1] == "flood":
    sys.exit(0 if asyncio.run(flood(sys.argv[2], int(sys.argv[3]))) else 1)
sys.exit(0 if (voices if sys.argv[1] == "voices" else trace)(sys.argv[2]) else 1)
