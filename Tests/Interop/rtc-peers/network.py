"""Two networks with a wire between them, each in a namespace of its own: "near" has the program under test, "far" its peers.

The wire is a pair of virtual interfaces; a second one loses and delays packets in this process, since not every kernel can do that
itself. The second wire's addresses are `NEAR_LOSSY` and `FAR_LOSSY`. Needs root.
"""
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import subprocess
import threading
import time

NEAR, FAR = "10.77.0.2", "10.77.0.1"
NEAR6, FAR6 = "fd77::2", "fd77::1"
NEAR_LOSSY, FAR_LOSSY = "10.78.0.2", "10.78.0.1"

# A link-layer address that no interface has; locally administered.
NOBODY = "02:00:00:00:00:99"

# <linux/if_tun.h>
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000


def run(*command):
    """Runs a program, and raises with what it wrote when it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Network:
    """Both namespaces. `close` removes them with everything in them."""

    def __init__(self):
        self.near, self.far = f"mr-near-{os.getpid()}", f"mr-far-{os.getpid()}"
        self.lossy, self.added = None, 0
        for name in (self.near, self.far):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", self.near, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", self.far)
        for name, address, address6 in ((self.near, NEAR, NEAR6), (self.far, FAR, FAR6)):
            run("ip", "-n", name, "address", "add", f"{address}/24", "dev", "wire")
            # Without the check for duplicates, for which an address would wait a second.
            run("ip", "-n", name, "-6", "address", "add", f"{address6}/64", "dev", "wire", "nodad")
            run("ip", "-n", name, "link", "set", "wire", "up")
        # An address that the kernel still checks for duplicates, as it does those of the link for a second, can be seen but not bound.
        end_at = time.monotonic() + 20
        for name in (self.near, self.far):
            while run("ip", "-n", name, "-6", "address", "show", "dev", "wire", "tentative"):
                if time.monotonic() > end_at:
                    raise RuntimeError(f"the addresses of {name} are not ready")
                time.sleep(0.02)

    def command(self, side, *command):
        """A command on one side."""
        return ["ip", "netns", "exec", getattr(self, side), *command]

    def make_lossy(self, loss, burst, delay):
        """Adds the second wire: `loss` in percent in bursts of `burst` packets on average, `delay` in seconds each way."""
        self.lossy = LossyWire((self.near, NEAR_LOSSY), (self.far, FAR_LOSSY), loss, burst, delay)

    def add_address(self):
        """Another address of the near side, and which."""
        self.added += 1
        address = f"10.77.0.{100 + self.added}"
        run("ip", "-n", self.near, "address", "add", f"{address}/24", "dev", "wire")
        return address

    def lose(self, address):
        """From now on nothing of the far side reaches an address of the near one, and nobody is told. The other way stays open."""
        run("ip", "-n", self.far, "neigh", "replace", address, "lladdr", NOBODY, "dev", "wire", "nud", "permanent")

    def find(self, address):
        """Opens the way again that `lose` has closed."""
        run("ip", "-n", self.far, "neigh", "del", address, "dev", "wire")

    def close(self):
        if self.lossy:
            self.lossy.close()
        for name in (self.near, self.far):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


class LossyWire:
    """Two TUN interfaces, with a thread between them that loses and delays what passes."""

    def __init__(self, one, other, loss, burst, delay, seed=1):
        self.random = random.Random(seed)
        # Gilbert's model: a good state without loss, a bad one that loses everything.
        self.leave = 1 / burst
        self.enter = loss / 100 / burst / (1 - loss / 100)
        self.delay = delay
        self.passed, self.lost = 0, 0
        self.ends = [self.open(*one), self.open(*other)]
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.pump, daemon=True)
        self.thread.start()

    @staticmethod
    def open(namespace, address):
        made = []

        def inside():
            # Of this thread alone.
            with open(f"/run/netns/{namespace}") as place:
                os.setns(place.fileno(), 0x40000000) if hasattr(os, "setns") else setns(place.fileno())
            end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", b"lossy", IFF_TUN | IFF_NO_PI))
            made.append(end)

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        if not made:
            raise RuntimeError("this machine has no /dev/net/tun")
        run("ip", "-n", namespace, "address", "add", f"{address}/24", "dev", "lossy")
        run("ip", "-n", namespace, "link", "set", "lossy", "mtu", "1400", "up")
        return made[0]

    def pump(self):
        bad, waiting, number = [False, False], [], 0
        while not self.is_over.is_set():
            now = time.monotonic()
            wait = min(0.05, max(0, waiting[0][0] - now)) if waiting else 0.05
            ready, _, _ = select.select(self.ends, [], [], wait)
            now = time.monotonic()
            for end in ready:
                side = self.ends.index(end)
                for _ in range(64):
                    try:
                        packet = os.read(end, 2048)
                    except BlockingIOError:
                        break
                    dice = self.random.random()
                    bad[side] = dice >= self.leave if bad[side] else dice < self.enter
                    if bad[side]:
                        self.lost += 1
                        continue
                    self.passed += 1
                    number += 1
                    heapq.heappush(waiting, (now + self.delay, number, 1 - side, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, side, packet = heapq.heappop(waiting)
                try:
                    os.write(self.ends[side], packet)
                except OSError:
                    # The queue of the interface is full: lost like on any network.
                    self.lost += 1

    def close(self):
        self.is_over.set()
        self.thread.join()
        for end in self.ends:
            os.close(end)


def setns(descriptor):
    """`setns` of the C library, where Python does not have it (before 3.12)."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(descriptor, 0x40000000):
        raise OSError(ctypes.get_errno(), "setns")


def free_port(kind=socket.SOCK_STREAM):
    """A port that nobody used a moment ago."""
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]
