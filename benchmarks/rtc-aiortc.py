#!/usr/bin/env python3
"""From the request to the first decoded sound in a pair of aiortc peers: what `millrace bench rtc` measures its own calls beside.

Both peers are in this program, on this machine's address, without STUN servers. The caller posts its offer to the other peer over HTTP on
loopback, as WHIP does (RFC 9725), and the other answers with 201 and its description. The voice is a tone of 1 kHz, so that what is heard is
not the silence that aiortc plays before anything has come. Prints one line of JSON: {"ms": [...]} or {"leftOut": "why"}.

  rtc-aiortc.py [--rounds 20]

Needs aiortc 1.16 (python3 -m pip install aiortc); with another folder for packages: PYTHONPATH=FOLDER."""
import argparse
import asyncio
import fractions
import json
import math
import sys
import time

try:
    from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
    from av import AudioFrame
except ImportError as problem:
    print(json.dumps({"leftOut": f"{problem}; python3 -m pip install aiortc"}))
    sys.exit(0)

RATE = 48_000
FRAME = 960  # 20 ms
AMPLITUDE = 0.2
# A tenth of the tone: quieter is silence. As in millrace bench.
AUDIBLE = AMPLITUDE * 32_767 / math.sqrt(2) / 10
PATIENCE = 30
SAMPLES = b"".join(
    round(AMPLITUDE * 32_767 * math.sin(2 * math.pi * index / 48)).to_bytes(2, "little", signed=True)
    for index in range(FRAME)
)


class Tone(MediaStreamTrack):
    """A tone in frames of 20 ms, each when its last sample was captured."""

    kind = "audio"

    def __init__(self):
        super().__init__()
        self.begin = time.monotonic()
        self.number = 0

    async def recv(self):
        due = self.begin + (self.number + 1) * FRAME / RATE
        await asyncio.sleep(max(0, due - time.monotonic()))
        frame = AudioFrame(format="s16", layout="mono", samples=FRAME)
        frame.planes[0].update(SAMPLES)
        frame.sample_rate = RATE
        frame.time_base = fractions.Fraction(1, RATE)
        frame.pts = self.number * FRAME
        self.number += 1
        return frame


def level(frame):
    """The root mean square of a frame of 16-bit samples."""
    samples = memoryview(bytes(frame.planes[0])).cast("h")[: frame.samples * len(frame.layout.channels)]
    return math.sqrt(sum(sample * sample for sample in samples) / max(1, len(samples)))


async def read_message(reader):
    """The head and the content of a message of HTTP."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(
        (int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0
    )
    return head, (await reader.readexactly(length)).decode()


def message(start, body):
    """A message of HTTP with a description."""
    content = body.encode()
    head = f"{start}\r\nHost: localhost\r\nContent-Type: application/sdp\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


class Callee:
    """An endpoint that takes one publisher, and notes when it first hears something."""

    def __init__(self):
        self.peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.heard = asyncio.get_running_loop().create_future()
        self.listening = None
        self.peer.on("track", self.track)

    def track(self, track):
        self.listening = asyncio.ensure_future(self.listen(track))

    async def listen(self, track):
        while not self.heard.done():
            if level(await track.recv()) > AUDIBLE:
                self.heard.set_result(time.monotonic())

    async def serve(self, reader, writer):
        _, offer = await read_message(reader)
        await self.peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await self.peer.setLocalDescription(await self.peer.createAnswer())
        writer.write(message("HTTP/1.1 201 Created", self.peer.localDescription.sdp))
        await writer.drain()
        writer.close()


async def call():
    """Milliseconds of one call."""
    callee = Callee()
    server = await asyncio.start_server(callee.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    begin = time.monotonic()
    caller = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    try:
        caller.addTransceiver(Tone(), direction="sendonly")
        await caller.setLocalDescription(await caller.createOffer())
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(message("POST /call HTTP/1.1", caller.localDescription.sdp))
        _, answer = await read_message(reader)
        writer.close()
        await caller.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        return 1e3 * (await asyncio.wait_for(callee.heard, PATIENCE) - begin)
    finally:
        server.close()
        if callee.listening:
            callee.listening.cancel()
        await caller.close()
        await callee.peer.close()


async def measure(rounds):
    # The first call also loads libraries.
    await call()
    return [await call() for _ in range(rounds)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    try:
        print(json.dumps({"ms": asyncio.run(measure(rounds))}))
    except (OSError, asyncio.TimeoutError) as problem:
        print(json.dumps({"leftOut": f"aiortc's call failed: {problem!r}"}))


if __name__ == "__main__":
    main()
