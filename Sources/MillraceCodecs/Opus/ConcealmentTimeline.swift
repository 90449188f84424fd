/// What a decoder does next: conceal, recover, be silent or decode, and for which positions.
///
/// A pure state machine over positions at the output's rate: it is told of every packet and answers steps. It
/// holds no bytes.
struct ConcealmentTimeline {
  /// One packet, placed.
  struct Arrival: Equatable {
    enum Kind: Equatable {
      /// Can be decoded; carries a copy of so many samples of what came before it.
      case sound(recoverable: Int)
      case lost
      case damaged
      /// Silence the encoder did not send.
      case unsent
    }
    var kind = Kind.lost
    /// Position of its first sample.
    var position: Int64
    /// Samples it stands for.
    var samples: Int
    /// The stretch that is not thrown away.
    var keptStart: Int64
    var keptEnd: Int64
    /// It had no duration: it follows what came before.
    var isUnplaced = false
    /// It begins before position 0, as only a stream's first packets do.
    var isPreSkip = false
    var isRestart = false
    var followsSilence = false

    /// Sets how many samples it really holds, where it did not say.
    mutating func setSamples(_ count: Int) {
      guard isUnplaced else { return }
      samples = count
      keptEnd = max(keptStart, keptEnd &+ Int64(count))
    }
  }

  /// What to do next. Positions are those of the first sample that results.
  enum Step: Equatable {
    /// Extrapolate; `mayFade` is false for unsent silence, which extrapolation turns into comfort noise.
    case conceal(position: Int64, count: Int, mayFade: Bool)
    case silence(position: Int64, count: Int)
    /// Decode the copy that the waiting packet carries.
    case recover(position: Int64, count: Int)
    /// The state is too old to go on from.
    case reset
    /// Decode the waiting packet and keep the samples `from..<to` of it.
    case decode(position: Int64, from: Int, to: Int)
  }

  /// Something that was missing, to be told.
  struct Loss: Equatable {
    var start: Int64
    var count: Int64
    /// Samples that a copy gives back.
    var recoverable: Int
    var isFilled: Bool
  }

  /// What an arrival means for the stream.
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

  /// Position of the next sample to come out; nil before the first packet.
  private var expected: Int64?
  /// Fill up to here before anything else.
  private var gapEnd = Int64.min
  /// Known to be missing up to here, though the next packet may still bring it.
  private var missingEnd = Int64.min
  private var gapIsUnsent = false
  /// Samples extrapolated since something was decoded.
  private var concealed = 0
  private var isStale = false
  private var lossStart: Int64?
  /// Samples of the gap's end that the waiting packet can give back.
  private var recoverable = 0
  private var waiting: Arrival?
  private var usualSamples: Int
  /// The stretch given to decode last, and what `concealed` was before it.
  private var decoding: (start: Int64, end: Int64, concealed: Int) = (0, 0, 0)

  init(linkRate: Int, rate: Int, concealLimit: Int, fillLimit: Int64, recovers: Bool) {
    self.linkRate = linkRate
    self.rate = rate
    self.concealLimit = concealLimit
    self.fillLimit = fillLimit
    self.recovers = recovers
    usualSamples = rate / 50
  }

  /// Places a packet by what it says of itself at the link's rate.
  func place(position: Int64, duration: Int, trimStart: Int, trimEnd: Int) -> Arrival {
    let length = Int64(max(0, duration))
    if length == 0 {
      let start = expected ?? 0
      return Arrival(position: start, samples: 0, keptStart: start, keptEnd: start, isUnplaced: true)
    }
    // Positions beyond any recording would overflow; they can only come from damage.
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

  /// Takes note of a packet. Only when `next` has nothing left to do.
  mutating func admit(_ arrival: Arrival) -> Verdict {
    var verdict = Verdict()
    var arrival = arrival
    if arrival.isUnplaced && arrival.samples == 0 {
      arrival.samples = usualSamples
      arrival.keptEnd = arrival.keptStart &+ Int64(usualSamples)
    }
    arrive(at: arrival, &verdict)
    let start = expected ?? arrival.keptStart
    var isSound = false
    if case .sound = arrival.kind { isSound = true }
    let reach = isSound ? arrival.keptStart : arrival.keptEnd
    if reach &- max(start, missingEnd) > fillLimit {
      leap(to: reach, &verdict)
      if !isSound { return verdict }
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

  /// Decides whether a packet goes on with the stream or begins one.
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
    if goesBack { startAnew(at: arrival.isPreSkip ? 0 : arrival.keptStart) }
  }

  private mutating func startAnew(at position: Int64) {
    expected = position
    gapEnd = position
    missingEnd = position
    concealed = 0
    isStale = false
    lossStart = nil
  }

  /// Gives up filling: the output jumps.
  private mutating func leap(to position: Int64, _ verdict: inout Verdict) {
    let from = lossStart ?? expected ?? position
    verdict.resets = true
    verdict.jumps = true
    verdict.loss = Loss(start: from, count: position &- from, recoverable: 0, isFilled: false)
    startAnew(at: position)
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

  /// Says that the input is over: what was held back for a copy is to be concealed. nil when nothing is open.
  mutating func close() -> Loss? {
    guard let loss = takeLoss(upTo: missingEnd) else { return nil }
    gapEnd = missingEnd
    return loss
  }

  /// The stream so far counts no more; the next packet starts anew.
  mutating func forget() {
    startAnew(at: 0)
    expected = nil
    gapEnd = Int64.min
    missingEnd = Int64.min
    waiting = nil
    recoverable = 0
  }

  // MARK: Steps

  /// True when `next` has a step.
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
    // A packet that is thrown away whole must still be decoded, for what it leaves in the decoder.
    let to = min(Int(arrival.keptEnd &- arrival.position), arrival.samples)
    let from = min(Int(arrival.keptStart &- arrival.position), to)
    return .decode(position: arrival.keptStart, from: from, to: to)
  }

  /// What `next` gave to decode could not be decoded after all: its place is to be filled.
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
