import Glibc

// A child process that another test starts holds every descriptor of this process between fork and exec. A pipe's other end is closed
// only when that is over, too.

/// Closes the only reader of a named pipe, and waits until it has no reader. False when it still has one after a minute.
public func closeReader(_ descriptor: Int32, of path: String) -> Bool {
  close(descriptor)
  for _ in 0..<60_000 {
    // A pipe without a reader cannot be opened for writing without waiting.
    let writer = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
    if writer < 0 { return errno == ENXIO }
    close(writer)
    usleep(1_000)
  }
  return false
}

/// Waits, a minute at most, until a pipe has no writer any more, and nothing left to read. False when a minute was not enough.
public func isAtItsEnd(_ reader: Int32) -> Bool {
  var wanted = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
  for _ in 0..<600 where poll(&wanted, 1, 100) >= 0 {
    if wanted.revents & Int16(POLLIN) != 0 { return false }
    if wanted.revents & Int16(POLLHUP) != 0 { return true }
  }
  return false
}
