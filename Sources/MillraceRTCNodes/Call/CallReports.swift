internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceRTC
internal import MillraceRTCSignal
internal import Synchronization

/// What a call tells about itself while it runs: `usage`, `netQuality`, `level`, `speaking`, `targetBitrate`; and what the encoders learn
/// of the network. On the thread of the call's loop.
struct CallReports {
  /// Between two events `level` of a peer, and two looks at who speaks.
  private static let levelInterval: Nanoseconds = .milliseconds(200)
  /// Intervals after which somebody who is not heard any more does not speak.
  private static let hold = 3
  /// In dB below full scale, for peers whose packets do not say whether there is speech.
  private static let loudEnough: UInt8 = 45

  private let context: CallContext
  private var statsAt: Nanoseconds?
  private var levelsAt: Nanoseconds?
  private var counts: [SignalSessionID: RTCStatistics] = [:]
  private var quality: [SignalSessionID: CallQuality] = [:]
  /// Counts of sessions that have ended.
  private var ended = CallUsage()
  private var last = CallUsage()
  private var lastAt: Nanoseconds?
  /// Intervals for which a peer counts as one who speaks.
  private var holds: [String: Int] = [:]
  private var speakers: Set<String> = []
  private var levels: [String: UInt8] = [:]
  private var target = 0
  /// Limits that the node sets; nil: those of the sessions.
  var soundLimit: Int?
  var pictureLimit: Int?
  /// Since the call began.
  var unsent = CallUsage.Unsent()

  init(_ context: CallContext) { self.context = context }

  /// Reports what is due. Returns when to be called again.
  mutating func run(_ sessions: [CallSession], at now: Nanoseconds) -> Nanoseconds? {
    shareBitrates(sessions)
    guard !sessions.isEmpty else {
      (statsAt, levelsAt, lastAt) = (nil, nil, nil)
      if !speakers.isEmpty { tell([]) }
      return nil
    }
    let interval = context.settings.stats
    if interval > 0 {
      if let time = statsAt, time <= now {
        reportStatistics(sessions, at: now)
        statsAt = max(time + interval, now + interval / 2)
      }
      statsAt = statsAt ?? now + interval
    }
    if let time = levelsAt, time <= now {
      reportLevels(sessions)
      levelsAt = max(time + Self.levelInterval, now)
    }
    levelsAt = levelsAt ?? now + Self.levelInterval
    return [statsAt, levelsAt].compactMap { $0 }.min()
  }

  /// A session ends: its counts stay.
  mutating func note(end session: CallSession) {
    if let statistics = session.session?.statistics { ended.add(statistics) }
    (ended.roundTrip, ended.jitter, ended.estimate) = (nil, 0, 0)
    counts[session.id] = nil
    quality[session.id] = nil
    holds[session.peer] = nil
    levels[session.peer] = nil
  }

  // MARK: Bitrates

  /// What the encoders may send is what the slowest session carries.
  private mutating func shareBitrates(_ sessions: [CallSession]) {
    let exchange = context.exchange
    var sound: Int?
    var picture: Int?
    for session in sessions where session.isConnected {
      guard let allocation = session.allocation else { continue }
      // 0: none is sent now, or it pauses.
      if session.soundCodec != 0, allocation.sound > 0 { sound = min(sound ?? .max, allocation.sound) }
      if session.pictureCodec != nil, allocation.video > 0 {
        picture = min(picture ?? .max, allocation.video)
      }
    }
    exchange.soundBitrate.store(Self.least(sound, soundLimit), ordering: .relaxed)
    let bitrate = Self.least(picture, pictureLimit)
    exchange.pictureBitrate.store(bitrate, ordering: .relaxed)
    guard bitrate != target, bitrate > 0 else { return }
    target = bitrate
    context.post(.extra(name: "targetBitrate", payload: ["bps": .integer(bitrate)]))
  }

  private static func least(_ allocated: Int?, _ limit: Int?) -> Int {
    [allocated, limit].compactMap { $0 }.min() ?? 0
  }

  // MARK: Statistics

  private mutating func reportStatistics(_ sessions: [CallSession], at now: Nanoseconds) {
    guard sessions.contains(where: { $0.isConnected }) else { return }
    var usage = ended
    var worst: (quality: DialogNetQuality, thousandths: Int)?
    var loss = 0.0
    for session in sessions {
      guard let statistics = session.session?.statistics else { continue }
      usage.add(statistics)
      usage.sessions += 1
      if session.isConnected { loss = max(loss, statistics.sound.remoteLoss) }
      let key = session.id
      let peer = sessions.count > 1 || session.id.number != 0 ? session.peer : nil
      let measured = quality[key, default: CallQuality()].note(
        statistics, since: counts[key], peer: peer, at: now)
      counts[key] = statistics
      if session.isConnected, let measured, measured.thousandths >= worst?.thousandths ?? 0 {
        worst = measured
      }
    }
    context.exchange.soundLoss.store(Int((loss * 1_000).rounded()), ordering: .relaxed)
    let dropped = context.exchange.lostDown.load(ordering: .relaxed)
    let interval = lastAt.map { now - $0 }
    context.post(.usage(usage.json(since: last, in: interval, dropped: dropped, unsent: unsent)))
    last = usage
    lastAt = now
    if let worst { context.post(.netQuality(worst.quality)) }
  }

  // MARK: Levels

  private mutating func reportLevels(_ sessions: [CallSession]) {
    var speaking: [DialogLevel] = []
    for session in sessions {
      let heard = session.takeLevel()
      let peer = session.peer
      if let attenuation = heard.attenuation {
        if levels[peer] != attenuation {
          levels[peer] = attenuation
          context.post(.level(DialogLevel(peer: peer, decibels: -Double(attenuation))))
        }
        if heard.hasSpeech || attenuation <= Self.loudEnough { holds[peer] = Self.hold }
      }
      guard let left = holds[peer], left > 0 else { continue }
      holds[peer] = left - 1
      speaking.append(DialogLevel(peer: peer, decibels: levels[peer].map { -Double($0) }))
    }
    if Set(speaking.compactMap(\.peer)) != speakers { tell(speaking) }
  }

  private mutating func tell(_ speaking: [DialogLevel]) {
    speakers = Set(speaking.compactMap(\.peer))
    context.post(.speaking(speaking))
  }
}
