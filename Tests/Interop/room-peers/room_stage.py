"""What the cases stand on: Millrace with a room, and people in browsers. All on loopback."""
import base64
import contextlib
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.parse

import network
from bench import Failure, end
from room_browser import Browser

REPOSITORY = pathlib.Path(__file__).parents[3]
BOT_GRAPH = REPOSITORY / "graphs" / "web-bot.json"
# Seconds: the longest that a case may take; programs end by then if all else fails.
LONGEST = 900
# Seconds in which Millrace ends when it is asked to: the bot finishes its answer before.
ENDING = 40


class Stage:
    """One case's programs and browsers, which end with it."""

    def __init__(self, millrace):
        self.millrace = str(pathlib.Path(millrace).resolve())
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-rooms-"))
        self.programs, self.browsers = [], []

    def close(self):
        for browser in self.browsers:
            browser.close()
        for program in self.programs:
            end(program)
        shutil.rmtree(self.folder, ignore_errors=True)

    # Millrace

    def start(self, graph, *arguments):
        """Starts a graph whose events go to `events.jsonl`, and returns the address of its page once it is served."""
        log = self.folder / "millrace.log"
        program = subprocess.Popen(
            ["timeout", "--foreground", f"--kill-after={ENDING}", str(LONGEST), self.millrace, "run", str(graph), "--quiet", *arguments],
            stdin=subprocess.DEVNULL, stdout=open(log, "wb"), stderr=subprocess.STDOUT, start_new_session=True)
        self.programs.append(program)
        end_at = time.monotonic() + 30
        while time.monotonic() < end_at and program.poll() is None:
            for event in self.events(event="extra", name="listening", node="room"):
                return event["payload"]["url"]
            time.sleep(0.05)
        raise Failure(f"no room: {self.last_words()}")

    def bot(self, port=0, scenario=None):
        """The bot of graphs/web-bot.json; with a scenario of its own it says other things."""
        log = self.folder / "events.jsonl"
        log.unlink(missing_ok=True)
        values = {"port": port, "servicePort": network.free_port(), "log": log}
        if scenario:
            values["scenario"] = self.folder / "scenario.json"
            values["scenario"].write_text(json.dumps(scenario))
        return self.start(BOT_GRAPH, *(word for name, value in values.items() for word in ("--set", f"{name}={value}")))

    def tone(self, frequency, mode="forward"):
        """A member named Bot that sends a tone, and writes what it hears to `bot.wav`."""
        nodes = {
            "room": {"type": "rtc.room", "listen": 0, "mode": mode, "user": "bot", "name": "Bot"},
            "tone": {"type": "audio.tone", "frequency": frequency, "rate": 48000, "level": -20},
            "ear": {"type": "audio.write", "path": str(self.folder / "bot.wav"), "sample": "s16"},
            "log": {"type": "event.log", "path": str(self.folder / "events.jsonl")},
        }
        path = self.folder / "room.json"
        path.write_text(json.dumps({
            "millrace": 1, "name": "room", "clock": "realtime", "nodes": nodes,
            "links": ["tone -> room.audio", "room.audio -> ear", "room.events -> log.in1"]}))
        return self.start(path)

    def stop(self):
        """Asks Millrace to end, and returns how many seconds that took."""
        # `timeout` passes the signal on, once in the foreground, and ends what does not end.
        program, begun = self.programs.pop(), time.monotonic()
        program.terminate()
        program.wait(ENDING + 10)
        seconds = time.monotonic() - begun
        if seconds >= ENDING:
            raise Failure(f"Millrace has not ended {ENDING} s after SIGTERM: {self.last_words()}")
        return seconds

    def last_words(self):
        log = self.folder / "millrace.log"
        return log.read_text(errors="replace").strip()[-400:]

    def events(self, **members):
        """The events of Millrace so far that have these members."""
        with contextlib.suppress(FileNotFoundError), open(self.folder / "events.jsonl", errors="replace") as file:
            # The last line may not be complete.
            found = [json.loads(line) for line in file if line.startswith("{") and line.endswith("}\n")]
            return [event for event in found if all(event.get(key) == value for key, value in members.items())]
        return []

    def check_alive(self):
        if self.programs[-1].poll() is not None:
            raise Failure(f"Millrace has ended: {self.last_words()}")

    # People

    def join(self, url, name, microphone=None, tone=None, query="", waits=True, kind=Browser):
        """Somebody who opens the page in a browser of their own, Chromium or another kind, and is connected."""
        browser = kind(microphone, tone)
        self.browsers.append(browser)
        browser.open(f"{url}?auto=1&name={urllib.parse.quote(name)}{query}")
        if waits:
            browser.wait("millrace.media === 'connected'", f"{name} was not connected")
        return browser

    # Speech

    def speak(self, text, name="speech"):
        """A WAV file with words."""
        path = self.folder / f"{name}.wav"
        subprocess.run(["espeak-ng", "-v", "en", "-s", "150", "-a", "100", "-w", str(path), text], check=True, timeout=30)
        return path

    def speech(self, text):
        """Words for a page's probe: JavaScript that says them."""
        return f"probe.say('{base64.b64encode(self.speak(text).read_bytes()).decode()}')"

    def recording(self, *parts):
        """A WAV file of words and pauses in seconds, one after the other, at 48 kHz."""
        path = self.folder / "microphone.wav"
        files = []
        for number, part in enumerate(parts):
            if isinstance(part, str):
                files.append(str(self.speak(part, f"part-{number}")))
            else:
                files.append(str(self.folder / f"part-{number}.wav"))
                silence = ["sox", "-n", "-r", "22050", "-c", "1", "-b", "16", files[-1], "trim", "0", str(part)]
                subprocess.run(silence, check=True, timeout=30)
        subprocess.run(["sox", *files, "-r", "48000", "-c", "1", str(path)], check=True, timeout=30)
        return path
