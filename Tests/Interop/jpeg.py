#!/usr/bin/env python3
"""Has Pillow check every JPEG that the program makes of videos, photographs and unusual pictures.

usage: jpeg.py MILLRACE [FOLDER]

Each video and photograph of FOLDER, and pictures made here (1x1, 17x3, portrait, 4K, 8K, alpha, palette, grey, 10 and 16 bits),
goes through `video.read`, `video.scale` in four ways, and `video.sample`. Every JPEG must open, have the size that its event
tells, stay under the budget, and show what its source shows. Needs numpy and Pillow, and ffmpeg, which reads the videos' first pictures.
"""

import glob
import io
import json
import os
import subprocess
import sys
import tempfile

import numpy
from PIL import Image, ImageOps

BUDGET = 180_000
# Levels of 255 that a JPEG may be off its source on the average; a plane or a colour in the wrong place is off by 20 and more.
TOLERANCE = 6.0
Image.MAX_IMAGE_PIXELS = None

# What every picture goes through: another node before the sampler, how the budget is counted, and what Pillow calls the change.
WAYS = {
    "whole": (None, "jpeg", lambda picture: picture),
    "turned": (
        {"width": "${turnedWidth}", "rotate": "90", "mirror": True, "rate": 2},
        "base64",
        lambda picture: ImageOps.mirror(picture).transpose(Image.Transpose.ROTATE_270),
    ),
    "rgb": ({"pixel": "rgb24", "rate": 2}, "base64", lambda picture: picture),
    "bgrx": ({"pixel": "bgrx", "mirror": True, "rate": 2}, "base64", ImageOps.mirror),
    "nv12": (
        {"pixel": "nv12", "rotate": "180", "rate": 2},
        "base64",
        lambda picture: picture.transpose(Image.Transpose.ROTATE_180),
    ),
}


def graph():
    """One video, sampled in every way at once."""
    nodes = {"video": {"type": "video.read", "path": "${input}"}}
    links = []
    for way, (scale, count, _) in WAYS.items():
        nodes[f"{way}-eye"] = {"type": "video.sample", "maxBytes": BUDGET, "count": count}
        nodes[f"{way}-out"] = {"type": "image.write", "path": f"${{folder}}/{way}-{{number}}.jpg"}
        nodes[f"{way}-log"] = {"type": "event.log", "path": f"${{folder}}/{way}.jsonl"}
        if scale:
            nodes[f"{way}-scale"] = {"type": "video.scale", **scale}
            links.append(f"video -> {way}-scale -> {way}-eye -> {way}-out")
        else:
            links.append(f"video -> {way}-eye -> {way}-out")
        links.append(f"{way}-eye.events -> {way}-log.in1")
    parameters = {"input": {}, "folder": {}, "turnedWidth": {"default": 1}}
    return {"millrace": 1, "name": "jpeg-interop", "parameters": parameters, "nodes": nodes, "links": links}


def pattern(width, height):
    """Colours that differ from corner to corner, softly even in small pictures, and not alike when turned."""
    x = numpy.arange(width, dtype=numpy.float32)[None, :] / max(width, 100)
    y = numpy.arange(height, dtype=numpy.float32)[:, None] / max(height, 100)
    waves = 40 * numpy.sin(x * 25) * numpy.cos(y * 11)
    red, green = 40 + 160 * x + waves, 200 - 150 * y + waves
    blue = 60 + 120 * x * y + 0 * waves
    return Image.fromarray(numpy.clip(numpy.dstack([red, green, blue]), 0, 255).astype(numpy.uint8))


def made(folder):
    """Pictures of odd kinds: each as a path and what it shows."""
    made = []

    def keep(name, picture, shows=None, **options):
        path = os.path.join(folder, name)
        picture.save(path, **options)
        made.append((path, (shows or picture).convert("RGB")))

    for width, height in [(1, 1), (17, 3), (1, 64), (720, 1_280), (1_079, 1_919), (3_840, 2_160), (7_680, 4_320)]:
        keep(f"made-{width}x{height}.png", pattern(width, height), compress_level=1)
    plain = pattern(640, 362)
    see_through = plain.copy()
    see_through.putalpha(Image.linear_gradient("L").resize(plain.size))
    keep("made-alpha.png", see_through, plain)
    grey = plain.convert("L")
    keep("made-grey.png", grey)
    keep("made-grey-alpha.png", Image.merge("LA", [grey, Image.linear_gradient("L").resize(grey.size)]), grey)
    keep("made-grey-jpeg.jpg", grey, quality=95)
    keep("made-palette.png", plain.quantize(64))
    keep("made-one-bit.png", grey.convert("1"))
    keep("made-grey-16-bit.png", Image.fromarray(numpy.asarray(grey).astype(numpy.uint16) * 257), grey)
    keep("made-444.jpg", plain, quality=95, subsampling=0)
    for name, pixel in [("made-10-bit.mkv", "yuv420p10le"), ("made-10-bit-444.mkv", "yuv444p10le")]:
        path = os.path.join(folder, name)
        source = os.path.join(folder, "made-720x1280.png")
        ffmpeg(["-loop", "1", "-i", source, "-frames:v", "5", "-pix_fmt", pixel, "-c:v", "ffv1", path])
        made.append((path, pattern(720, 1_280)))
    return made


def ffmpeg(arguments):
    run = subprocess.run(
        ["ffmpeg", "-hide_banner", "-loglevel", "error", "-y", *arguments], capture_output=True, check=False
    )
    if run.returncode != 0:
        sys.exit(f"jpeg.py: error: ffmpeg {' '.join(arguments)} failed: {run.stderr.decode()}")
    return run.stdout


def first_picture(video):
    """The first picture of a video, as FFmpeg's own program reads it."""
    data = ffmpeg(["-i", video, "-frames:v", "1", "-f", "image2pipe", "-c:v", "png", "-"])
    return Image.open(io.BytesIO(data)).convert("RGB")


def distance(jpeg, wanted):
    """Levels that a JPEG is off what it should show, on the average."""
    wanted = wanted.resize(jpeg.size, Image.Resampling.LANCZOS)
    ours, theirs = (numpy.asarray(picture, dtype=numpy.float32) for picture in (jpeg, wanted))
    return float(numpy.abs(ours - theirs).mean())


class Tally:
    """What was looked at, and what was wrong with it."""

    def __init__(self):
        self.count = self.largest = 0
        self.worst = 0.0
        self.faults = []

    def fault(self, what, words):
        self.faults.append(f"{what}: {words}")

    def look(self, path, event, count, wanted, what):
        """Looks at one JPEG; `wanted` is None where nobody else has read its source."""
        with open(path, "rb") as file:
            data = file.read()
        size = (len(data) + 2) // 3 * 4 if count == "base64" else len(data)
        if size >= BUDGET:
            self.fault(what, f"{size} bytes, budget {BUDGET}")
        try:
            picture = Image.open(io.BytesIO(data))
            picture.load()
        except (OSError, SyntaxError) as error:
            return self.fault(what, f"Pillow refuses it: {error}")
        told = (event["width"], event["height"], event["bytes"])
        found = (*picture.size, len(data))
        if picture.format != "JPEG" or picture.mode != "RGB" or told != found:
            self.fault(what, f"is {picture.format} {picture.mode} {found}, told as {told}")
        self.count += 1
        self.largest = max(self.largest, size)
        if wanted is None:
            return None
        off = distance(picture, wanted)
        self.worst = max(self.worst, off)
        if not off <= TOLERANCE:
            self.fault(what, f"is off its source by {off:.1f} levels")
        return None


def sample(millrace, plan, source, wanted, folder, tally):
    """Runs the graph over one source and looks at all that came of it."""
    turned_width = max(1, wanted.height // 2)
    command = [millrace, "run", plan]
    for setting in (f"input={source}", f"folder={folder}", f"turnedWidth={turned_width}"):
        command += ["--set", setting]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    name = os.path.basename(source)
    if run.returncode != 0:
        return tally.fault(name, f"status {run.returncode} of {' '.join(command)}: {run.stderr.strip()}")
    for way, (_, count, change) in WAYS.items():
        with open(os.path.join(folder, f"{way}.jsonl"), encoding="utf-8") as file:
            events = [event for event in map(json.loads, file) if event["event"] == "picture"]
        paths = sorted(glob.glob(os.path.join(folder, f"{way}-*.jpg")))
        if not paths or len(paths) != len(events):
            tally.fault(f"{name} {way}", f"{len(paths)} pictures, {len(events)} events")
        for number, (path, event) in enumerate(zip(paths, events)):
            shows = change(wanted) if number == 0 else None
            tally.look(path, event, count, shows, f"{name} {way} {number + 1}")
            os.remove(path)
    return None


def main(millrace, corpus):
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        sources = made(folder)
        if corpus:
            videos, photographs = (sorted(glob.glob(f"{corpus}/*.{kind}")) for kind in ("mp4", "jpg"))
            sources += [(path, first_picture(path)) for path in videos]
            sources += [(path, Image.open(path).convert("RGB")) for path in photographs]
            print(f"{len(videos)} videos and {len(photographs)} photographs of {corpus}")
        plan = os.path.join(folder, "graph.json")
        with open(plan, "w", encoding="utf-8") as file:
            json.dump(graph(), file)
        for source, wanted in sources:
            with tempfile.TemporaryDirectory() as place:
                sample(millrace, plan, os.path.abspath(source), wanted, place, tally)
    print(
        f"{tally.count} JPEGs of {len(sources)} sources: the largest {tally.largest} of {BUDGET} bytes, "
        f"off their sources by {tally.worst:.1f} levels at most"
    )
    for fault in tally.faults:
        print(f"jpeg.py: error: {fault}", file=sys.stderr)
    if tally.faults or tally.count < len(sources) * len(WAYS):
        sys.exit(1)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else None)
