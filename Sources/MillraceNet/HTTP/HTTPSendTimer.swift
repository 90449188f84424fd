internal import NIOCore

/// Notices a client that does not take what it is sent: its system acknowledges nothing for a while. On the event loop.
///
/// What this system takes is not enough to judge by: it takes more only when about a third of its buffer is free, a buffer of up to
/// 4 MB (net.ipv4.tcp_wmem), and a client that plays a recording while it comes needs minutes for as much.
final class HTTPSendTimer {
  private let channel: any Channel
  private let patience: TimeAmount
  private let stalled: () -> Void
  /// Writes that this system has not taken.
  private var unsent = 0
  private var acknowledged: UInt64?
  private var timer: Scheduled<Void>?
  private var isOver = false

  /// - Parameters:
  ///   - patience: the time after which it looks whether the client has taken anything.
  ///   - stalled: called when it has not.
  init(_ channel: any Channel, _ patience: TimeAmount, _ stalled: @escaping () -> Void) {
    self.channel = channel
    self.patience = patience
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
    timer?.cancel()
    guard !isOver else { return }
    acknowledged = PeerProgress.acknowledged(on: channel)
    let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
    timer = channel.eventLoop.scheduleTask(in: patience) { bound.value.check() }
  }

  private func check() {
    guard !isOver else { return }
    if PeerProgress.acknowledged(on: channel) == acknowledged { stalled() } else { start() }
  }
}
