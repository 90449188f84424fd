"""Headless Firefox, driven by WebDriver BiDi (https://www.w3.org/TR/webdriver-bidi/). Without libraries."""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time

from bench import Failure, end, kill
from room_browser import HERE, PATIENCE, Browser

PROGRAM = "firefox-esr"
SOUND_SERVER = "pulseaudio"
PROGRAMS = (PROGRAM, SOUND_SERVER)
# Seconds: a first start of a fresh profile writes much.
STARTING = 60
# Devices that are not there, allowed without a question; addresses of this machine; sound without a press; and nothing from elsewhere.
PREFERENCES = {
    "media.navigator.permission.disabled": True,
    "media.navigator.streams.fake": True,
    "media.peerconnection.ice.loopback": True,
    "media.peerconnection.ice.obfuscate_host_addresses": False,
    "media.autoplay.default": 0,
    "media.gmp-manager.updateEnabled": False,
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.systemAddon.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
}


def is_installed():
    """True where there is Firefox, and the sound server that it needs."""
    return all(map(shutil.which, PROGRAMS))


def start(command, environment):
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env=environment)


def plain(value):
    """A value of the page as one of Python; None for what has no such form."""
    match value["type"]:
        case "array":
            return [plain(element) for element in value["value"]]
        case "object":
            return {key: plain(element) for key, element in value["value"]}
        case "number":
            # What JSON cannot say is in words, as `-Infinity`.
            return float(value["value"]) if isinstance(value["value"], str) else value["value"]
        case "string" | "boolean":
            return value["value"]
        case _:
            return None


class Link:
    """A WebSocket to a program on this machine, of text messages (RFC 6455)."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.settimeout(None)
        self.input = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n").encode())
        status = self.input.readline()
        while self.input.readline() not in (b"\r\n", b""):
            pass
        if b" 101 " not in status:
            raise Failure(f"the browser takes no commands: {status.decode(errors='replace').strip()}")

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        # FIN and the opcode; the length, marked as masked.
        size = len(data)
        head = struct.pack(">BB", 0x81, 0x80 | size) if size < 126 else (
            struct.pack(">BBH", 0x81, 0xFE, size) if size < 1 << 16 else struct.pack(">BBQ", 0x81, 0xFF, size))
        stream = (mask * (size // 4 + 1))[:size]
        masked = (int.from_bytes(data) ^ int.from_bytes(stream)).to_bytes(size)
        self.socket.sendall(head + mask + masked)

    def receive(self):
        """The next message; None: the other end is gone."""
        message = b""
        while True:
            head = self.input.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 0x7F
            if size > 125:
                size = int.from_bytes(self.input.read(2 if size == 126 else 8))
            data = self.input.read(size)
            kind = head[0] & 0x0F
            if kind == 8:
                return None
            # A text or the rest of one; pings and pongs lie between.
            if kind < 8:
                message += data
                if head[0] & 0x80:
                    return message.decode()

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Firefox(Browser):
    """A Firefox with one page, as one person has it."""

    def __init__(self, microphone=None, tone=None):
        """With a WAV file that its microphone says once from when it is opened."""
        if not is_installed():
            raise Failure(f"there is no Firefox; install {' and '.join(PROGRAMS)}")
        words = base64.b64encode(pathlib.Path(microphone).read_bytes()).decode() if microphone else None
        # Firefox itself has no microphone that is a file.
        self.settings = {"isMicrophone": True, "tone": tone, "words": words}
        self.profile = tempfile.mkdtemp(prefix="millrace-room-")
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items()]
        pathlib.Path(self.profile, "user.js").write_text("".join(lines))
        environment = {**os.environ, "HOME": self.profile, "XDG_RUNTIME_DIR": self.profile, "MOZ_CRASHREPORTER_DISABLE": "1"}
        # Without a sound device Firefox runs no AudioContext: a loudspeaker that nobody hears, in a server of its own.
        socket_path = f"{self.profile}/native"
        self.sound = start(
            [SOUND_SERVER, "-n", "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1",
             "--load", f"module-native-protocol-unix auth-anonymous=1 socket={socket_path}", "--load", "module-null-sink rate=48000"],
            environment)
        self.process = start(
            [PROGRAM, "--headless", "--no-remote", "--profile", self.profile, "--remote-debugging-port", "0", "about:blank"],
            {**environment, "PULSE_SERVER": f"unix:{socket_path}"})
        self.lock, self.answers, self.events, self.number = threading.Condition(), {}, [], 0
        self.is_over, self.page = False, None
        try:
            self.link = Link(self.port(), "/session")
        except BaseException:
            # Nobody has it yet who would close it.
            self.end()
            raise
        threading.Thread(target=self.read, daemon=True).start()

    def port(self):
        """Where Firefox takes commands: it writes that into its profile."""
        end_at = time.monotonic() + STARTING
        while time.monotonic() < end_at and self.process.poll() is None:
            with contextlib.suppress(FileNotFoundError, ValueError):
                return json.loads(pathlib.Path(self.profile, "WebDriverBiDiServer.json").read_text())["ws_port"]
            time.sleep(0.05)
        raise Failure(f"{PROGRAM} has not started within {STARTING} s")

    def read(self):
        """Takes what the browser says until it ends."""
        message = ""
        while message is not None:
            with contextlib.suppress(OSError, ValueError):
                message = None
                message = self.link.receive()
            with self.lock:
                if message is None:
                    self.is_over = True
                else:
                    self.take(json.loads(message))
                self.lock.notify_all()

    def take(self, message):
        if message.get("id") is not None:
            self.answers[message["id"]] = message
        elif message["type"] == "event":
            self.events.append(message)

    def command(self, method, **parameters):
        """Sends a command to the browser, and returns its result."""
        with self.lock:
            self.number += 1
            number = self.number
            try:
                self.link.send(json.dumps({"id": number, "method": method, "params": parameters}))
            except OSError:
                raise Failure(f"the browser has ended before {method}") from None
            if not self.lock.wait_for(lambda: number in self.answers or self.is_over, PATIENCE) or number not in self.answers:
                raise Failure(f"the browser has not answered {method}")
            answer = self.answers.pop(number)
        if answer["type"] == "error":
            raise Failure(f"{method}: {answer['message']}")
        return answer["result"]

    def open(self, url, width=1200, height=800):
        """Opens the page, with the probe in it."""
        self.command("session.new", capabilities={})
        self.page = self.command("browsingContext.getTree")["contexts"][0]["context"]
        self.command("session.subscribe", events=["log.entryAdded"])
        self.resize(width, height)
        probe = (HERE / "probe.js").read_text().replace("SETTINGS", json.dumps(self.settings), 1)
        # Not in the empty page that is there before: that one has no devices.
        self.command("script.addPreloadScript", functionDeclaration=f"() => {{ if (navigator.mediaDevices) {{ {probe} }} }}")
        self.command("browsingContext.navigate", context=self.page, url=url, wait="none")
        return self

    def resize(self, width, height):
        self.command("browsingContext.setViewport", context=self.page, viewport={"width": width, "height": height})

    def reload(self):
        self.command("browsingContext.reload", context=self.page, wait="none")

    def run(self, expression):
        """The value of an expression of JavaScript in the page; promises are waited for."""
        result = self.command(
            "script.evaluate", expression=expression, target={"context": self.page}, awaitPromise=True, userActivation=True)
        if result["type"] == "exception":
            raise Failure(f"{expression[:80]}: {result['exceptionDetails']['text'][:300]}")
        return plain(result["result"])

    def problems(self):
        """Errors of the page: exceptions, refused resources, broken policies."""
        with self.lock:
            return [event["params"]["text"] for event in self.events
                    if event["method"] == "log.entryAdded" and event["params"]["level"] == "error"]

    def picture(self, path):
        data = self.command("browsingContext.captureScreenshot", context=self.page)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        """Ends the browser and its sound server, and removes its profile."""
        self.end()
        self.link.close()

    def end(self):
        end(self.process)
        # What it started may have outlived it for a moment.
        kill(self.process)
        end(self.sound)
        shutil.rmtree(self.profile, ignore_errors=True)
