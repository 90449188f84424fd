"""Headless Chromium, driven by its DevTools protocol over two pipes. Without libraries."""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

from bench import Failure, end, kill

HERE = pathlib.Path(__file__).parent
# The longest that a command of the protocol may take.
PATIENCE = 60


class Browser:
    """A browser with one page, as one person has it."""

    def __init__(self, microphone=None, tone=None):
        """With a WAV file as its microphone, which is heard once from when it is opened; else the page's probe makes the sound."""
        self.settings = {"isMicrophone": microphone is None, "tone": tone, "words": None}
        self.profile = tempfile.mkdtemp(prefix="millrace-room-")
        (theirs_in, self.out), (self.input, theirs_out) = os.pipe(), os.pipe()
        fake = [f"--use-file-for-fake-audio-capture={microphone}%noloop"] if microphone else []
        # Chromium reads commands at 3 and answers at 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "chromium", "chromium", "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio", "--use-fake-device-for-media-stream",
             "--use-fake-ui-for-media-stream", "--autoplay-policy=no-user-gesture-required", "--disable-background-networking",
             "--disable-component-update", "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}", *fake],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(theirs_in, theirs_out),
            start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        self.lock, self.answers, self.events, self.number = threading.Condition(), {}, [], 0
        self.is_over, self.page = False, None
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        """Takes what the browser says until it ends."""
        rest = b""
        while True:
            data = os.read(self.input, 1 << 16)
            with self.lock:
                *messages, rest = (rest + data).split(b"\0")
                for message in map(json.loads, messages):
                    if "id" in message:
                        self.answers[message["id"]] = message
                    else:
                        self.events.append(message)
                self.is_over = not data
                self.lock.notify_all()
            if not data:
                os.close(self.input)
                return

    def command(self, method, **parameters):
        """Sends a command to the page, or to the browser while there is none, and returns its result."""
        with self.lock:
            self.number += 1
            number = self.number
            message = {"id": number, "method": method, "params": parameters}
            if self.page:
                message["sessionId"] = self.page
            try:
                os.write(self.out, json.dumps(message).encode() + b"\0")
            except BrokenPipeError:
                raise Failure(f"the browser has ended before {method}") from None
            if not self.lock.wait_for(lambda: number in self.answers or self.is_over, PATIENCE) or number not in self.answers:
                raise Failure(f"the browser has not answered {method}")
            answer = self.answers.pop(number)
        if "error" in answer:
            raise Failure(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, url, width=1200, height=800):
        """Opens the page, with the probe in it."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self.page = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.command(f"{domain}.enable")
        self.resize(width, height)
        probe = (HERE / "probe.js").read_text().replace("SETTINGS", json.dumps(self.settings), 1)
        self.command("Page.addScriptToEvaluateOnNewDocument", source=probe)
        self.command("Page.navigate", url=url)
        return self

    def resize(self, width, height):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def reload(self):
        self.command("Page.reload")

    def run(self, expression):
        """The value of an expression of JavaScript in the page; promises are waited for."""
        result = self.command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in result:
            raise Failure(f"{expression[:80]}: {result['exceptionDetails'].get('exception', {}).get('description', 'failed')[:300]}")
        return result["result"].get("value")

    def wait(self, expression, what, seconds=30):
        """Waits until an expression is true, and returns its value."""
        end_at = time.monotonic() + seconds
        while time.monotonic() < end_at:
            # While a page loads, the script is not there yet.
            with contextlib.suppress(Failure):
                if value := self.run(f"window.millrace && ({expression})"):
                    return value
            if self.is_over:
                break
            time.sleep(0.05)
        raise Failure(f"{what} within {seconds} s; {self.state()}")

    def state(self):
        """What the page says of itself, for a case that fails."""
        try:
            return self.run(
                "[`state ${millrace.state}`, `media ${millrace.media}`, ...millrace.peers.map(p => `${p.name} in "
                "${probe.midOf(p.name)}, ${p.isBot ? p.state : p.muted ? 'muted' : 'unmuted'}`), "
                "document.getElementById('alert-text').textContent].join('; ')")
        except Failure as problem:
            return str(problem)

    def problems(self):
        """Errors of the page: exceptions, refused resources, broken policies."""
        with self.lock:
            events = list(self.events)
        found = [event["params"]["exceptionDetails"].get("exception", {}).get("description", "an exception")
                 for event in events if event["method"] == "Runtime.exceptionThrown"]
        return found + [event["params"]["entry"]["text"] for event in events
                        if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error"]

    def picture(self, path):
        data = self.command("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def vanish(self):
        """Ends the browser at once, as a machine that lost its power."""
        kill(self.process)

    def close(self):
        """Closes the pipes, at which Chromium ends by itself, and removes its profile."""
        with contextlib.suppress(OSError):
            os.close(self.out)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(3)
        end(self.process)
        # What it started may have outlived it for a moment.
        kill(self.process)
        shutil.rmtree(self.profile, ignore_errors=True)
