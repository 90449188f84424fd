#!/usr/bin/env python3
"""Compares audio.vad with ONNX Runtime on the same weights, step by step of 32 ms, on recordings.

usage: vad.py MILLRACE WHEEL RECORDING...

Each recording goes through the program MILLRACE at 16 and at 8 kHz; what it heard (as a WAV file) and what it made of it
(`probability` events) are held against the networks in the silero-vad wheel. Fails when any step differs by more than 1e-4.
Needs numpy and onnxruntime.
"""

import json
import os
import subprocess
import sys
import tempfile
import wave
import zipfile

import numpy
import onnxruntime

LIMIT = 1e-4
NETWORKS = {16_000: "silero_vad/data/silero_vad_16k_op15.onnx", 8_000: "silero_vad/data/silero_vad.onnx"}
GRAPH = {
    "millrace": 1,
    "name": "vad-interop",
    "parameters": {"input": {}, "folder": {}, "rate": {"default": 16_000}},
    "nodes": {
        "file": {"type": "audio.read", "path": "${input}"},
        "mono": {"type": "audio.convert", "channels": 1, "sample": "s16"},
        "rate": {"type": "audio.resample", "rate": "${rate}", "align": "file"},
        "vad": {"type": "audio.vad", "report": 32},
        "heard": {"type": "audio.write", "path": "${folder}/heard.wav"},
        "events": {"type": "event.log", "path": "${folder}/events.jsonl"},
    },
    "links": ["file -> mono -> rate -> vad -> heard", "vad.events -> events.in1"],
}


def ours(millrace, recording, rate, folder):
    """What the program heard, and the probabilities it told."""
    graph = os.path.join(folder, "graph.json")
    with open(graph, "w", encoding="utf-8") as file:
        json.dump(GRAPH, file)
    settings = [f"input={os.path.abspath(recording)}", f"folder={folder}", f"rate={rate}"]
    command = [millrace, "run", graph, "--clock", "virtual"]
    for setting in settings:
        command += ["--set", setting]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"vad.py: error: {' '.join(command)} failed:\n{run.stderr}")
    with wave.open(os.path.join(folder, "heard.wav")) as sound:
        samples = numpy.frombuffer(sound.readframes(sound.getnframes()), "<i2")
    with open(os.path.join(folder, "events.jsonl"), encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    return samples, [event["probability"] for event in events if event["event"] == "probability"]


def theirs(session, samples, rate):
    """What ONNX Runtime makes of the sound: 4 ms of the step before, 32 ms of new sound, state carried along."""
    step, margin = rate * 32 // 1_000, rate * 4 // 1_000
    sound = samples.astype(numpy.float32) / 32_768
    state, before, heard = numpy.zeros((2, 1, 128), numpy.float32), numpy.zeros((1, margin), numpy.float32), []
    for start in range(0, len(sound) - step + 1, step):
        piece = numpy.concatenate([before, sound[None, start : start + step]], 1)
        output, state = session.run(None, {"input": piece, "state": state, "sr": numpy.array(rate, numpy.int64)})
        before = piece[:, -margin:]
        heard.append(float(output.item()))
    return heard


def main(millrace, wheel, recordings):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    worst = 0.0
    for rate, member in NETWORKS.items():
        with zipfile.ZipFile(wheel) as archive:
            session = onnxruntime.InferenceSession(archive.read(member), options, providers=["CPUExecutionProvider"])
        steps = 0
        difference = 0.0
        for recording in recordings:
            with tempfile.TemporaryDirectory() as folder:
                samples, told = ours(millrace, recording, rate, folder)
            wanted = theirs(session, samples, rate)
            if len(told) != len(wanted):
                sys.exit(f"vad.py: error: {recording}: {len(told)} probabilities for {len(wanted)} steps")
            steps += len(told)
            difference = max([difference] + [abs(a - b) for a, b in zip(told, wanted)])
        print(f"{rate} Hz: {steps} steps of {len(recordings)} recordings, largest difference {difference:.2e}")
        worst = max(worst, difference)
    if not worst <= LIMIT:
        sys.exit(f"vad.py: error: differs from ONNX Runtime by {worst:.2e}, more than {LIMIT:.0e}")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
