internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import Synchronization

/// The thread that writes to a program's standard input.
///
/// Sleeps while there is nothing to write. While the program does not read, it checks every `pollInterval` whether to stop.
struct ProcessWriter: Sendable {
  /// Milliseconds between two checks while the program does not read.
  private static let pollInterval: Int32 = 100

  let exchange: ProcessExchange
  let descriptor: Int32

  func run() {
    PipeSignal.block()
    var number = 0
    while !exchange.isStopping.load(ordering: .acquiring) {
      guard let count = exchange.input.count else {
        // The end is set after the last chunk: read it first, then check the queue again.
        let isOver = exchange.isInputOver.load(ordering: .acquiring)
        if isOver && exchange.input.count == nil { break }
        if !isOver { exchange.writerWake.wait() }
        continue
      }
      if !exchange.isCancelled(chunk: number) {
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

  /// Writes the oldest chunk. False when the program has closed its input.
  private func write(_ count: Int) -> Bool {
    var done = 0
    while done < count {
      let written = unsafe Glibc.write(descriptor, exchange.input.bytes + done, count - done)
      if written >= 0 {
        done += written
        exchange.activity.add(1, ordering: .relaxed)
      } else if errno == EAGAIN {
        var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        unsafe poll(&request, 1, Self.pollInterval)
        if exchange.isStopping.load(ordering: .acquiring) { return false }
      } else if errno != EINTR {
        return false
      }
    }
    return true
  }
}
