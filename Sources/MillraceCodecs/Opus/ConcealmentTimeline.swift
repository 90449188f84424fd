/// Decides what a decoder does next: conceal, recover, emit silence or decode, and for which positions.
///
/// A pure state machine over positions at the output's rate: it takes packets and returns steps. It holds no bytes.
struct ConcealmentTimeline {
  /// A packet with its position.
  struct Arrival: Equatable {
    enum Kind: Equatable {
      /// Decodable; carries a copy of this many samples before it.
      case sound(recoverable: Int)
      case lost
      case damaged
      /// Silence the encoder did not transmit.
      case unsent
    }
    var kind = Kind.lost
    /// Position of its first sample.
    var position: Int64
    /// Number of samples it represents.
    var samples: Int
    /// The range of positions that is kept.
    var keptStart: Int64
    var keptEnd: Int64
    /// It has no duration and follows the previous packet.
    var isUnplaced = false
    /// It starts before position 0, as only the first packets of a stream do.
    var isPreSkip = false
    var isRestart = false
    var followsSilence = false

    /// Sets the actual number of samples, if the packet did not declare it.
    mutating func setSamples(_ count: Int) {
      guard isUnplaced else { return }
      samples = count
      keptEnd = max(keptStart, keptEnd &+ Int64(count))
    }
  }

  /// The next action. Positions are those of the first resulting sample.
  enum Step: Equatable {
    /// Extrapolate; `mayFade` is false for untransmitted silence, which extrapolation turns into comfort noise.
    case conceal(position: Int64, count: Int, mayFade: Bool)
    case silence(position: Int64, count: Int)
    /// Decode the copy in the waiting packet.
    case recover(position: Int64, count: Int)
    /// Reset the decoder: its state is too old to continue from.
    case reset
    /// Decode the waiting packet and keep samples `from..<to` of it.
    case decode(position: Int64, from: Int, to: Int)
  }

  /// A loss to report.
  struct Loss: Equatable {
    var start: Int64
    var count: Int64
    /// Samples recovered from a copy.
    var recoverable: Int
    var isFilled: Bool
  }

  /// The effect of a packet on the stream.
  struct Verdict: Equatable {
    var resets = false
    var jumps = false
    var loss: Loss?
  }

  private let linkRate: Int
  private let rate: Int
  private let concealLimit: Int
  private let fillLimit: Int64
  private let recovers: Bool

  /// Position of the next output sample; nil before the first packet.
  private var expected: Int64?
  /// Fill up to this position before anything else.
  private var gapEnd = Int64.min
  /// Missing up to this position, although the next packet may still recover it.
  private var missingEnd = Int64.min
  private var gapIsUnsent = false
  /// Samples extrapolated since the last decoded packet.
  private var concealed = 0
  private var isStale = false
  private var lossStart: Int64?
  /// Samples at the end of the gap that the waiting packet can recover.
  private var recoverable = 0
  private var waiting: Arrival?
  private var usualSamples: Int
  /// The range decoded last, and the value of `concealed` before it.
  private var decoding: (start: Int64, end: Int64, concealed: Int) = (0, 0, 0)

  init(linkRate: Int, rate: Int, concealLimit: Int, fillLimit: Int64, recovers: Bool) {
    self.linkRate = linkRate
    self.rate = rate
    self.concealLimit = concealLimit
    self.fillLimit = fillLimit
    self.recovers = recovers
    usualSamples = rate / 50
  }

  /// Places a packet by its own position and duration at the link's rate.
  func place(position: Int64, duration: Int, trimStart: Int, trimEnd: Int) -> Arrival {
    let length = Int64(max(0, duration))
    if length == 0 {
      let start = expected ?? 0
      return Arrival(position: start, samples: 0, keptStart: start, keptEnd: start, isUnplaced: true)
    }
    // Larger positions would overflow; they can only come from corrupt data.
    let position = min(max(position, -(1 << 48)), 1 << 48)
    let end = position &+ length
    let keptStart = min(max(position &+ Int64(max(0, trimStart)), 0), max(end, 0))
    let keptEnd = max(keptStart, end &- Int64(max(0, trimEnd)))
    let first = rescale(position, from: linkRate, to: rate)
    return Arrival(
      position: first, samples: Int(rescale(end, from: linkRate, to: rate) &- first),
      keptStart: rescale(keptStart, from: linkRate, to: rate),
      keptEnd: rescale(keptEnd, from: linkRate, to: rate),
      isPreSkip: position < 0)
  }

  // MARK: Arrivals

  /// Takes a packet. Call it only when `next` has returned nil.
  mutating func admit(_ arrival: Arrival) -> Verdict {
    var verdict = Verdict()
    var arrival = arrival
    if arrival.isUnplaced && arrival.samples == 0 {
      arrival.samples = usualSamples
      arrival.keptEnd = arrival.keptStart &+ Int64(usualSamples)
    }
    arrive(at: arrival, &verdict)
    let start = expected ?? arrival.keptStart
    var isAudio = false
    if case .sound = arrival.kind { isAudio = true }
    let reach = isAudio ? arrival.keptStart : arrival.keptEnd
    if reach &- max(start, missingEnd) > fillLimit {
      jump(to: reach, &verdict)
      if !isAudio { return verdict }
    }
    switch arrival.kind {
    case .sound(let copy):
      gapEnd = arrival.keptStart
      gapIsUnsent = arrival.followsSilence && lossStart == nil
      noteLoss(upTo: arrival.keptStart, unless: gapIsUnsent)
      recoverable = recovers && !gapIsUnsent && copy > 0 && gapSize >= copy ? copy : 0
      if verdict.loss == nil { verdict.loss = takeLoss(upTo: arrival.keptStart) }
      usualSamples = arrival.samples
      waiting = arrival
    case .lost, .damaged:
      gapIsUnsent = false
      missingEnd = arrival.keptEnd
      gapEnd = recovers ? arrival.keptStart : arrival.keptEnd
      noteLoss(upTo: arrival.keptEnd, unless: false)
    case .unsent:
      gapIsUnsent = true
      missingEnd = arrival.keptEnd
      gapEnd = arrival.keptEnd
    }
    return verdict
  }

  /// Decides whether a packet continues the stream or starts a new one.
  private mutating func arrive(at arrival: Arrival, _ verdict: inout Verdict) {
    guard let known = expected else {
      expected = arrival.isPreSkip ? 0 : arrival.keptStart
      return
    }
    if arrival.isUnplaced { return }
    let goesBack = arrival.keptStart < known || (arrival.isPreSkip && known > 0)
    let restarts = arrival.isRestart && arrival.keptStart == known && missingEnd <= known
    guard goesBack || restarts else { return }
    verdict.resets = true
    verdict.jumps = goesBack
    verdict.loss = goesBack ? takeLoss(upTo: max(known, missingEnd)) : nil
    if goesBack { restart(at: arrival.isPreSkip ? 0 : arrival.keptStart) }
  }

  private mutating func restart(at position: Int64) {
    expected = position
    gapEnd = position
    missingEnd = position
    concealed = 0
    isStale = false
    lossStart = nil
  }

  /// Gives up filling: the output jumps.
  private mutating func jump(to position: Int64, _ verdict: inout Verdict) {
    let from = lossStart ?? expected ?? position
    verdict.resets = true
    verdict.jumps = true
    verdict.loss = Loss(start: from, count: position &- from, recoverable: 0, isFilled: false)
    restart(at: position)
  }

  private var gapSize: Int64 {
    guard let expected, gapEnd > expected else { return 0 }
    return gapEnd &- expected
  }

  private mutating func noteLoss(upTo end: Int64, unless isKnown: Bool) {
    guard !isKnown, lossStart == nil, let expected, end > expected else { return }
    lossStart = expected
  }

  private mutating func takeLoss(upTo end: Int64) -> Loss? {
    guard let start = lossStart, end > start else { return nil }
    lossStart = nil
    return Loss(start: start, count: end &- start, recoverable: recoverable, isFilled: true)
  }

  /// Ends the input: a loss held back for a copy is concealed now. nil if there is none.
  mutating func close() -> Loss? {
    guard let loss = takeLoss(upTo: missingEnd) else { return nil }
    gapEnd = missingEnd
    return loss
  }

  /// Forgets the stream so far; the next packet starts a new one.
  mutating func reset() {
    restart(at: 0)
    expected = nil
    gapEnd = Int64.min
    missingEnd = Int64.min
    waiting = nil
    recoverable = 0
  }

  // MARK: Steps

  /// True if `next` has a step.
  var hasWork: Bool { gapSize > 0 || waiting != nil }

  /// The next step; nil when another packet is needed.
  mutating func next() -> Step? {
    if let expected, gapSize > 0 { return fill(from: expected) }
    guard let arrival = waiting else { return nil }
    if isStale {
      isStale = false
      return .reset
    }
    waiting = nil
    decoding = (arrival.keptStart, arrival.keptEnd, concealed)
    concealed = 0
    expected = arrival.keptEnd
    missingEnd = arrival.keptEnd
    // Decode even a packet that is discarded completely, for its effect on the decoder's state.
    let to = min(Int(arrival.keptEnd &- arrival.position), arrival.samples)
    let from = min(Int(arrival.keptStart &- arrival.position), to)
    return .decode(position: arrival.keptStart, from: from, to: to)
  }

  /// Reports that the packet from `next` could not be decoded: its range is concealed.
  mutating func failedToDecode() {
    guard decoding.end > decoding.start else { return }
    expected = decoding.start
    gapEnd = decoding.end
    gapIsUnsent = false
    concealed = decoding.concealed
    noteLoss(upTo: decoding.end, unless: false)
  }

  private mutating func fill(from start: Int64) -> Step {
    let rest = gapEnd &- start
    let step = Int64(rate / 50)
    if gapIsUnsent {
      let count = Int(min(rest, step))
      expected = start &+ Int64(count)
      return .conceal(position: start, count: count, mayFade: false)
    }
    if recoverable > 0 && rest <= Int64(recoverable) {
      if isStale {
        isStale = false
        return .reset
      }
      expected = gapEnd
      let count = Int(rest)
      recoverable = 0
      return .recover(position: start, count: count)
    }
    let count = Int(min(rest &- Int64(recoverable), step))
    expected = start &+ Int64(count)
    if concealed < concealLimit {
      let extrapolated = min(count, concealLimit - concealed)
      expected = start &+ Int64(extrapolated)
      concealed += extrapolated
      return .conceal(position: start, count: extrapolated, mayFade: true)
    }
    isStale = true
    return .silence(position: start, count: count)
  }
}
