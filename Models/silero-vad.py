#!/usr/bin/env python3
"""Gets the weights of the Silero voice activity detector and writes them in the form that audio.vad reads.

usage: Models/silero-vad.py [--wheel FILE] [--output FILE]

Fetches the pinned wheel with pip (Models/silero-vad.txt names version and SHA-256), or takes one that is there already,
reads the tensors out of the ONNX file in it, and writes one file of weights into the folder MILLRACE_MODELS names,
else into $XDG_CACHE_HOME/millrace/models, else into ~/.cache/millrace/models. Does nothing when a whole file of that
version is there. Python's standard library is all it needs.

The file, numbers little-endian:

    offset  bytes
         0      8  "MRSILERO"
         8      4  version of this layout: 1
        12      4  CRC-32 (as in zip) of everything from offset 16 on
        16      4  bytes from offset 20 on
        20     16  where the weights come from, UTF-8, filled up with zeros
        36      4  number of networks
                   and for each network
         0      4  sample rate in Hz
         4      4  number of floats
         8     4n  the tensors of TENSORS, in that order, as 32-bit floats, last index fastest

The wheel holds several networks. This takes silero_vad.onnx, the one its own Python loads by default: a condition with
16 kHz in one branch, whose tensors are bit for bit those of silero_vad_16k_op15.onnx, and 8 kHz in the other. (The 8 kHz
tensors of silero_vad_op18_ifless.onnx and all of silero_vad_16k.safetensors are other numbers.) The Fourier transform at
the network's front is stored there as a convolution; it is a plain DFT under a Hann window, which is checked here and
left out.
"""

import argparse
import hashlib
import math
import os
import pwd
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

VERSION = "6.2.3"
MEMBER = "silero_vad/data/silero_vad.onnx"
MEMBER_SHA256 = "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"
MAGIC, LAYOUT = b"MRSILERO", 1

# Sample rate, prefix of its tensors, length of its Fourier transform.
NETWORKS = [
    (16_000, "If_0_then_branch__Inline_0__", 256),
    (8_000, "If_0_else_branch__Inline_0__", 128),
]
# Name and dimensions; None stands for the bins of the transform.
TENSORS = [
    ("encoder.0.reparam_conv.weight", (128, None, 3)),
    ("encoder.0.reparam_conv.bias", (128,)),
    ("encoder.1.reparam_conv.weight", (64, 128, 3)),
    ("encoder.1.reparam_conv.bias", (64,)),
    ("encoder.2.reparam_conv.weight", (64, 64, 3)),
    ("encoder.2.reparam_conv.bias", (64,)),
    ("encoder.3.reparam_conv.weight", (128, 64, 3)),
    ("encoder.3.reparam_conv.bias", (128,)),
    ("decoder.rnn.weight_ih", (512, 128)),
    ("decoder.rnn.weight_hh", (512, 128)),
    ("decoder.rnn.bias_ih", (512,)),
    ("decoder.rnn.bias_hh", (512,)),
    ("decoder.decoder.2.weight", (1, 128, 1)),
    ("decoder.decoder.2.bias", (1,)),
]


class Refused(Exception):
    """What went wrong and what to do, in a sentence."""


def fields(data):
    """The fields of a protobuf message: (number, value), values as int or bytes. Google's encoding guide is the source."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        if kind not in (1, 2, 5):
            raise Refused(f"the ONNX file has a field of the unknown kind {kind}")
        length = varint() if kind == 2 else 8 if kind == 1 else 4
        if at + length > len(data):
            raise Refused("the ONNX file is cut short")
        yield number, data[at : at + length]
        at += length


def values_of(message, wanted):
    """The values of all fields of a message that have a number."""
    return [value for number, value in fields(message) if number == wanted]


def tensors(graph):
    """Every float tensor that a graph or a branch below it holds as a constant: name to (dimensions, bytes)."""
    # onnx.proto. GraphProto: node = 1. NodeProto: output = 2, attribute = 5. AttributeProto: t = 5, g = 6.
    found = {}
    for node in values_of(graph, 1):
        names = [bytes(name).decode() for name in values_of(node, 2)]
        for attribute in values_of(node, 5):
            for branch in values_of(attribute, 6):
                found |= tensors(branch)
            for content in values_of(attribute, 5):
                if shaped := floats(content):
                    found[names[0]] = shaped
    return found


def floats(content):
    """Dimensions and little-endian bytes of a tensor of 32-bit floats; None for one of another kind."""
    # TensorProto: dims = 1, data_type = 2 (1: float), raw_data = 9.
    if values_of(content, 2) != [1]:
        return None
    dimensions = []
    for value in values_of(content, 1):
        # One number a field, or several packed into one.
        dimensions += [value] if isinstance(value, int) else packed(value)
    return tuple(dimensions), b"".join(bytes(raw) for raw in values_of(content, 9))


def packed(data):
    """The numbers of a packed field."""
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value = shift = 0
    return values


def tensor(found, name, dimensions):
    """The bytes of a tensor, checked to be of a shape."""
    if name not in found:
        raise Refused(f'the ONNX file has no tensor "{name}"')
    shape, raw = found[name]
    if shape != dimensions or len(raw) != 4 * math.prod(dimensions):
        raise Refused(f'tensor "{name}" has the shape {shape}, not {dimensions}')
    return raw


def check_transform(raw, length):
    """Makes sure that the stored convolution is a DFT under a Hann window: cosine rows, then negative sine rows."""
    values = struct.unpack(f"<{len(raw) // 4}f", raw)
    bins = length // 2 + 1
    turn = [2 * math.pi * i / length for i in range(length)]
    window = [0.5 - 0.5 * math.cos(angle) for angle in turn]
    for row in range(2 * bins):
        wave = math.cos if row < bins else lambda angle: -math.sin(angle)
        for i in range(length):
            wanted = window[i] * wave(turn[row % bins * i % length])
            if abs(values[row * length + i] - wanted) > 1e-6:
                raise Refused("the network's transform is not a DFT under a Hann window; MillraceDSP would not match it")


def weights(model):
    """The file of weights for an ONNX model."""
    # ModelProto: graph = 7.
    found = {}
    for graph in values_of(memoryview(model), 7):
        found |= tensors(graph)
    body = struct.pack("<16sI", f"silero-vad {VERSION}".encode(), len(NETWORKS))
    for rate, prefix, length in NETWORKS:
        bins = length // 2 + 1
        check_transform(tensor(found, prefix + "stft.forward_basis_buffer", (2 * bins, 1, length)), length)
        floats = b"".join(
            tensor(found, prefix + name, tuple(size or bins for size in shape)) for name, shape in TENSORS
        )
        body += struct.pack("<II", rate, len(floats) // 4) + floats
    rest = struct.pack("<I", len(body)) + body
    return MAGIC + struct.pack("<II", LAYOUT, zlib.crc32(rest)) + rest


def is_whole(path):
    """Whether a file of weights is there and undamaged."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return False
    return data[:8] == MAGIC and len(data) > 36 and data[8:16] == struct.pack("<II", LAYOUT, zlib.crc32(data[16:]))


def fetch(folder):
    """Downloads the pinned wheel; pip checks its SHA-256."""
    pins = os.path.join(os.path.dirname(os.path.abspath(__file__)), "silero-vad.txt")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "--dest", folder, "--requirement", pins]
    if subprocess.run(command, check=False).returncode != 0:
        raise Refused("pip could not get the silero-vad wheel; look at its words above, or give one with --wheel FILE")
    return os.path.join(folder, os.listdir(folder)[0])


def model(wheel):
    """The ONNX file of a wheel, checked."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            data = archive.read(MEMBER)
    except (OSError, KeyError, zipfile.BadZipFile) as problem:
        raise Refused(f'"{wheel}" gives no {MEMBER}: {problem}; it takes the wheel of silero-vad {VERSION}') from problem
    sha = hashlib.sha256(data).hexdigest()
    if sha != MEMBER_SHA256:
        raise Refused(f'{MEMBER} of "{wheel}" has the SHA-256 {sha}, not {MEMBER_SHA256}; it takes silero-vad {VERSION}')
    return data


def home():
    """The home directory: HOME, or the entry in the user database; None if there is neither."""
    try:
        return os.environ.get("HOME") or pwd.getpwuid(os.geteuid()).pw_dir or None
    except KeyError:
        return None


def destination():
    """Where audio.vad looks for the file."""
    # As in UserDirectories of MillraceFiles, an empty variable counts as unset.
    cache = os.environ.get("XDG_CACHE_HOME") or home() and home() + "/.cache" or "/var/cache"
    folder = os.environ.get("MILLRACE_MODELS") or cache + "/millrace/models"
    return os.path.join(folder, f"silero-vad-{VERSION}.weights")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wheel", help="a wheel that is there already, in place of a download")
    parser.add_argument("--output", help="file to write, in place of the one audio.vad looks for")
    given = parser.parse_args()
    path = given.output or destination()
    if is_whole(path):
        return
    with tempfile.TemporaryDirectory() as folder:
        data = weights(model(given.wheel or fetch(folder)))
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        # Renamed into place, so that nobody ever sees half a file.
        part = f"{path}.{os.getpid()}"
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except OSError as problem:
        raise Refused(f'"{path}" cannot be written: {problem.strerror}; name another folder with MILLRACE_MODELS') from problem
    print(f"wrote {path}: {len(data)} bytes")


if __name__ == "__main__":
    try:
        main()
    except Refused as refused:
        print(f"silero-vad.py: error: {refused}", file=sys.stderr)
        sys.exit(1)
