import Glibc

// A program that another test starts holds every descriptor of this process for the moment between its birth and its own
// program. A pipe's other end is gone only when that moment is over, too.

/// Closes the only reader of a named pipe, and waits until nobody reads it any more. False when somebody still does after a minute.
public func closeReader(_ descriptor: Int32, of path: String) -> Bool {
  close(descriptor)
  for _ in 0..<60_000 {
    // Nobody can begin to write, without waiting, to a pipe that has no reader.
    let writer = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
    if writer < 0 { return errno == ENXIO }
    close(writer)
    usleep(1_000)
  }
  return false
}

/// Waits, a minute at most, until a pipe has no writer any more, and nothing left to read. False when that did not come.
public func isAtItsEnd(_ reader: Int32) -> Bool {
  var wanted = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
  for _ in 0..<600 where poll(&wanted, 1, 100) >= 0 {
    if wanted.revents & Int16(POLLIN) != 0 { return false }
    if wanted.revents & Int16(POLLHUP) != 0 { return true }
  }
  return false
}
