internal import MillraceCore
internal import MillraceDSP

/// Decides when audio is written to a device that has its own clock, how old it is then, and how fast it is resampled.
///
/// The device's clock says which frame it takes when. Audio is written `lead` frames ahead of that, one period at a time. Silence is not
/// scheduled ahead: when audio arrives, it starts `margin` after its arrival, regardless of period boundaries.
///
/// Live audio (a microphone, the far end) is written at a constant age: its worst arrival delay plus `margin`. The age is the difference
/// between the device's clock and the timestamps on the packets; the drift controller keeps it constant.
///
/// Pure: times are nanoseconds on the graph's clock.
struct PlayoutSchedule {
  /// The next action.
  enum Step: Equatable {
    /// Wait until this time; nil: until something arrives.
    case wait(Nanoseconds?)
    /// Write this many frames of silence.
    case silence(Int)
    /// Audio may start: write its first period.
    case begin
    /// Write a period of audio.
    case sound
    /// The device has passed this many frames; they can no longer be written.
    case late(Int)
  }

  /// A single late arrival raises the known delay by at most this much, since it may be an outlier. Nanoseconds.
  static let mostRise = 2_000_000.0
  /// How fast the known arrival delay decays, in nanoseconds per second. A server's fragments beat against the packets cut from them: arrivals
  /// get earlier for ten seconds, then jump later by a fragment. The decay over that time has to stay below the margin, or every beat would
  /// cause an underrun.
  static let forgetting = 100_000.0
  /// After this many consecutive packets that were later than known, their delay is accepted as the new normal.
  static let rule = 8
  /// Audio that starts no more than this much older than its target age is not cut; the drift controller corrects it. Nanoseconds.
  static let tolerance = 2_000_000.0
  /// A position counts as reached within half a frame, because times are whole nanoseconds.
  static let grain = 0.5
  /// Silence that is behind by more than this many seconds is skipped instead of written.
  static let longestSilence = 0.5

  let rate: Int
  let period: Int
  let lead: Double
  let margin: Nanoseconds
  /// Delay that the resampler's lead-in adds when audio starts, in nanoseconds.
  let leadIn: Double
  private(set) var clock: DeviceClock?
  /// The next frame of the device to be decided.
  private(set) var position: Int64 = 0
  private(set) var isAnchored = false
  private var beginsAt: Int64?
  /// Worst delay between a packet's timestamp and its arrival; nil before any was measured.
  private(set) var delay: Double?
  private var delaySeen: Nanoseconds = 0
  /// The smallest of the most recent delays, and how many those are.
  private var least = Double.infinity
  private var arrivals = 0
  /// The target age of audio when it is written.
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

  /// Updates the clock; `offset` is the device's clock minus the graph's. False while the device is not running.
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

  /// When a device position is heard.
  func heard(_ position: Int64) -> Nanoseconds {
    guard let clock else { return 0 }
    return clock.time(of: Double(position)) &+ clock.delay
  }

  /// The latest time at which the frame at `position` may be written.
  private func due(_ position: Int64) -> Nanoseconds {
    clock?.time(of: Double(position) - lead) ?? 0
  }

  // MARK: Steps

  /// The next action. `ready`: when the waiting audio may start; nil if none is waiting.
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
      // Audio is already queued beyond now; until it is due, more may arrive.
      guard behind >= -Self.grain else { return .wait(due(position)) }
      beginsAt = nil
      return .begin
    }
    if behind >= Double(period) - Self.grain { return .silence(period) }
    return .wait(min(due(position + Int64(period)), ready ?? .max))
  }

  /// Advances past frames that were written or skipped.
  mutating func advance(_ frames: Int) { position += Int64(frames) }

  // MARK: Age

  /// Records the arrival of a packet.
  mutating func noteArrival(_ timestamp: Nanoseconds, at now: Nanoseconds) {
    let late = Double(now &- timestamp)
    guard late >= 0 else {
      // It arrives ahead of its time: its source can wait, so nothing is late.
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

  /// The age, in nanoseconds, of a frame with this timestamp if it is written next.
  func age(of time: Nanoseconds) -> Double { Double(due(position) &- time) }

  /// The target age of live audio: its arrival delay, the margin and the lead-in.
  private func targetAge(_ delay: Double) -> Double {
    delay + Double(margin) + leadIn
  }

  /// Starts audio whose first frame has this timestamp. Returns how many frames to skip to reach the target age; 0 for audio that must be
  /// complete.
  mutating func begin(_ time: Nanoseconds, mustBeComplete: Bool) -> Int {
    control.settle()
    let age = age(of: time)
    guard !mustBeComplete, let delay else {
      target = age
      return 0
    }
    let wanted = targetAge(delay)
    target = wanted
    return age > wanted + Self.tolerance ? Int((age - wanted) * Double(rate) / 1e9) : 0
  }

  /// Relative resampling speed for a period whose first frame has this timestamp; nil if the audio has to jump.
  mutating func correction(_ time: Nanoseconds, mustBeComplete: Bool) -> Double? {
    if !mustBeComplete, let delay { target = targetAge(delay) }
    let age = age(of: time)
    let error = (age - (target ?? age)) * Double(rate) / 1e9
    guard control.mustJump(error) else { return control.update(error: error, frames: period) }
    control.settle()
    guard mustBeComplete || delay == nil else { return nil }
    // It was held, or its source stalled: this is its age from now on.
    target = age
    return control.correction
  }
}
