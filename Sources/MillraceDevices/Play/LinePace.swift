internal import MillraceCore
internal import MillraceDSP

/// When sound is given to a device with a clock of its own, how old it is to be then, and how fast it is read.
///
/// The device's line says which frame it takes when. Sound is given `lead` frames ahead of that, one period at a time. In silence
/// nothing is decided ahead: when sound comes, it begins `margin` after its arrival, wherever the periods are.
///
/// Sound that comes as the world goes (a microphone, the far end) is to be given at one age: as late as it arrives at worst,
/// and `margin`. The age, reckoned between the line of the device and the times on the packets, is what the drift controller holds.
///
/// Pure: times are nanoseconds on the graph's clock.
struct LinePace {
  /// What to do now.
  enum Step: Equatable {
    /// Nothing, until a time; nil: until something comes.
    case wait(Nanoseconds?)
    /// Give so many frames of silence.
    case silence(Int)
    /// Sound may begin: give a period of it.
    case begin
    /// Give a period of sound.
    case sound
    /// The device went past: so many frames can no longer be given.
    case late(Int)
  }

  /// An arrival that is later than known moves what is known by no more than this: one late packet is no rule. Nanoseconds.
  static let mostRise = 2_000_000.0
  /// How fast what is known of late arrivals is forgotten, nanoseconds a second. A server's fragments and the packets cut from them
  /// beat: arrivals come ever sooner for ten seconds, then a fragment later at once. What is forgotten meanwhile has to be less
  /// than the margin, or each such turn is an underrun.
  static let forgetting = 100_000.0
  /// When so many packets in a row arrived later than is known, that is the rule.
  static let rule = 8
  /// Sound that is older than wanted by no more than this, when it begins, is left whole: the drift controller takes care of it.
  static let tolerance = 2_000_000.0
  /// A position that is reached within half a frame is reached: times are whole nanoseconds.
  static let grain = 0.5
  /// Silence that is behind by more than this many seconds is skipped, not made up for.
  static let longestSilence = 0.5

  let rate: Int
  let period: Int
  let lead: Double
  let margin: Nanoseconds
  /// What lies between a packet's first frame and the frame given first when sound begins, nanoseconds.
  let leadIn: Double
  private(set) var clock: DeviceClock?
  /// The device's frame that is decided next.
  private(set) var position: Int64 = 0
  private(set) var isAnchored = false
  private var beginsAt: Int64?
  /// How long after its time a packet arrives, at worst; nil: not seen yet.
  private(set) var delay: Double?
  private var delaySeen: Nanoseconds = 0
  /// The least of the latest arrivals, and how many those are.
  private var least = Double.infinity
  private var arrivals = 0
  /// The age of sound when it is given, as wanted.
  private(set) var target: Double?
  var control: DriftController

  init(rate: Int, period: Int, lead: Int, margin: Nanoseconds, leadIn: Int) {
    self.rate = rate
    self.period = period
    self.lead = Double(lead)
    self.margin = margin
    self.leadIn = Double(leadIn) * 1e9 / Double(rate)
    control = DriftController(rate: rate)
  }

  // MARK: The device's clock

  /// Takes a reading; `offset` is the device's clock less the graph's. False while the device does not run.
  mutating func follow(_ reading: SharedClock.Reading, offset: Nanoseconds) -> Bool {
    switch reading {
    case .busy: break
    case .none:
      clock = nil
      isAnchored = false
    case .line(var line):
      line.time &-= offset
      if clock?.epoch != line.epoch { isAnchored = false }
      clock = line
    }
    return clock != nil
  }

  /// When a position of the device is heard.
  func heard(_ position: Int64) -> Nanoseconds {
    guard let clock else { return 0 }
    return clock.time(of: Double(position)) &+ clock.delay
  }

  /// When the frame at `position` is given at the latest.
  private func due(_ position: Int64) -> Nanoseconds {
    clock?.time(of: Double(position) - lead) ?? 0
  }

  // MARK: Steps

  /// What to do now. `ready`: when the sound that waits may begin; nil: none waits.
  mutating func step(now: Nanoseconds, isSilent: Bool, ready: Nanoseconds?) -> Step {
    guard let clock else { return .wait(nil) }
    let reach = clock.position(at: now) + lead
    if !isAnchored {
      position = Int64(reach.rounded(.up))
      isAnchored = true
      beginsAt = nil
    }
    let behind = reach - Double(position)
    let allowed = isSilent ? Self.longestSilence * Double(rate) : lead
    if behind > allowed { return .late(Int(behind.rounded(.up))) }
    guard isSilent else {
      beginsAt = nil
      return behind >= -Self.grain ? .sound : .wait(due(position))
    }
    if beginsAt == nil, let ready, ready <= now {
      beginsAt = max(position, Int64((reach - Self.grain).rounded(.up)))
    }
    if let begin = beginsAt {
      guard begin <= position else { return .silence(min(period, Int(begin - position))) }
      // What was given ahead reaches beyond now: until then more may come.
      guard behind >= -Self.grain else { return .wait(due(position)) }
      beginsAt = nil
      return .begin
    }
    if behind >= Double(period) - Self.grain { return .silence(period) }
    return .wait(min(due(position + Int64(period)), ready ?? .max))
  }

  /// So many frames were given or left out.
  mutating func advance(_ frames: Int) { position += Int64(frames) }

  // MARK: Age

  /// Notes that a packet arrived.
  mutating func noteArrival(_ timestamp: Nanoseconds, at now: Nanoseconds) {
    let late = Double(now &- timestamp)
    guard late >= 0 else {
      // It comes before its time: whoever sends it can wait, and nothing is late.
      delay = nil
      return
    }
    if let known = delay {
      let faded = known - Self.forgetting * Double(now &- delaySeen) / 1e9
      delay = late > faded ? min(late, max(faded, known) + Self.mostRise) : faded
    } else {
      delay = late
    }
    delaySeen = now
    least = min(least, late)
    arrivals += 1
    guard arrivals >= Self.rule else { return }
    delay = delay.map { max($0, least) }
    least = .infinity
    arrivals = 0
  }

  /// The age, in nanoseconds, that a frame of a time has when it is given next.
  func age(of time: Nanoseconds) -> Double { Double(due(position) &- time) }

  /// The age of live sound: it waits for the margin, and is given `lead` ahead.
  private func wanted(_ delay: Double) -> Double {
    delay + Double(margin) + leadIn
  }

  /// Sound begins whose first frame has a time. Answers how many frames to leave out, so that it is as old as wanted; none of
  /// sound that must be whole.
  mutating func begin(_ time: Nanoseconds, isWhole: Bool) -> Int {
    control.settle()
    let age = age(of: time)
    guard !isWhole, let delay else {
      target = age
      return 0
    }
    let wanted = wanted(delay)
    target = wanted
    return age > wanted + Self.tolerance ? Int((age - wanted) * Double(rate) / 1e9) : 0
  }

  /// How much faster to read a period whose first frame has a time, as a share; nil: the sound has to jump.
  mutating func correction(_ time: Nanoseconds, isWhole: Bool) -> Double? {
    if !isWhole, let delay { target = wanted(delay) }
    let age = age(of: time)
    let error = (age - (target ?? age)) * Double(rate) / 1e9
    guard control.mustJump(error) else { return control.update(error: error, frames: period) }
    control.settle()
    guard isWhole || delay == nil else { return nil }
    // It was held, or its source stood still: from here on it is that old.
    target = age
    return control.correction
  }
}
