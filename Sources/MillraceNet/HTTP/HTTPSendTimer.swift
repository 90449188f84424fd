internal import NIOCore

/// Notices a client that does not take what it is sent: its system acknowledges nothing for a while. On the event loop.
///
/// What this system takes is not enough to judge by: it takes more only when about a third of its buffer is free, a buffer of up to
/// 4 MB (net.ipv4.tcp_wmem), and a client that plays a recording while it comes needs minutes for as much. What was acknowledged is
/// looked up only while something waits: most responses are taken at once.
final class HTTPSendTimer {
  /// Looks within the time that a client may stand still; it is noticed at most one interval late.
  private static let checks = 4

  private let channel: any Channel
  private let interval: TimeAmount
  private let stalled: () -> Void
  /// Writes that this system has not taken.
  private var unsent = 0
  private var acknowledged: UInt64?
  /// Looks in a row that found nothing new.
  private var unchanged = 0
  private var timer: LoopTimer?
  private var isOver = false

  /// - Parameters:
  ///   - patience: the time that the client may stand still.
  ///   - stalled: called when it has.
  init(_ channel: any Channel, _ patience: TimeAmount, _ stalled: @escaping () -> Void) {
    self.channel = channel
    interval = .nanoseconds(patience.nanoseconds / Int64(Self.checks))
    self.stalled = stalled
  }

  /// Something was written.
  func wrote() {
    unsent += 1
    // One more write is no progress.
    if unsent == 1 { start() }
  }

  /// This system has taken the oldest of what was written.
  func taken() {
    unsent -= 1
    if unsent > 0 { start() } else { timer?.cancel() }
  }

  /// Nothing more is written.
  func end() {
    isOver = true
    timer?.cancel()
  }

  private func start() {
    unchanged = 0
    checkLater()
  }

  private func checkLater() {
    timer?.cancel()
    guard !isOver else { return }
    let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
    timer = LoopTimer(on: channel.eventLoop, in: interval) { bound.value.check() }
  }

  private func check() {
    guard !isOver else { return }
    let now = PeerProgress.acknowledged(on: channel)
    unchanged = now == acknowledged ? unchanged + 1 : 0
    acknowledged = now
    if unchanged < Self.checks { checkLater() } else { stalled() }
  }
}
