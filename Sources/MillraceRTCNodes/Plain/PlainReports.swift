internal import MillraceCore
internal import MillraceDialog
internal import MillraceRTC
internal import Synchronization

/// What a call over plain RTP reports about its network: `usage` and `netQuality`. On the thread of the call's loop.
struct PlainReports {
  private let context: CallContext
  private var quality = CallQuality()
  private var counts: RTCStatistics?
  private var last = CallUsage()
  private var lastAt: Nanoseconds?
  private var nextAt: Nanoseconds?
  /// Packets and pictures to send that went nowhere, since the call began.
  var unsent = 0

  init(_ context: CallContext) { self.context = context }

  /// Reports what is due. Returns when to be called again.
  mutating func run(_ session: PlainSession?, at now: Nanoseconds) -> Nanoseconds? {
    let interval = context.settings.stats
    guard let session, interval > 0 else { return nil }
    let due = nextAt ?? now + interval
    nextAt = due
    guard due <= now else { return due }
    report(session.statistics, at: now)
    let next = max(due + interval, now + interval / 2)
    nextAt = next
    return next
  }

  private mutating func report(_ statistics: RTCStatistics, at now: Nanoseconds) {
    let exchange = context.exchange
    let loss = max(statistics.sound.remoteLoss, statistics.video.remoteLoss)
    exchange.soundLoss.store(Int((loss * 1_000).rounded()), ordering: .relaxed)
    var usage = CallUsage()
    usage.add(statistics)
    usage.sessions = 1
    let dropped = exchange.lostDown.load(ordering: .relaxed)
    context.post(
      .usage(
        usage.json(
          since: last, in: lastAt.map { now - $0 }, dropped: dropped,
          unsent: CallUsage.Unsent(media: unsent))))
    (last, lastAt) = (usage, now)
    let measured = quality.note(statistics, since: counts, peer: nil, at: now)
    counts = statistics
    if let measured { context.post(.netQuality(measured.quality)) }
  }
}
