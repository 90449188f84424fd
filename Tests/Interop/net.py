#!/usr/bin/env python3
"""Tests the WebSocket client and server of MillraceNet against the PyPI package `websockets`.

usage: net.py NET_PEER CERTIFICATES

NET_PEER is the program of Tests/NetPeer; CERTIFICATES is the folder with the test certificates. Every case runs plain and over TLS:
sizes around the limits of the frame length formats, fragments that split characters, compression offered by the peer, close codes in
both directions, pings, subprotocols, oversized messages in both directions, invalid UTF-8, refusals. Prints one line per case; fails
when a case fails.
"""

import ssl
import subprocess
import sys
import threading
import zlib

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import serve

PEER, FOLDER = sys.argv[1], sys.argv[2]
SIZES = [0, 1, 125, 126, 65_535, 65_536, 1_000_000, 4_194_304]
LARGEST = 4 << 20
WAIT = 60
WORDS = "gr\u00fc\u00df dich \U0001f600"


BLOCK = bytes((i * 31 + (i >> 8)) & 255 for i in range(65_536))


def pattern(count):
    return (BLOCK * (count // len(BLOCK) + 1))[:count]


class Peer:
    """A running net-peer, and the lines it prints."""

    def __init__(self, *words):
        self.process = subprocess.Popen(
            [PEER, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", bufsize=1
        )
        # Ends a peer that no longer answers.
        self.watch = threading.Timer(WAIT, self.process.kill)
        self.watch.start()

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def expect(self, line):
        line_read = self.process.stdout.readline().rstrip("\n")
        assert line_read == line, f"expected {line!r}, got {line_read!r}"

    def first(self, word):
        line_read = self.process.stdout.readline().split()
        assert line_read and line_read[0] == word, f"expected {word!r}, got {line_read!r}"
        return line_read[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(WAIT)
        self.watch.cancel()


# Our client, their server.


def client_sizes(socket, peer):
    for size in SIZES:
        peer.send(f"send {size}")
        data = socket.recv(timeout=WAIT)
        assert data == pattern(size), f"{size} bytes differ"
        socket.send(data)
        peer.expect(f"binary {size} {zlib.adler32(data)}")
    peer.send("text " + WORDS)
    assert socket.recv(timeout=WAIT) == WORDS
    peer.send("close 4002 enough")
    closed(socket, 4002, "enough")
    peer.expect("closed 4002 enough")


def client_fragments(socket, peer):
    raw = WORDS.encode()
    cuts = [raw[i : i + 1] for i in range(len(raw))]
    # A ping between two fragments is answered.
    with socket.send_context():
        socket.protocol.send_text(cuts[0], fin=False)
    answered = socket.ping()
    assert answered.wait(WAIT), "no pong"
    for cut in cuts[1:]:
        with socket.send_context():
            socket.protocol.send_continuation(cut, fin=False)
    with socket.send_context():
        socket.protocol.send_continuation(b"", fin=True)
    peer.expect("text " + WORDS)
    socket.send([b"ab", b"", b"cd"])
    peer.expect(f"binary 4 {zlib.adler32(b'abcd')}")
    socket.close(4001, "so be it")
    peer.expect("closed 4001 so be it")


def client_handshake(socket, peer):
    assert "Sec-WebSocket-Extensions" not in socket.request.headers, "an extension was offered"
    assert socket.protocol.extensions == []
    socket.close()
    peer.expect("closed 1000 ")


def client_too_large(socket, peer):
    peer.send(f"send {LARGEST + 1}")
    peer.expect("closed 1009 " + wait_reason(socket, 1009))


def client_gets_too_large(socket, peer):
    try:
        socket.send(bytes(LARGEST + 1))
    except ConnectionClosed:
        pass
    closed(socket, 1009)
    peer.expect("failed 1009 tooLarge 0")


def client_not_utf8(socket, peer):
    with socket.send_context():
        socket.protocol.send_text(b"\xc3\x28")
    closed(socket, 1007)
    peer.expect("failed 1007 protocolError 0")


def client_cancels(socket, peer):
    peer.send("cancel")
    peer.expect("failed 1006 cancelled 0")
    wait_reason(socket, None)


def client_case(case, secure):
    failures = []
    context = None
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{FOLDER}/localhost.pem", f"{FOLDER}/localhost.key")

    def handle(socket):
        try:
            peer.expect("opened first")
            case(socket, peer)
        except BaseException as error:  # Reported by the waiting thread.
            failures.append(error)
            raise
        finally:
            done.set()

    done = threading.Event()
    with serve(handle, "localhost", 0, ssl=context, subprotocols=["first"], max_size=LARGEST) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.socket.getsockname()[1]
        words = [f"wss://localhost:{port}/a", f"{FOLDER}/ca.pem"] if secure else [f"ws://localhost:{port}/a"]
        with Peer("connect", *words) as peer:
            assert done.wait(WAIT), "timed out"
        server.shutdown()
    if failures:
        raise failures[0]


# Our server, their client.


def server_sizes(socket, peer):
    assert socket.protocol.extensions == [], "compression was negotiated"
    assert socket.subprotocol == "second"
    for size in SIZES:
        data = pattern(size)
        socket.send(data)
        assert socket.recv(timeout=WAIT) == data, f"{size} bytes differ"
    socket.send(WORDS)
    assert socket.recv(timeout=WAIT) == WORDS
    socket.close(4003, "done")
    peer.expect("closed 4003 done")


def server_fragments(socket, peer):
    socket.send([WORDS[:3], "", WORDS[3:]])
    assert socket.recv(timeout=WAIT) == WORDS
    assert socket.ping().wait(WAIT), "no pong"
    socket.send(pattern(1000)[i : i + 7] for i in range(0, 1000, 7))
    assert socket.recv(timeout=WAIT) == pattern(1000)
    socket.send("close 4001 because")
    closed(socket, 4001, "because")
    peer.expect("closed 4001 because")


def server_too_large(socket, peer):
    try:
        socket.send(bytes(LARGEST + 1))
    except ConnectionClosed:
        pass
    closed(socket, 1009)
    peer.expect("failed 1009 tooLarge 0")


def server_sends_too_large(socket, peer):
    socket.send(f"send {LARGEST + 1}")
    peer.expect("closed 1009 " + wait_reason(socket, 1009))


def server_not_utf8(socket, peer):
    with socket.send_context():
        socket.protocol.send_text(b"\xff")
    closed(socket, 1007)
    peer.expect("failed 1007 protocolError 0")


def server_case(case, secure):
    files = [f"{FOLDER}/localhost.pem", f"{FOLDER}/localhost.key"] if secure else []
    context = ssl.create_default_context(cafile=f"{FOLDER}/ca.pem") if secure else None
    # The stricter rules of OpenSSL 3 are not tested here.
    if context:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    with Peer("serve", *files) as peer:
        port = peer.first("port")
        address = f"{'wss' if secure else 'ws'}://127.0.0.1:{port}"
        options = dict(ssl=context, subprotocols=["first", "second"], max_size=LARGEST, proxy=None)
        try:
            connect(address + "/forbidden", **options)
            raise AssertionError("the connection was accepted")
        except InvalidStatus as refused:
            assert refused.response.status_code == 403
        with connect(address + "/", **options) as socket:
            peer.expect("opened second")
            case(socket, peer)


def wait_reason(socket, code):
    """Waits for the end, and returns the reason that was sent."""
    try:
        while True:
            socket.recv(timeout=WAIT)
    except ConnectionClosed as end:
        if code is None:
            assert end.rcvd is None, f"unexpected close frame: {end.rcvd}"
            return ""
        assert end.sent and end.sent.code == code, f"expected to send {code}: {end}"
        return end.sent.reason


def closed(socket, code, reason=None):
    """Waits for the close frame of the peer."""
    try:
        while True:
            socket.recv(timeout=WAIT)
    except ConnectionClosed as end:
        assert end.rcvd, f"no close frame: {end}"
        assert end.rcvd.code == code, f"expected {code}, got {end.rcvd}"
        assert reason is None or end.rcvd.reason == reason, f"expected {reason!r}, got {end.rcvd}"


CASES = [
    (client_case, [client_sizes, client_fragments, client_handshake, client_too_large, client_gets_too_large,
                   client_not_utf8, client_cancels]),
    (server_case, [server_sizes, server_fragments, server_too_large, server_sends_too_large, server_not_utf8]),
]

failed = 0
for run, cases in CASES:
    for case in cases:
        for secure in [False, True]:
            try:
                run(case, secure)
                verdict = "ok"
            except Exception as error:
                failed += 1
                verdict = f"FAILED: {type(error).__name__}: {error}"
            print(f"{case.__name__:24} {'TLS  ' if secure else 'plain'} {verdict}", flush=True)
sys.exit(1 if failed else 0)
