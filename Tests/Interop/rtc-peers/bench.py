"""What the cases stand on: the networks, the servers on the far side, and Millrace on the near one."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import network

HERE = pathlib.Path(__file__).parent
# Seconds in which Millrace ends after a signal, at most.
ENDING = 60
# How long it waits at most for peers that begin when they can.
PATIENCE = 90


class Failure(Exception):
    """A case that has not passed, in words."""


class Bench:
    def __init__(self, millrace, aiortc):
        self.millrace = str(pathlib.Path(millrace).resolve())
        self.aiortc = str(pathlib.Path(aiortc).resolve())
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-rtc-"))
        self.network = network.Network()
        self.servers = []

    def close(self):
        for server in reversed(self.servers):
            end(server)
        self.network.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # Programs

    def start(self, side, *command, log=None, **options):
        """Starts a program on one side; it is ended with the bench at the latest."""
        environment = {**os.environ, "PYTHONPATH": self.aiortc, "PYTHONDONTWRITEBYTECODE": "1", **options.pop("environment", {})}
        output = open(log, "wb") if log else subprocess.PIPE
        process = subprocess.Popen(
            self.network.command(side, *map(str, command)), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT if log else subprocess.PIPE, env=environment, cwd=self.folder, start_new_session=True, **options)
        self.servers.append(process)
        return process

    def aio(self, *command):
        """Starts a peer of aiortc on the far side."""
        return self.start("far", "python3", HERE / "aio.py", *command)

    def result(self, process, seconds):
        """What a peer has printed at its end."""
        output, errors = finish(process, seconds)
        lines = [line for line in output.splitlines() if line.startswith("{")]
        if not lines:
            raise Failure(f"the peer has said nothing: {errors.strip().splitlines()[-1:]}")
        return json.loads(lines[-1])

    def serve(self, *command, log, until=None, address=None, side="far", seconds=20):
        """Starts a server and waits until its log has a text, or until it accepts connections at an address and port."""
        path = self.folder / log
        process = self.start(side, *command, log=path)
        end_at = time.monotonic() + seconds
        while time.monotonic() < end_at:
            if until and until in path.read_text(errors="replace") or address and self.accepts(*address, side):
                return process
            if process.poll() is not None:
                break
            time.sleep(0.05)
        raise Failure(f"{command[0]} has not started: {path.read_text(errors='replace')[-400:]}")

    def accepts(self, host, port, side="far"):
        """True when somebody listens."""
        probe = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)"
        return not subprocess.run(self.network.command(side, "python3", "-c", probe, host, str(port)), capture_output=True).returncode

    def graph(self, name, nodes, links):
        """Writes a graph."""
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"millrace": 1, "name": name, "clock": "realtime", "nodes": nodes, "links": links}))
        return path

    def run(self, name, nodes, links, seconds, environment=None):
        """Starts Millrace on the near side for `seconds`; `finish` waits for it."""
        # In the foreground `timeout` passes a signal on once; a second one would stop the graph without draining.
        return self.start(
            "near", "timeout", "--foreground", f"--kill-after={ENDING}", seconds + 30, self.millrace, "run", self.graph(name, nodes, links),
            "--duration", f"{seconds}s", "--quiet", environment=environment or {})

    @contextlib.contextmanager
    def running(self, name, nodes, links):
        """Millrace on the near side for as long as the peers of a case take; then it has to end well."""
        process = self.run(name, nodes, links, PATIENCE)
        try:
            yield process
        except BaseException:
            end(process)
            raise
        process.send_signal(signal.SIGINT)
        succeed(process, ENDING)

    def path(self, name):
        return str(self.folder / name)

    def events(self, name):
        """The events of a log, in their order."""
        with open(self.path(name), errors="replace") as file:
            return [json.loads(line) for line in file if line.startswith("{") and line.endswith("\n")]


def end(process):
    """Ends a program and what it has started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()


def kill(process):
    """Ends a program at once, without a chance to say goodbye."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def finish(process, seconds):
    """Waits for a program, and returns what it has written to both streams."""
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        end(process)
        raise Failure(f"not over after {seconds} s")
    return output.decode(errors="replace"), errors.decode(errors="replace")


def succeed(process, seconds):
    """Waits for a program that has to end well."""
    output, errors = finish(process, seconds)
    if process.returncode:
        raise Failure(f"status {process.returncode}: {(errors or output).strip()[-400:]}")
    return output
