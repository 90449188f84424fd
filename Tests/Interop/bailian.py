#!/usr/bin/env python3
"""Runs the vendor's own Python SDK through whole dialogues with the double of the service.

usage: bailian.py MILLRACE RECORDING

RECORDING is a WAV file of 16-bit mono at 16 kHz. Each mode and form of sound is one dialogue: two spoken questions, one in
words, and in duplex a voice over a reply; all of them at once. Fails when the SDK does not get what is due, when a reply is not
sound, or when the double names a violation; that it does, and is heard, is seen first with a client that is wrong on purpose. Needs
dashscope.
"""

import concurrent.futures
import json
import subprocess
import sys
import threading
import time
import wave

import websocket
from dashscope.multimodal.dialog_state import DialogState
from dashscope.multimodal.multimodal_dialog import MultiModalCallback, MultiModalDialog
from dashscope.multimodal.multimodal_request_params import (
    ClientInfo,
    Device,
    Downstream,
    RequestParameters,
    Upstream,
)

# No step of a dialogue takes a tenth of this; it bounds a hang.
PATIENCE = 60
FRAME = 3_200


class Failure(Exception):
    """A dialogue did not go as it has to."""


class Ear(MultiModalCallback):
    """Keeps what the SDK tells."""

    def __init__(self):
        self.events = []
        self.sound = bytearray()
        self.states = []
        self.changed = threading.Condition()
        self.dialog = None

    def note(self, event):
        with self.changed:
            self.events.append(event)
            self.changed.notify_all()

    def wait(self, what, holds):
        with self.changed:
            if not self.changed.wait_for(holds, PATIENCE):
                raise Failure(f"{what} did not come; {self.events[-20:]}")

    def on_connected(self):
        self.note("connected")

    def on_started(self, dialog_id):
        self.note("started")

    def on_stopped(self):
        self.note("stopped")

    def on_close(self, close_status_code, close_msg):
        self.note("closed")

    def on_error(self, error):
        self.note(f"error {error}")

    def on_state_changed(self, state):
        with self.changed:
            self.states.append(state)
        self.note(state.value)

    def on_speech_audio_data(self, data):
        with self.changed:
            self.sound += data

    def on_speech_started(self):
        self.note("SpeechStarted")

    def on_speech_ended(self):
        self.note("SpeechEnded")

    def on_speech_content(self, payload):
        self.note("heard " + payload["output"]["text"])

    def on_responding_started(self):
        self.note("RespondingStarted")
        self.dialog.local_responding_started()

    def on_responding_content(self, payload):
        self.note("said " + payload["output"]["text"])

    def on_responding_ended(self, payload):
        self.note("RespondingEnded")

    def on_request_accepted(self):
        self.note("RequestAccepted")


class Double:
    """The service on this machine, as a process."""

    def __init__(self, millrace):
        self.process = subprocess.Popen(
            [millrace, "double", "bailian", "--port", "0"], stdout=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().strip()
        self.lines = []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()

    def wait(self, begin):
        """Waits for a line that begins so. True when it came."""
        with self.changed:
            return self.changed.wait_for(lambda: any(line.startswith(begin) for line in self.lines), PATIENCE)

    def end(self):
        """Ends it; its status, and what it had to complain of."""
        self.process.terminate()
        status = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        return status, [line.strip() for line in self.lines if line.startswith("!")]


def check_violations(millrace):
    """A client that is wrong has to be named, by the double's words and by its status."""
    double = Double(millrace)
    socket = websocket.create_connection(double.url, header=["Authorization: Bearer sk-interop"], timeout=PATIENCE)
    wrong = {"header": {"action": "continue-task", "streaming": "duplex", "task_id": "1"},
             "payload": {"input": {"directive": "HeartBeat"}}}
    socket.send(json.dumps(wrong))
    heard = double.wait("! noStart")
    socket.close()
    status, violations = double.end()
    if not heard or status != 3 or not violations:
        sys.exit(f"bailian.py: error: a violation did not fail the double: status {status}, {violations}")


def speak(dialog, sound, pace=0.02):
    """Sends a recording, and the quiet behind it."""
    for start in range(0, len(sound), FRAME):
        dialog.send_audio_data(bytes(sound[start : start + FRAME]))
        time.sleep(pace)
    for _ in range(12):
        dialog.send_audio_data(bytes(FRAME))
        time.sleep(pace)


def turn(ear, dialog, mode, sound):
    """One spoken question, and its answer."""
    listened, answered = ear.states.count(DialogState.LISTENING), ear.events.count("RespondingEnded")
    dialog.start_speech()
    speak(dialog, sound)
    if mode == "push2talk":
        dialog.stop_speech()
    ear.wait("the answer", lambda: ear.events.count("RespondingEnded") > answered)
    dialog.local_responding_ended()
    ear.wait("Listening", lambda: ear.states.count(DialogState.LISTENING) > listened)


def run(url, mode, form, sound):
    """One dialogue."""
    ear = Ear()
    parameters = RequestParameters(
        upstream=Upstream(type="AudioOnly", mode=mode, audio_format="pcm"),
        downstream=Downstream(
            sample_rate=24_000, audio_format=form, intermediate_text="transcript,dialog", voice="double"
        ),
        client_info=ClientInfo(user_id="interop", device=Device(uuid="device")),
    )
    dialog = MultiModalDialog(
        app_id="mm_interop",
        workspace_id="llm-interop",
        request_params=parameters,
        multimodal_callback=ear,
        url=url,
        api_key="sk-interop",
        model="multimodal-dialog",
    )
    ear.dialog = dialog
    dialog.start("")
    ear.wait("the first Listening", lambda: DialogState.LISTENING in ear.states)
    for _ in range(2):
        turn(ear, dialog, mode, sound)
    if not any(event.startswith("said ") for event in ear.events):
        raise Failure("no words of an answer came")
    beginning = {"mp3": b"\xff", "opus": b"OggS"}.get(form, b"")
    if len(ear.sound) < 4_000 or not ear.sound.startswith(beginning):
        raise Failure(f"{len(ear.sound)} bytes of {form} are no reply")
    # A question in words, whose answer is interrupted.
    responded = ear.events.count("RespondingStarted")
    dialog.request_to_respond("prompt", "why")
    ear.wait("an answer to words", lambda: ear.events.count("RespondingStarted") > responded)
    dialog.interrupt()
    ear.wait("RequestAccepted", lambda: "RequestAccepted" in ear.events)
    ear.wait("Listening", lambda: ear.states[-1] == DialogState.LISTENING)
    if mode == "duplex":
        barge_in(ear, dialog, sound)
    dialog.send_heart_beat()
    dialog.stop()
    ear.wait("the end", lambda: "stopped" in ear.events)
    errors = [event for event in ear.events if event.startswith("error")]
    if errors:
        raise Failure(f"{errors}")
    print(f"{mode:10} {form:4} {len(ear.sound):7} bytes of replies, {len(ear.events)} events")


def barge_in(ear, dialog, sound):
    """A voice over a reply."""
    responded, accepted = ear.events.count("RespondingStarted"), ear.events.count("RequestAccepted")
    dialog.request_to_respond("transcript", "One two three four five six seven eight nine ten eleven.")
    ear.wait("a reply", lambda: ear.events.count("RespondingStarted") > responded)
    ended = ear.events.count("RespondingEnded")
    speak(dialog, sound)
    ear.wait("the interruption", lambda: ear.events.count("RequestAccepted") > accepted)
    ear.wait("the next answer", lambda: ear.events.count("RespondingEnded") > ended)
    dialog.local_responding_ended()
    ear.wait("Listening", lambda: ear.states[-1] == DialogState.LISTENING)


def main():
    millrace, recording = sys.argv[1:]
    with wave.open(recording) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (16_000, 1, 2):
            sys.exit("bailian.py: error: the recording has to be 16-bit mono at 16 kHz")
        # Two seconds: a sentence with no pause that ends it.
        sound = file.readframes(32_000)
    check_violations(millrace)
    double = Double(millrace)
    cases = [(mode, form) for mode in ["duplex", "push2talk", "tap2talk"] for form in ["pcm", "mp3", "opus"]]
    failures = []
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
        dialogues = {pool.submit(run, double.url, *case, sound): case for case in cases}
        for done in concurrent.futures.as_completed(dialogues):
            problem = done.exception()
            if problem:
                failures.append(f"{' '.join(dialogues[done])}: {problem}")
    status, violations = double.end()
    if status != 0 or violations:
        failures.append(f"the double ended with status {status}: {violations}")
    for failure in failures:
        print(f"bailian.py: error: {failure}", file=sys.stderr)
    if failures:
        sys.exit(1)
    print(double.lines[-1].strip())


if __name__ == "__main__":
    main()
