"""What is in a WAV file: levels of tones, and silences. Without libraries."""
import array
import math
import struct


def read(path):
    """Sampling rate and samples of the first channel, -1 to 1. A file that is still being written is read as far as it goes."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] not in (b"RIFF", b"RF64") or data[8:12] != b"WAVE":
        raise ValueError(f"{path} is no WAV file")
    place, tag, channels, rate, bits = 12, 0, 1, 0, 16
    while place + 8 <= len(data):
        name, size = data[place : place + 4], struct.unpack_from("<I", data, place + 4)[0]
        if name == b"fmt ":
            tag, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", data, place + 8)
        if name == b"data":
            size = min(size, len(data) - place - 8)
            frame = channels * bits // 8
            content = data[place + 8 : place + 8 + size // frame * frame]
            is_float = bits == 32
            samples = array.array("f" if is_float else "h", content)[::channels]
            return rate, list(samples) if is_float else [value / 32768 for value in samples]
        place += 8 + size + size % 2
    raise ValueError(f"{path} has no samples")


def tone(samples, rate, frequency):
    """The share of the energy of the samples that is at a frequency, 0 to 1 (Goertzel's algorithm over blocks of 100 ms)."""
    block = rate // 10
    found, whole = 0.0, 0.0
    for start in range(0, len(samples) - block + 1, block):
        part = samples[start : start + block]
        step = 2 * math.cos(2 * math.pi * frequency / rate)
        one = two = 0.0
        for value in part:
            one, two = value + step * one - two, one
        found += (one * one + two * two - step * one * two) * 2 / block
        whole += sum(value * value for value in part)
    return min(found / whole, 1) if whole > 1e-9 else 0.0


def level(samples):
    """RMS in dB relative to full scale."""
    mean = sum(value * value for value in samples) / max(1, len(samples))
    return 10 * math.log10(mean) if mean > 1e-12 else -120.0


def heard(path, seconds=1.0):
    """Rate and the last `seconds` of a file but for its last 300 ms, which the end of a call may have cut."""
    rate, samples = read(path)
    end = len(samples) - int(0.3 * rate)
    part = samples[max(0, end - int(seconds * rate)) : end]
    if len(part) < rate // 2:
        raise ValueError(f"only {len(samples) / max(1, rate):.2f} s were heard")
    return rate, part


def loudest(path, seconds=1.0):
    """Rate and the loudest `seconds` of a file: of a call that had ended before."""
    rate, samples = read(path)
    count = int(seconds * rate)
    starts = range(0, max(1, len(samples) - count), count // 4)
    return rate, max((samples[start : start + count] for start in starts), key=level)


def check_tone(path, wanted, absent=(), seconds=1.0, is_loudest=False):
    """Raises unless the end of a file, or its loudest part, has the wanted frequencies and lacks the absent ones. Returns what was seen."""
    rate, part = loudest(path, seconds) if is_loudest else heard(path, seconds)
    shares = {frequency: tone(part, rate, frequency) for frequency in (*wanted, *absent)}
    text = ", ".join(f"{frequency} Hz {share:.0%}" for frequency, share in shares.items())
    text += f", {level(part):.0f} dBFS"
    if level(part) < -45:
        raise ValueError(f"next to nothing was heard: {text}")
    if any(shares[frequency] < 0.6 / len(wanted) for frequency in wanted):
        raise ValueError(f"the tone was not heard: {text}")
    if any(shares[frequency] > 0.05 for frequency in absent):
        raise ValueError(f"a tone was heard that must not be: {text}")
    return text


def longest_silence(path, floor=-50.0, skip=1.0):
    """Milliseconds of the longest silence after the first `skip` seconds, in steps of 10 ms."""
    rate, samples = read(path)
    block, longest, now = rate // 100, 0, 0
    for start in range(int(skip * rate), len(samples) - int(0.3 * rate) - block, block):
        now = now + 10 if level(samples[start : start + block]) < floor else 0
        longest = max(longest, now)
    return longest
