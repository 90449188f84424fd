"""Peers of aiortc, each a command:

  aio.py serve PORT FOLDER            WHIP at /whip/NAME (records sound to FOLDER/NAME.wav, and echoes it where the offer wants to
                                      receive), WHEP at /whep (a tone of 600 Hz, and pictures), data channels echoed everywhere;
                                      /refuse answers 401 without the key, /slow never answers
  aio.py whip URL FREQUENCY SECONDS [--video h264|vp8] [--data]
  aio.py whep URL FOLDER/NAME.wav SECONDS [--video]
  aio.py bridge JANUS ROOM FREQUENCY FOLDER/NAME.wav

Each prints a line of JSON with what it has seen when it ends. `bridge` prints "ready" when it is in the room, and leaves at SIGTERM.
"""
import argparse
import asyncio
import fractions
import json
import math
import signal
import struct
import sys
import time
import wave

from aiohttp import ClientSession, web
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from av import AudioFrame, VideoFrame

RATE = 48000
# The amplitude of a sine of -20 dBFS (RMS).
LEVEL = 32768 * 0.1 * math.sqrt(2)


class Tone(MediaStreamTrack):
    """A sine of -20 dBFS (RMS) in frames of 20 ms, as loud as `audio.tone` makes it."""

    kind = "audio"

    def __init__(self, frequency):
        super().__init__()
        self.frequency, self.position, self.begun = frequency, 0, None

    async def recv(self):
        self.begun = self.begun or time.monotonic()
        await asyncio.sleep(max(0, self.begun + self.position / RATE - time.monotonic()))
        count = RATE // 50
        step = 2 * math.pi * self.frequency / RATE
        values = [round(LEVEL * math.sin(step * (self.position + index))) for index in range(count)]
        frame = AudioFrame(format="s16", layout="mono", samples=count)
        frame.planes[0].update(struct.pack(f"<{count}h", *values))
        frame.sample_rate, frame.pts, frame.time_base = RATE, self.position, fractions.Fraction(1, RATE)
        self.position += count
        return frame


class Bars(MediaStreamTrack):
    """Pictures of 320 by 240, 15 a second, that grow brighter."""

    kind = "video"

    def __init__(self):
        super().__init__()
        self.number, self.begun = 0, None

    async def recv(self):
        self.begun = self.begun or time.monotonic()
        await asyncio.sleep(max(0, self.begun + self.number / 15 - time.monotonic()))
        frame = VideoFrame(320, 240, "yuv420p")
        for plane, value in zip(frame.planes, (40 + self.number * 3 % 180, 100, 160)):
            plane.update(bytes([value]) * plane.buffer_size)
        frame.pts, frame.time_base = self.number * 6000, fractions.Fraction(1, 90000)
        self.number += 1
        return frame


class Ear:
    """Writes what a track brings to a WAV file, or counts its pictures."""

    def __init__(self, path=None):
        self.path, self.pictures, self.samples, self.file = path, 0, 0, None

    async def listen(self, track):
        try:
            while True:
                frame = await track.recv()
                if track.kind == "video":
                    self.pictures += 1
                    continue
                data = bytes(frame.planes[0])[: frame.samples * 2 * len(frame.layout.channels)]
                if len(frame.layout.channels) == 2:
                    data = b"".join(data[place : place + 2] for place in range(0, len(data), 4))
                if self.file is None and self.path:
                    self.file = wave.open(self.path, "wb")
                    self.file.setnchannels(1)
                    self.file.setsampwidth(2)
                    self.file.setframerate(frame.sample_rate)
                self.samples += frame.samples
                if self.file:
                    self.file.writeframes(data)
        except Exception:  # the track has ended, in whichever way
            self.close()

    def close(self):
        """Nothing is written from here on: a frame that came later would begin the file anew."""
        self.path = None
        if self.file:
            self.file.close()
            self.file = None


class Echo(MediaStreamTrack):
    """Another track's frames."""

    kind = "audio"

    def __init__(self, source):
        super().__init__()
        self.source = source

    async def recv(self):
        return await self.source.recv()


def prefer(connection, kind, codec):
    """Only one codec of a kind in the description."""
    wanted = [entry for entry in RTCRtpSender.getCapabilities(kind).codecs if entry.name.lower() in (codec, "rtx")]
    for transceiver in connection.getTransceivers():
        if transceiver.kind == kind:
            transceiver.setCodecPreferences(wanted)


async def gathered(connection, description):
    """Sets a local description and waits for all of its candidates."""
    await connection.setLocalDescription(description)
    while connection.iceGatheringState != "complete":
        await asyncio.sleep(0.01)
    return connection.localDescription.sdp


def echo_messages(connection):
    @connection.on("datachannel")
    def opened(channel):
        @channel.on("message")
        def message(data):
            channel.send(data)


async def serve(options):
    connections, counts = {}, {}

    labels = {}

    def reply(connection, sdp, label):
        name = str(len(labels))
        connections[name], labels[name] = connection, label
        return web.Response(
            status=201, text=sdp, content_type="application/sdp", headers={"Location": f"/resource/{name}", "ETag": f'"{name}"'}
        )

    async def whip(request):
        connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        name = request.match_info["name"]
        ear = Ear(f"{options.folder}/{name}.wav")
        counts[name] = ear
        echo_messages(connection)
        offer = RTCSessionDescription(await request.text(), "offer")

        @connection.on("track")
        def track(track):
            if name.startswith("echo") and track.kind == "audio":
                connection.addTrack(Echo(track))
            else:
                asyncio.ensure_future(ear.listen(track))

        await connection.setRemoteDescription(offer)
        return reply(connection, await gathered(connection, await connection.createAnswer()), name)

    async def whep(request):
        connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        echo_messages(connection)
        offer = RTCSessionDescription(await request.text(), "offer")
        await connection.setRemoteDescription(offer)
        for transceiver in connection.getTransceivers():
            transceiver.sender.replaceTrack(Tone(600) if transceiver.kind == "audio" else Bars())
            transceiver.direction = "sendonly"
        return reply(connection, await gathered(connection, await connection.createAnswer()), "whep")

    async def leave(request):
        connection = connections.pop(request.match_info["name"], None)
        if connection is None:
            return web.Response(status=404)
        await connection.close()
        return web.Response()

    async def refuse(request):
        if request.headers.get("Authorization") != "Bearer right":
            return web.Response(status=401, text="no")
        return await whip(request)

    async def slow(request):
        await asyncio.sleep(60)

    async def state(request):
        return web.json_response(
            {"open": [labels[name] for name in connections], "pictures": {name: ear.pictures for name, ear in counts.items()},
             "samples": {name: ear.samples for name, ear in counts.items()}})

    application = web.Application(client_max_size=1 << 20)
    application.add_routes([
        web.post("/whip/{name}", whip), web.post("/whep", whep), web.post("/refuse/{name}", refuse), web.post("/slow", slow),
        web.delete("/resource/{name}", leave), web.get("/state", state)])
    runner = web.AppRunner(application)
    await runner.setup()
    for host in ("0.0.0.0", "::"):
        await web.TCPSite(runner, host, options.port).start()
    print("ready", flush=True)
    await asyncio.sleep(options.seconds)


async def post(session, url, sdp, key):
    headers = {"Content-Type": "application/sdp"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    async with session.post(url, data=sdp, headers=headers) as reply:
        text = await reply.text()
        if reply.status != 201:
            raise RuntimeError(f"{reply.status} {text}")
        return text, reply.headers.get("Location")


async def call(options, connection, seen):
    """Offers to a URL, stays for the time, and takes the resource away."""
    async with ClientSession() as session:
        text, location = await post(session, options.url, await gathered(connection, await connection.createOffer()), options.key)
        await connection.setRemoteDescription(RTCSessionDescription(text, "answer"))
        await asyncio.sleep(options.seconds)
        seen["state"] = connection.connectionState
        if location:
            base = "/".join(options.url.split("/")[:3])
            async with session.delete(base + location if location.startswith("/") else location,
                                      headers={"Authorization": f"Bearer {options.key}"} if options.key else {}) as reply:
                seen["deleted"] = reply.status
        await connection.close()


async def whip(options):
    connection, seen = RTCPeerConnection(RTCConfiguration(iceServers=[])), {}
    connection.addTrack(Tone(options.frequency))
    if options.video:
        connection.addTrack(Bars())
        prefer(connection, "video", options.video)
    if options.data:
        messages_of(connection, seen)
    await call(options, connection, seen)
    print(json.dumps(seen))


def messages_of(connection, seen):
    """Sends 20 messages of 4,096 bytes and one of 51,200, and counts what comes back."""
    channel = connection.createDataChannel("data")
    seen.update(sent=0, echoed=0)

    @channel.on("open")
    def opened():
        for size in [4096] * 20 + [51200]:
            channel.send("x" * size)
            seen["sent"] += 1

    @channel.on("message")
    def message(data):
        seen["echoed"] += 1


async def whep(options):
    connection, seen, ear, eye = RTCPeerConnection(RTCConfiguration(iceServers=[])), {}, Ear(options.path), Ear()
    connection.addTransceiver("audio", direction="recvonly")
    if options.video:
        connection.addTransceiver("video", direction="recvonly")

    @connection.on("track")
    def track(track):
        asyncio.ensure_future((ear if track.kind == "audio" else eye).listen(track))

    await call(options, connection, seen)
    ear.close()
    seen["pictures"] = eye.pictures
    print(json.dumps(seen))


async def bridge(options):
    """A participant of Janus' audio bridge."""
    connection, ear = RTCPeerConnection(RTCConfiguration(iceServers=[])), Ear(options.path)
    connection.addTrack(Tone(options.frequency))

    @connection.on("track")
    def track(track):
        asyncio.ensure_future(ear.listen(track))

    async with ClientSession() as session:

        async def ask(url, body):
            async with session.post(url, json={**body, "transaction": str(time.monotonic())}) as reply:
                return await reply.json()

        place = f"{options.url}/{(await ask(options.url, {'janus': 'create'}))['data']['id']}"
        handle = (await ask(place, {"janus": "attach", "plugin": "janus.plugin.audiobridge"}))["data"]["id"]

        async def wait(condition):
            while True:
                async with session.get(place + "?maxev=1") as reply:
                    event = await reply.json()
                if condition(event):
                    return event

        await ask(f"{place}/{handle}", {"janus": "message", "body": {"request": "join", "room": options.room, "display": "aiortc"}})
        await wait(lambda event: event.get("plugindata", {}).get("data", {}).get("audiobridge") == "joined")
        sdp = await gathered(connection, await connection.createOffer())
        await ask(f"{place}/{handle}",
                  {"janus": "message", "body": {"request": "configure", "muted": False}, "jsep": {"type": "offer", "sdp": sdp}})
        answer = await wait(lambda event: "jsep" in event)
        await connection.setRemoteDescription(RTCSessionDescription(answer["jsep"]["sdp"], "answer"))
        # Events are fetched all the time, since Janus ends a session that asks for none.
        leave, events = asyncio.Event(), asyncio.ensure_future(wait(lambda event: False))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave.set)
        print("ready", flush=True)
        await leave.wait()
        events.cancel()
        await ask(place, {"janus": "destroy"})
        ear.close()
        await connection.close()
    print(json.dumps({"samples": ear.samples}))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("serve")
    one.add_argument("port", type=int)
    one.add_argument("folder")
    one.add_argument("--seconds", type=float, default=600)
    one = commands.add_parser("whip")
    one.add_argument("url")
    one.add_argument("frequency", type=int)
    one.add_argument("seconds", type=float)
    one.add_argument("--video", choices=["h264", "vp8"])
    one.add_argument("--data", action="store_true")
    one.add_argument("--key")
    one = commands.add_parser("whep")
    one.add_argument("url")
    one.add_argument("path")
    one.add_argument("seconds", type=float)
    one.add_argument("--video", action="store_true")
    one.add_argument("--key")
    one = commands.add_parser("bridge")
    one.add_argument("url")
    one.add_argument("room", type=int)
    one.add_argument("frequency", type=int)
    one.add_argument("path")
    options = parser.parse_args()
    try:
        asyncio.run(globals()[options.command](options))
    except RuntimeError as problem:
        print(json.dumps({"failed": str(problem)}))
        sys.exit(1)


main()
