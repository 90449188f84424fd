#!/usr/bin/env python3
"""Runs the vendor's Python SDK through complete dialogues with the double of the service.

usage: bailian.py MILLRACE RECORDING

RECORDING is a WAV file of 16-bit mono at 16 kHz. Each mode and audio format is one dialogue: two spoken questions, one as text, and
in duplex a barge-in; all of them run in parallel. Fails when the SDK misses an expected event, when a reply has no audio, or when the
double reports a violation; a client with a deliberate mistake first shows that it does. Needs dashscope.
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

# Ends a hang; no step of a dialogue takes a tenth of it.
PATIENCE = 60
FRAME = 3_200


class Failure(Exception):
    """A dialogue failed."""


class Recorder(MultiModalCallback):
    """Records the callbacks of the SDK."""

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
                raise Failure(f"no {what}; {self.events[-20:]}")

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
        self.note("transcript " + payload["output"]["text"])

    def on_responding_started(self):
        self.note("RespondingStarted")
        self.dialog.local_responding_started()

    def on_responding_content(self, payload):
        self.note("reply " + payload["output"]["text"])

    def on_responding_ended(self, payload):
        self.note("RespondingEnded")

    def on_request_accepted(self):
        self.note("RequestAccepted")


class Double:
    """The double, as a process."""

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
        """Waits for a line with this beginning. Returns True when there is one."""
        with self.changed:
            return self.changed.wait_for(lambda: any(line.startswith(begin) for line in self.lines), PATIENCE)

    def end(self):
        """Terminates it. Returns its status and the violations."""
        self.process.terminate()
        status = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        return status, [line.strip() for line in self.lines if line.startswith("!")]


def check_violations(millrace):
    """A client's mistake must appear in the double's output and its status."""
    double = Double(millrace)
    socket = websocket.create_connection(double.url, header=["Authorization: Bearer sk-interop"], timeout=PATIENCE)
    wrong = {"header": {"action": "continue-task", "streaming": "duplex", "task_id": "1"},
             "payload": {"input": {"directive": "HeartBeat"}}}
    socket.send(json.dumps(wrong))
    is_reported = double.wait("! noStart")
    socket.close()
    status, violations = double.end()
    if not is_reported or status != 3 or not violations:
        sys.exit(f"bailian.py: error: a violation was not reported: status {status}, {violations}")


def speak(dialog, sound, pace=0.02):
    """Sends a recording, followed by silence."""
    for start in range(0, len(sound), FRAME):
        dialog.send_audio_data(bytes(sound[start : start + FRAME]))
        time.sleep(pace)
    for _ in range(12):
        dialog.send_audio_data(bytes(FRAME))
        time.sleep(pace)


def turn(recorder, dialog, mode, sound):
    """A spoken question and its answer."""
    listened, answered = recorder.states.count(DialogState.LISTENING), recorder.events.count("RespondingEnded")
    dialog.start_speech()
    speak(dialog, sound)
    if mode == "push2talk":
        dialog.stop_speech()
    recorder.wait("answer", lambda: recorder.events.count("RespondingEnded") > answered)
    dialog.local_responding_ended()
    recorder.wait("Listening", lambda: recorder.states.count(DialogState.LISTENING) > listened)


def run(url, mode, form, sound):
    """A complete dialogue."""
    recorder = Recorder()
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
        multimodal_callback=recorder,
        url=url,
        api_key="sk-interop",
        model="multimodal-dialog",
    )
    recorder.dialog = dialog
    dialog.start("")
    recorder.wait("first Listening", lambda: DialogState.LISTENING in recorder.states)
    for _ in range(2):
        turn(recorder, dialog, mode, sound)
    if not any(event.startswith("reply ") for event in recorder.events):
        raise Failure("no text of an answer")
    beginning = {"mp3": b"\xff", "opus": b"OggS"}.get(form, b"")
    if len(recorder.sound) < 4_000 or not recorder.sound.startswith(beginning):
        raise Failure(f"{len(recorder.sound)} bytes of {form} are not a reply")
    # A question as text, whose answer is interrupted.
    responded = recorder.events.count("RespondingStarted")
    dialog.request_to_respond("prompt", "why")
    recorder.wait("answer to a text", lambda: recorder.events.count("RespondingStarted") > responded)
    dialog.interrupt()
    recorder.wait("RequestAccepted", lambda: "RequestAccepted" in recorder.events)
    recorder.wait("Listening", lambda: recorder.states[-1] == DialogState.LISTENING)
    if mode == "duplex":
        barge_in(recorder, dialog, sound)
    dialog.send_heart_beat()
    dialog.stop()
    recorder.wait("end", lambda: "stopped" in recorder.events)
    errors = [event for event in recorder.events if event.startswith("error")]
    if errors:
        raise Failure(f"{errors}")
    print(f"{mode:10} {form:4} {len(recorder.sound):7} bytes of replies, {len(recorder.events)} events")


def barge_in(recorder, dialog, sound):
    """A barge-in."""
    responded, accepted = recorder.events.count("RespondingStarted"), recorder.events.count("RequestAccepted")
    dialog.request_to_respond("transcript", "One two three four five six seven eight nine ten eleven.")
    recorder.wait("reply", lambda: recorder.events.count("RespondingStarted") > responded)
    ended = recorder.events.count("RespondingEnded")
    speak(dialog, sound)
    recorder.wait("interruption", lambda: recorder.events.count("RequestAccepted") > accepted)
    recorder.wait("next answer", lambda: recorder.events.count("RespondingEnded") > ended)
    dialog.local_responding_ended()
    recorder.wait("Listening", lambda: recorder.states[-1] == DialogState.LISTENING)


def main():
    millrace, recording = sys.argv[1:]
    with wave.open(recording) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (16_000, 1, 2):
            sys.exit("bailian.py: error: the recording must be 16-bit mono at 16 kHz")
        # Two seconds: a sentence without a pause that would end it.
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
