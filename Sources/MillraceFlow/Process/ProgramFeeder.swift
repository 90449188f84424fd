internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import Synchronization

/// The thread that writes a program's standard input.
///
/// Sleeps while there is nothing to write; waits for the program, but never longer than `patience` without a look at whether it
/// should end.
struct ProgramFeeder: Sendable {
  /// Milliseconds between two looks while the program does not read.
  private static let patience: Int32 = 100

  let exchange: ProcessExchange
  let descriptor: Int32

  func run() {
    PipeSignal.block()
    var number = 0
    while !exchange.isStopping.load(ordering: .acquiring) {
      guard let count = exchange.input.count else {
        // The end is said after the last chunk: look at it first, at the queue second.
        let isOver = exchange.isInputOver.load(ordering: .acquiring)
        if isOver && exchange.input.count == nil { break }
        if !isOver { exchange.feederBell.wait() }
        continue
      }
      if !exchange.isVoid(chunk: number) {
        guard write(count) else { break }
      }
      number &+= 1
      exchange.input.drop()
      exchange.noteInputTaken()
    }
    close(descriptor)
    exchange.isInputRefused.store(true, ordering: .releasing)
    exchange.waker.wake()
  }

  /// Writes the oldest chunk. False when nobody reads any more.
  private func write(_ count: Int) -> Bool {
    var done = 0
    while done < count {
      let written = unsafe Glibc.write(descriptor, exchange.input.bytes + done, count - done)
      if written >= 0 {
        done += written
        exchange.signs.add(1, ordering: .relaxed)
      } else if errno == EAGAIN {
        var wish = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        unsafe poll(&wish, 1, Self.patience)
        if exchange.isStopping.load(ordering: .acquiring) { return false }
      } else if errno != EINTR {
        return false
      }
    }
    return true
  }
}
