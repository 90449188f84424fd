"""cases.py MILLRACE AIORTC_FOLDER [CASE...]: the cases of rtc.sh. See there."""
import concurrent.futures
import itertools
import json
import pathlib
import re
import subprocess
import sys
import time
import traceback

import network
import sound
from bench import HERE, PATIENCE, Bench, Failure, end, finish, kill, succeed
from network import FAR, FAR6, FAR_LOSSY, NEAR, NEAR6, NEAR_LOSSY

JANUS, JANUS_LITE, AIO, TURN = 8088, 8089, 8070, 3478
# Pairs for RTP and RTCP.
PLAIN_PORTS = itertools.count(6000, 4)
CASES = {}


def case(function):
    """Registers a case under its name."""
    CASES[function.__name__.replace("_", "-")] = function
    return function


# Nodes


def tone(frequency):
    return {"type": "audio.tone", "frequency": frequency, "rate": 48000, "level": -20}


def ear(path):
    return {"type": "audio.write", "path": path, "sample": "s16"}


def program(script):
    """A shell that writes texts or events, a line each."""
    return {"type": "process.pipe", "command": ["sh", "-c", script], "mode": "lines"}


def log(path):
    return {"type": "event.log", "path": path}


def pictures(codec, path):
    """A film that repeats, encoded."""
    return (
        {"film": {"type": "video.read", "path": path, "pace": True, "loop": True},
         "encode": {"type": "video.encode", "codec": codec, "bitrate": 300000}},
        ["film -> encode.video", "encode -> call.video", "call.events -> encode.control"])


def film(bench):
    """A short film of FFmpeg's test picture."""
    path = bench.folder / "film.mp4"
    if not path.exists():
        subprocess.run(
            ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=15:duration=4", "-c:v", "libx264",
             "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-y", str(path)], check=True, stdin=subprocess.DEVNULL)
    return str(path)


def talk(bench, name, node, frequency=440, seconds=5, hears=True, video=None, environment=None):
    """Millrace with one node that sends a tone, and hears what comes."""
    nodes = {"call": {"plain": True, **node}, "log": log(bench.path(f"{name}.jsonl"))}
    links = ["call.events -> log.in1"]
    if frequency:
        nodes["tone"] = tone(frequency)
        links.append("tone -> call.audio")
    if hears:
        nodes["ear"] = ear(bench.path(f"{name}.wav"))
        links.append("call.audio -> ear")
    if video:
        more, ways = pictures(video, film(bench))
        nodes.update(more)
        links += ways
    return bench.run(name, nodes, links, seconds, environment)


def watch(bench, name, node, seconds, size=(320, 240)):
    """Millrace that counts the pictures which come, and hears."""
    nodes = {
        "call": {"plain": True, **node}, "log": log(bench.path(f"{name}.jsonl")), "ear": ear(bench.path(f"{name}.wav")),
        "decode": {"type": "video.decode", "width": size[0], "height": size[1]},
        "jpeg": {"type": "video.sample", "interval": 200}, "write": {"type": "image.write", "path": bench.path(name + "-{number}.jpg")},
    }
    links = ["call.events -> log.in1", "call.audio -> ear", "call.video -> decode -> jpeg -> write", "decode.events -> call.control"]
    return bench.run(name, nodes, links, seconds)


def pictures_of(bench, name):
    return len(list(bench.folder.glob(f"{name}-*.jpg")))


def said(bench, file, event, /, **members):
    """The events of a kind with these members."""
    return [one for one in bench.events(f"{file}.jsonl")
            if one.get("event") == event and all(one.get(key) == value for key, value in members.items())]


def state(bench):
    """What the server of aiortc has heard so far."""
    out = subprocess.run(bench.network.command("far", "curl", "--silent", "--max-time", "5", f"http://127.0.0.1:{AIO}/state"),
                         capture_output=True, text=True)
    return json.loads(out.stdout)


# Janus


def janus(bench, port=JANUS, scheme="http"):
    return f"ws://{FAR}:{port + 100}" if scheme == "ws" else f"http://{FAR}:{port}/janus"


@case
def janus_echo_http(bench):
    succeed(talk(bench, "echo-http", {"type": "rtc.janus", "url": janus(bench), "plugin": "echotest"}), 60)
    return sound.check_tone(bench.path("echo-http.wav"), [440])


@case
def janus_echo_websocket(bench):
    succeed(talk(bench, "echo-ws", {"type": "rtc.janus", "url": janus(bench, scheme="ws"), "plugin": "echotest"}), 60)
    return sound.check_tone(bench.path("echo-ws.wav"), [440])


@case
def janus_echo_video(bench):
    nodes = {"call": {"type": "rtc.janus", "url": janus(bench), "plugin": "echotest", "plain": True, "videoCodec": "vp8"},
             "log": log(bench.path("echo-video.jsonl")), "tone": tone(440), "ear": ear(bench.path("echo-video.wav")),
             "decode": {"type": "video.decode", "width": 320, "height": 240}, "jpeg": {"type": "video.sample", "interval": 200},
             "write": {"type": "image.write", "path": bench.path("echo-video-{number}.jpg")}}
    more, ways = pictures("vp8", film(bench))
    process = bench.run("echo-video", {**nodes, **more}, [
        "call.events -> log.in1", "tone -> call.audio", "call.audio -> ear", "call.video -> decode -> jpeg -> write",
        "decode.events -> call.control", *ways], 6)
    succeed(process, 60)
    count = pictures_of(bench, "echo-video")
    if count < 10:
        raise Failure(f"only {count} pictures came back")
    return f"{count} pictures, " + sound.check_tone(bench.path("echo-video.wav"), [440])


@case
def janus_ice_lite(bench):
    succeed(talk(bench, "janus-lite", {"type": "rtc.janus", "url": janus(bench, JANUS_LITE), "plugin": "echotest"}), 60)
    return sound.check_tone(bench.path("janus-lite.wav"), [440])


def mixed(bench, room):
    """Two of Millrace and one of aiortc in a room: each hears the others and not itself."""
    name = f"bridge-{room}"
    node = {"type": "rtc.janus", "url": janus(bench), "plugin": "audiobridge", "room": str(room)}
    # In the room before the others come, and until they have gone.
    third = bench.serve("python3", HERE / "aio.py", "bridge", janus(bench), room, 900, bench.path(name + "-c.wav"),
                        log=f"{name}-c.log", until="ready", seconds=PATIENCE)
    try:
        first = talk(bench, name + "-a", {**node, "display": "a"}, 440, 9)
        second = talk(bench, name + "-b", {**node, "display": "b"}, 600, 9)
        for process in (first, second):
            succeed(process, 60)
    finally:
        end(third)
    if third.returncode:
        raise Failure(f"aiortc: status {third.returncode}: {pathlib.Path(bench.path(name + '-c.log')).read_text()[-300:]}")
    # Everybody hears most where all three are there.
    seen = [sound.check_tone(bench.path(f"{name}-{one}.wav"), wanted, absent, is_loudest=True) for one, wanted, absent in (
        ("a", [600, 900], [440]), ("b", [440, 900], [600]))]
    rate, loudest = sound.loudest(bench.path(f"{name}-c.wav"))
    shares = [sound.tone(loudest, rate, frequency) for frequency in (440, 600, 900)]
    if min(shares[:2]) < 0.3 or shares[2] > 0.05:
        raise Failure(f"aiortc heard {shares}")
    if not said(bench, f"{name}-a", "peer", change="joined"):
        raise Failure("no event tells who has joined")
    return f"{seen[0]}; {seen[1]}"


@case
def janus_bridge_48(bench):
    return mixed(bench, 1234)


@case
def janus_bridge_16(bench):
    return mixed(bench, 1600)


@case
def janus_wrong_pin(bench):
    process = talk(bench, "pin", {"type": "rtc.janus", "url": janus(bench), "plugin": "audiobridge", "room": "1700", "pin": "shut"})
    _, errors = finish(process, 60)
    if process.returncode != 4 or "pin" not in errors.lower():
        raise Failure(f"status {process.returncode}: {errors.strip()}")
    if "shut" in errors:
        raise Failure("the pin is in the message")
    return errors.strip().splitlines()[-1][:110]


@case
def janus_no_such_room(bench):
    process = talk(bench, "no-room", {"type": "rtc.janus", "url": janus(bench), "plugin": "videoroom", "room": "99"})
    _, errors = finish(process, 60)
    if process.returncode == 0 or "99" not in errors:
        raise Failure(f"status {process.returncode}: {errors.strip()}")
    return errors.strip().splitlines()[-1][:110]


@case
def janus_video_room(bench):
    node = {"type": "rtc.janus", "url": janus(bench), "plugin": "videoroom", "room": "1234"}
    sender = talk(bench, "room-a", {**node, "display": "a"}, 440, 10, hears=False, video="h264")
    viewer = watch(bench, "room-b", {**node, "display": "b"}, 9)
    for process in (sender, viewer):
        succeed(process, 60)
    count = pictures_of(bench, "room-b")
    if count < 10:
        raise Failure(f"only {count} pictures came")
    return f"{count} pictures, " + sound.check_tone(bench.path("room-b.wav"), [440], seconds=0.6)


@case
def janus_streaming(bench):
    source = bench.start(
        "far", "ffmpeg", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "sine=frequency=700:sample_rate=48000", "-t", 14, "-c:a",
        "libopus", "-ac", 2, "-payload_type", 111, "-f", "rtp", "rtp://127.0.0.1:5002", log=bench.path("streaming.log"))
    try:
        succeed(talk(bench, "streaming", {"type": "rtc.janus", "url": janus(bench), "plugin": "streaming", "stream": "1"}, None), 60)
    finally:
        end(source)
    return sound.check_tone(bench.path("streaming.wav"), [700])


@case
def janus_text_room(bench):
    node = {"type": "rtc.janus", "url": janus(bench), "plugin": "textroom", "room": "1234", "plain": True}

    go = pathlib.Path(bench.path("text-go"))

    def chat(name):
        nodes = {"call": {**node, "display": name}, "log": log(bench.path(f"text-{name}.jsonl")),
                 "say": program(f"until [ -e '{go}' ]; do sleep 0.1; done; echo 'hello from {name}'; sleep {PATIENCE}")}
        return bench.running(f"text-{name}", nodes, ["call.events -> log.in1", "say -> call.data"])

    def has(name, event, text="", **members):
        path = pathlib.Path(bench.path(f"text-{name}.jsonl"))
        return path.exists() and any(text in json.dumps(one) for one in said(bench, f"text-{name}", event, **members))

    with chat("ann"), chat("bob"):
        wait_until(lambda: all(has(name, "peer", change="joined") for name in ("ann", "bob")), "not both are in the room", PATIENCE)
        go.touch()
        wait_until(lambda: has("ann", "data", "hello from bob") and has("bob", "data", "hello from ann"), "a message has not come")
    return "a message each way"


# aiortc


@case
def aiortc_whip_echo(bench):
    node = {"type": "rtc.whip", "url": f"http://{FAR}:{AIO}/whip/echo-first", "mode": "sendrecv"}
    succeed(talk(bench, "whip-echo", node), 60)
    if "echo-first" in state(bench)["open"]:
        raise Failure("the resource was not deleted")
    return sound.check_tone(bench.path("whip-echo.wav"), [440])


def whip_video(bench, codec):
    node = {"type": "rtc.whip", "url": f"http://{FAR}:{AIO}/whip/{codec}"}
    succeed(talk(bench, f"whip-{codec}", node, 440, 6, hears=False, video=codec), 60)
    count = state(bench)["pictures"][codec]
    if count < 30:
        raise Failure(f"aiortc has decoded {count} pictures")
    return f"{count} pictures decoded, " + sound.check_tone(bench.path(f"{codec}.wav"), [440])


@case
def aiortc_whip_h264(bench):
    return whip_video(bench, "h264")


@case
def aiortc_whip_vp8(bench):
    return whip_video(bench, "vp8")


@case
def aiortc_whep(bench):
    node = {"type": "rtc.whep", "url": f"http://{FAR}:{AIO}/whep", "videoCodec": "vp8"}
    succeed(watch(bench, "whep", node, 6), 60)
    count = pictures_of(bench, "whep")
    if count < 10:
        raise Failure(f"only {count} pictures came")
    return f"{count} pictures, " + sound.check_tone(bench.path("whep.wav"), [600])


def listening(port, host="0.0.0.0", **more):
    return {"listen": port, "host": host, "hosts": ["*"], **more}


def whip_into(bench, name, *options, node=None, host=NEAR, key=None):
    """aiortc publishes to Millrace."""
    port = network.free_port()
    nodes = {"call": {"type": "rtc.whip", **listening(port), "path": "/in", "plain": True, **(node or {})},
             "log": log(bench.path(f"{name}.jsonl")), "ear": ear(bench.path(f"{name}.wav"))}
    with bench.running(name, nodes, ["call.events -> log.in1", "call.audio -> ear"]):
        wait_for_port(bench, host, port)
        seen = bench.result(bench.aio("whip", f"http://{host_of(host)}:{port}/in", 440, 5, *options, *(["--key", key] if key else [])), 60)
    if seen.get("state") != "connected" or seen.get("deleted") != 200:
        raise Failure(f"aiortc: {seen}")
    return seen


def host_of(address):
    return f"[{address}]" if ":" in address else address


def wait_for_port(bench, host, port):
    """Waits until something on the near side listens, as the far side sees it."""
    wait_until(lambda: bench.accepts(host, port), f"nothing listens on port {port}")


@case
def aiortc_into_whip_server(bench):
    whip_into(bench, "whip-in")
    return sound.check_tone(bench.path("whip-in.wav"), [440], is_loudest=True)


@case
def aiortc_key(bench):
    whip_into(bench, "key", node={"bearer": "right"}, key="right")
    return sound.check_tone(bench.path("key.wav"), [440], is_loudest=True)


@case
def aiortc_wrong_key(bench):
    port = network.free_port()
    nodes = {"call": {"type": "rtc.whip", **listening(port), "path": "/in", "plain": True, "bearer": "right"},
             "ear": ear(bench.path("wrong-key.wav"))}
    with bench.running("wrong-key", nodes, ["call.audio -> ear"]):
        wait_for_port(bench, NEAR, port)
        seen = bench.result(bench.aio("whip", f"http://{NEAR}:{port}/in", 440, 5, "--key", "wrong"), 60)
    if not seen.get("failed", "").startswith("401"):
        raise Failure(f"aiortc: {seen}")
    return "401"


@case
def refused_by_server(bench):
    process = talk(bench, "refused", {"type": "rtc.whip", "url": f"http://{FAR}:{AIO}/refuse/x", "bearer": "secret-key"}, hears=False)
    _, errors = finish(process, 60)
    if process.returncode != 4 or "401" not in errors or "secret-key" in errors:
        raise Failure(f"status {process.returncode}: {errors.strip()}")
    return errors.strip().splitlines()[-1][:110]


@case
def aiortc_from_whep_server(bench):
    port = network.free_port()
    nodes = {"call": {"type": "rtc.whep", **listening(port), "path": "/out", "plain": True}, "tone": tone(440)}
    more, ways = pictures("vp8", film(bench))
    with bench.running("whep-out", {**nodes, **more}, ["tone -> call.audio", *ways]):
        wait_for_port(bench, NEAR, port)
        viewers = [bench.aio("whep", f"http://{NEAR}:{port}/out", bench.path(f"whep-out-{number}.wav"), 5, "--video") for number in (1, 2)]
        seen = [bench.result(viewer, 60) for viewer in viewers]
    # 15 a second; a viewer in Python may decode slowly.
    if any(one["pictures"] < 10 for one in seen):
        raise Failure(f"aiortc: {seen}")
    return f"2 viewers, {seen[0]['pictures']} pictures, " + sound.check_tone(bench.path("whep-out-1.wav"), [440], seconds=0.6)


@case
def aiortc_data(bench):
    """Millrace gives back what aiortc sends over a data channel."""
    port = network.free_port()
    nodes = {"call": {"type": "rtc.whip", **listening(port), "path": "/in", "plain": True, "mode": "sendrecv"}, "tone": tone(600),
             "ear": ear(bench.path("data.wav"))}
    links = ["tone -> call.audio", "call.audio -> ear", {"from": "call.data", "to": "call.data", "capacity": 64}]
    with bench.running("data", nodes, links):
        wait_for_port(bench, NEAR, port)
        seen = bench.result(bench.aio("whip", f"http://{NEAR}:{port}/in", 440, 5, "--data"), 60)
    if seen.get("sent") != 21 or seen.get("echoed") != 21:
        raise Failure(f"aiortc: {seen}")
    return "20 messages of 4,096 bytes and one of 51,200 came back"


@case
def ipv6_alone(bench):
    node = {"type": "rtc.whip", "url": f"http://[{FAR6}]:{AIO}/whip/echo", "mode": "sendrecv", "interfaces": [NEAR6]}
    succeed(talk(bench, "ipv6", node), 60)
    return sound.check_tone(bench.path("ipv6.wav"), [440])


@case
def millrace_lite(bench):
    whip_into(bench, "lite", node={"lite": True})
    return sound.check_tone(bench.path("lite.wav"), [440], is_loudest=True)


# TURN


def turned(bench, transport):
    name = f"turn-{transport}"
    node = {"type": "rtc.whip", "url": f"http://{FAR}:{AIO}/whip/echo", "mode": "sendrecv", "policy": "relay",
            "servers": [f"turn:{FAR}:{TURN}?transport={transport}"], "turnUser": "millrace", "turnSecret": "hidden-word"}
    succeed(talk(bench, name, node, seconds=7), 60)
    if "hidden-word" in json.dumps(bench.events(f"{name}.jsonl")):
        raise Failure("the password is in an event")
    return sound.check_tone(bench.path(f"{name}.wav"), [440])


@case
def turn_udp(bench):
    return turned(bench, "udp")


@case
def turn_tcp(bench):
    return turned(bench, "tcp")


# Chromium


def browser(bench, query):
    return bench.start("far", "python3", HERE / "browser.py", network.free_port(), query)


def published(bench, codec):
    """Chromium's fake camera and microphone come to Millrace."""
    name, port = f"chromium-{codec}", network.free_port()
    nodes = {
        "call": {"type": "rtc.whip", **listening(port, origins=["*"]), "path": "/in", "plain": True, "videoCodec": codec},
        "ear": ear(bench.path(f"{name}.wav")), "decode": {"type": "video.decode", "width": 320, "height": 240},
        "jpeg": {"type": "video.sample", "interval": 200}, "write": {"type": "image.write", "path": bench.path(name + "-{number}.jpg")}}
    links = ["call.audio -> ear", "call.video -> decode -> jpeg -> write", "decode.events -> call.control"]
    with bench.running(name, nodes, links):
        wait_for_port(bench, NEAR, port)
        seen = bench.result(browser(bench, f"whip=http://{NEAR}:{port}/in&seconds=6&codec={codec}"), 90)
    count = pictures_of(bench, name)
    # The fake microphone beeps once a second.
    rate, samples = sound.read(bench.path(f"{name}.wav"))
    loudest = max((sound.level(samples[start : start + rate // 10]) for start in range(0, len(samples) - rate // 10, rate // 10)),
                  default=-120)
    if seen.get("state") != "connected" or count < 10 or loudest < -40:
        raise Failure(f"Chromium: {seen}; {count} pictures, {loudest:.0f} dBFS")
    return f"{count} pictures, beeps of {loudest:.0f} dBFS"


@case
def chromium_publishes_vp8(bench):
    return published(bench, "vp8")


@case
def chromium_publishes_h264(bench):
    return published(bench, "h264")


@case
def chromium_plays(bench):
    port = network.free_port()
    nodes = {"call": {"type": "rtc.whep", **listening(port, origins=["*"]), "path": "/out", "plain": True}, "tone": tone(440)}
    more, ways = pictures("vp8", film(bench))
    with bench.running("chromium-plays", {**nodes, **more}, ["tone -> call.audio", *ways]):
        wait_for_port(bench, NEAR, port)
        seen = bench.result(browser(bench, f"whep=http://{NEAR}:{port}/out&seconds=6"), 90)
    if seen.get("state") != "connected" or seen.get("frames", 0) < 30 or not seen.get("level"):
        raise Failure(f"Chromium: {seen}")
    return f"{seen['frames']} pictures decoded, sound of energy {seen['level']:.4f}, {seen['lost']} packets lost"


@case
def foreign_page(bench):
    """A page of another origin is refused, so that no web site can listen to what a program at home sends."""
    port = network.free_port()
    nodes = {"call": {"type": "rtc.whep", **listening(port), "path": "/out", "plain": True}, "tone": tone(440)}
    with bench.running("foreign", nodes, ["tone -> call.audio"]):
        wait_for_port(bench, NEAR, port)
        out = subprocess.run(bench.network.command(
            "far", "curl", "--silent", "--max-time", "5", "--output", "/dev/null", "--write-out", "%{http_code}", "--header",
            "Origin: https://evil.example", "--header", "Content-Type: application/sdp", "--data", "v=0", f"http://{NEAR}:{port}/out"),
            capture_output=True, text=True)
    if out.stdout != "403":
        raise Failure(f"answered with {out.stdout}")
    return "403"


# Plain RTP


def plain_out(bench, codec, suite=None, rate=None):
    """Millrace sends, and FFmpeg listens by the SDP file."""
    name = f"plain-out-{codec}" + ("-srtp" if suite else "")
    port = network.free_port(2)
    node = {"type": "rtc.rtp", "local": f"{NEAR}:0", "remote": f"{FAR}:{port}", "codec": codec, "sdpFile": bench.path(f"{name}.sdp")}
    if rate:
        node["rate"] = rate
    if suite:
        node.update(suite)
    nodes = {"call": node, "tone": tone(440)}
    with bench.running(name, nodes, ["tone -> call.audio"]):
        wait_until(lambda: pathlib.Path(bench.path(f"{name}.sdp")).exists(), "the SDP file was not written")
        listener = bench.start(
            "far", "timeout", 12, "ffmpeg", "-loglevel", "error", "-protocol_whitelist", "file,udp,rtp,srtp,crypto", "-i",
            bench.path(f"{name}.sdp"), "-t", 3, "-ac", 1, "-y", bench.path(f"{name}.wav"))
        _, errors = finish(listener, 30)
    return check_file(bench, name, errors)


def wait_until(condition, problem, seconds=20):
    end_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end_at:
            raise Failure(problem)
        time.sleep(0.05)


def check_file(bench, name, errors):
    try:
        return sound.check_tone(bench.path(f"{name}.wav"), [440])
    except (OSError, ValueError) as problem:
        raise Failure(f"{problem}: {errors.strip()[-200:]}")


KEY = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"


@case
def plain_out_opus(bench):
    return plain_out(bench, "opus")


@case
def plain_out_pcmu(bench):
    return plain_out(bench, "pcmu")


@case
def plain_out_l16(bench):
    return plain_out(bench, "l16", rate=16000)


@case
def plain_out_srtp(bench):
    return plain_out(bench, "opus", {"srtpSuite": "AES_CM_128_HMAC_SHA1_80", "srtpKey": KEY})


def plain_in(bench, codec, *encoder, payload, **node):
    """FFmpeg sends, and Millrace listens."""
    name = f"plain-in-{codec}" + ("-srtp" if "srtpKey" in node else "")
    port = next(PLAIN_PORTS)
    nodes = {"call": {"type": "rtc.rtp", "local": f"{NEAR}:{port}", "symmetric": True, "codec": codec, "payloadType": payload, **node},
             "ear": ear(bench.path(f"{name}.wav")), "log": log(bench.path(f"{name}.jsonl"))}
    process = bench.run(name, nodes, ["call.audio -> ear", "call.events -> log.in1"], 6)
    scheme = ["-srtp_out_suite", "AES_CM_128_HMAC_SHA1_80", "-srtp_out_params", KEY] if "srtpKey" in node else []
    source = bench.start(
        "far", "ffmpeg", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-t", 12, *encoder,
        "-payload_type", payload, *scheme, "-f", "rtp", ("srtp" if scheme else "rtp") + f"://{NEAR}:{port}",
        log=bench.path(f"{name}-ffmpeg.log"))
    try:
        succeed(process, 60)
    finally:
        end(source)
    return sound.check_tone(bench.path(f"{name}.wav"), [440])


@case
def plain_in_opus(bench):
    return plain_in(bench, "opus", "-c:a", "libopus", "-ac", 2, payload=111)


@case
def plain_in_pcma(bench):
    return plain_in(bench, "pcma", "-c:a", "pcm_alaw", "-ar", 8000, "-ac", 1, payload=8)


@case
def plain_in_l16(bench):
    return plain_in(bench, "l16", "-c:a", "pcm_s16be", "-ar", 16000, "-ac", 1, payload=97, rate=16000, channels=1)


@case
def plain_in_srtp(bench):
    return plain_in(bench, "opus", "-c:a", "libopus", "-ac", 2, payload=111, srtpSuite="AES_CM_128_HMAC_SHA1_80", srtpKey=KEY)


@case
def plain_video(bench):
    """H.264 of FFmpeg, without sound."""
    port, name = next(PLAIN_PORTS), "plain-video"
    nodes = {"call": {"type": "rtc.rtp", "local": f"{NEAR}:{port}", "symmetric": True, "codec": "h264", "payloadType": 96},
             "decode": {"type": "video.decode", "width": 320, "height": 240}, "jpeg": {"type": "video.sample", "interval": 200},
             "write": {"type": "image.write", "path": bench.path(name + "-{number}.jpg")}}
    process = bench.run(name, nodes, ["call.video -> decode -> jpeg -> write", "decode.events -> call.control"], 6)
    source = bench.start(
        "far", "ffmpeg", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=15", "-t", 12, "-c:v", "libx264",
        "-preset", "ultrafast", "-tune", "zerolatency", "-g", 15, "-pix_fmt", "yuv420p", "-payload_type", 96, "-f", "rtp",
        f"rtp://{NEAR}:{port}", log=bench.path("plain-video-ffmpeg.log"))
    try:
        succeed(process, 60)
    finally:
        end(source)
    count = pictures_of(bench, name)
    if count < 10:
        raise Failure(f"only {count} pictures came")
    return f"{count} pictures"


@case
def digits(bench):
    """Two of Millrace by plain RTP: digits that are dialled arrive."""
    one, other = next(PLAIN_PORTS), next(PLAIN_PORTS)
    base = {"type": "rtc.rtp", "codec": "pcmu"}
    dial = ('sleep 2; echo \'{"command":"extra","name":"dtmf","payload":{"digits":"42#"}}\'; sleep 3')
    first = bench.run("dials", {
        "call": {**base, "local": f"{NEAR}:{one}", "remote": f"{NEAR}:{other}"}, "tone": tone(440),
        "dial": program(dial)},
        ["tone -> call.audio", "dial -> call.control"], 6)
    second = bench.run("dialled", {
        "call": {**base, "local": f"{NEAR}:{other}", "remote": f"{NEAR}:{one}"}, "ear": ear(bench.path("dialled.wav")),
        "log": log(bench.path("dialled.jsonl"))}, ["call.audio -> ear", "call.events -> log.in1"], 6)
    for process in (first, second):
        succeed(process, 60)
    seen = "".join(event["payload"]["digit"] for event in said(bench, "dialled", "extra", name="dtmf"))
    if seen != "42#":
        raise Failure(f"the digits that came: {seen!r}")
    return seen


# Networks that fail


@case
def server_killed(bench):
    """A server that disappears: the node reconnects to the one that takes its place."""
    port = network.free_port()

    def server():
        return bench.serve("python3", HERE / "aio.py", "serve", port, bench.folder, log=f"killed-{time.monotonic()}.log", until="ready")

    first = server()
    node = {"type": "rtc.whip", "url": f"http://{FAR}:{port}/whip/echo", "mode": "sendrecv"}
    process = talk(bench, "killed", node, seconds=25)
    path = pathlib.Path(bench.path("killed.jsonl"))
    wait_until(lambda: path.exists() and said(bench, "killed", "state", state="listening"), "not connected")
    time.sleep(1)
    end(first)
    server()
    succeed(process, 90)
    if not said(bench, "killed", "state", state="reconnecting") or len(said(bench, "killed", "state", state="listening")) < 2:
        raise Failure("the node has not reconnected: " + str([event.get("state") for event in said(bench, "killed", "state")]))
    return sound.check_tone(bench.path("killed.wav"), [440])


@case
def killed_in_mid_call(bench):
    """A server that dies without a word: the loss is an error event, and sound returns from the server that takes its place."""
    port = network.free_port()

    def server(number):
        return bench.serve(
            "python3", HERE / "aio.py", "serve", port, bench.folder, log=f"mid-call-{number}.log", until="ready")

    first = server(1)
    node = {"type": "rtc.whip", "url": f"http://{FAR}:{port}/whip/echo", "mode": "sendrecv", "first": 300, "most": 1000}
    process = talk(bench, "mid-call", node, seconds=22)
    events = pathlib.Path(bench.path("mid-call.jsonl"))
    wait_until(lambda: events.exists() and said(bench, "mid-call", "latency", name="firstAudio"), "nothing was heard")
    time.sleep(1)
    kill(first)
    wait_until(lambda: said(bench, "mid-call", "error"), "the loss was not reported")
    server(2)
    succeed(process, 60)
    names = [error.get("name") for error in said(bench, "mid-call", "error")]
    # The server has named the session, so that ICE is restarted first, which finds nobody, or nobody who knows the session.
    if names[0] not in ("consentLost", "network", "signalRefused"):
        raise Failure(f"the loss is reported as {names}")
    if not said(bench, "mid-call", "state", state="reconnecting") or len(said(bench, "mid-call", "connected")) < 2:
        raise Failure("the node has not reconnected: " + str([event.get("state") for event in said(bench, "mid-call", "state")]))
    return f"{names[0]}, {gap(bench, 'mid-call')}"


def gap(bench, name):
    """What is heard at the end of a call that was silent for a while. The file has the silence, too: it grows with the clock."""
    silence = sound.longest_silence(bench.path(f"{name}.wav"))
    if silence < 2000:
        raise Failure(f"the sound was never gone: silent for {silence} ms at most")
    return f"silent for {silence / 1000:.1f} s, then " + sound.check_tone(bench.path(f"{name}.wav"), [440])


@case
def ice_restart(bench):
    """The way back is lost for some seconds: ICE is restarted in the session that there is, and nothing is begun again."""
    # An address of its own, so that no other case notices.
    address = bench.network.add_address()
    node = {"type": "rtc.janus", "url": janus(bench), "plugin": "echotest", "interfaces": [address]}
    process = talk(bench, "ice-restart", node, seconds=23)
    events = pathlib.Path(bench.path("ice-restart.jsonl"))
    wait_until(lambda: events.exists() and said(bench, "ice-restart", "latency", name="firstAudio"), "nothing was heard")
    # Until libnice has checked the pair again, silence is no verdict.
    time.sleep(4)
    bench.network.lose(address)
    try:
        wait_until(lambda: said(bench, "ice-restart", "state", state="reconnecting"), "the interruption was not noticed")
    finally:
        bench.network.find(address)
    succeed(process, 60)
    states = [event.get("state") for event in said(bench, "ice-restart", "state")]
    if said(bench, "ice-restart", "error") or len(said(bench, "ice-restart", "connected")) != 1:
        raise Failure(f"the session has not survived: {states}, {said(bench, 'ice-restart', 'error')}")
    place = states.index("reconnecting")
    if "listening" not in states[place:]:
        raise Failure(f"the session has not recovered: {states}")
    return gap(bench, "ice-restart")


@case
def losses(bench):
    """Ten calls over a network that loses 5 % of all packets in bursts and takes 60 ms there and back."""
    node = {"type": "rtc.whip", "url": f"http://{FAR_LOSSY}:{AIO}/whip/echo", "mode": "sendrecv", "interfaces": [NEAR_LOSSY]}
    times = []
    for start in range(0, 10, 2):
        pair = [talk(bench, f"loss-{number}", node, seconds=8) for number in (start, start + 1)]
        for process in pair:
            succeed(process, 60)
    for number in range(10):
        first = said(bench, f"loss-{number}", "latency", name="firstAudio")
        if not first:
            raise Failure(f"call {number} has heard nothing")
        times.append(first[0]["ms"])
    times.sort()
    return f"10 of 10, first sound after {times[5]:.0f} ms (median), {times[-1]:.0f} ms at most"


def start_servers(bench, names):
    """Starts what the cases need."""
    for lite, port in ((False, JANUS), (True, JANUS_LITE)):
        folder = bench.folder / f"janus-{port}"
        folder.mkdir()
        for file in (HERE / "janus").iterdir():
            text = file.read_text().replace("FOLDER", str(folder)).replace("LITE", "true" if lite else "false")
            text = re.sub(r"\b8088\b", str(port), text)
            text = re.sub(r"\b8188\b", str(port + 100), text)
            if lite:
                text = re.sub(r"\b5002\b", "5012", text)
            (folder / file.name).write_text(text)
        bench.serve("janus", "--configs-folder", folder, "--config", folder / "janus.jcfg", log=f"janus-{port}.log",
                    until="HTTP webserver started")
    bench.serve("turnserver", "--no-cli", "--listening-ip", FAR, "--relay-ip", FAR, "--listening-port", TURN, "--lt-cred-mech",
                "--user", "millrace:hidden-word", "--realm", "millrace", "--no-tls", "--no-dtls", "--pidfile", bench.path("turn.pid"),
                "--log-file", "stdout", "--no-rfc5780", log="turn.log", address=(FAR, TURN))
    bench.serve("python3", HERE / "aio.py", "serve", AIO, bench.folder, log="aiortc.log", until="ready")
    if "losses" in names:
        bench.network.make_lossy(loss=5, burst=3, delay=0.03)


def attempt(bench, name):
    begun = time.monotonic()
    try:
        seen, is_good = CASES[name](bench), True
    except (Failure, ValueError, OSError, KeyError, IndexError) as problem:
        seen, is_good = f"{type(problem).__name__}: {problem}", False
    except Exception:
        seen, is_good = traceback.format_exc(), False
    word = "ok" if is_good else "FAILED"
    print(f"{word} {name}: {seen} ({time.monotonic() - begun:.0f} s)", flush=True)
    return is_good


def main():
    millrace, aiortc, *names = sys.argv[1:]
    if names == ["--list"]:
        print("\n".join(CASES))
        return 0
    unknown = [name for name in names if name not in CASES]
    if unknown:
        print(f"rtc.sh: no case {', '.join(unknown)}; --list shows them", file=sys.stderr)
        return 2
    names = names or list(CASES)
    bench = Bench(millrace, aiortc)
    try:
        start_servers(bench, names)
        # What measures has the machine to itself; of the others four at a time mostly wait.
        together = [name for name in names if name not in ("losses",)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda name: attempt(bench, name), together))
        results += [attempt(bench, name) for name in names if name not in together]
    except Failure as problem:
        print(f"rtc.sh: {problem}", file=sys.stderr)
        return 1
    finally:
        bench.close()
    passed = sum(results)
    print(f"{passed} passed, {len(results) - passed} failed")
    return 0 if passed == len(results) else 1


sys.exit(main())
