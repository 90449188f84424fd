internal import MillraceCore
internal import MillraceDSP

/// Renders what a loudspeaker plays, frame by frame, and counts exactly how much of each reply that was.
///
/// Audio enters as packets (`accept`) and leaves in runs of any length (`render`), which request the next packet as they need it. Every
/// transition to silence and back is a linear ramp of at most `fadeFrames` frames, never a step: when a reply is cut, when it is held or
/// lowered, and when no packet is there in time. Ramps run over the audio at hand; where it ends early, they hold the last frame. A frame
/// counts as heard if it was written at any level above zero; each is written once.
///
/// Pure: no clock, no ports, no allocation after `init`. Not thread-safe.
@safe
struct Playout: ~Copyable {
  /// What ducking does to a reply.
  enum Ducking {
    /// It pauses, and continues with the frame after the last one heard.
    case hold
    /// It continues with this gain.
    case lower(Double)
  }

  /// How much of a reply was heard.
  struct Account: Equatable {
    /// The reply's generation; 0: not part of a reply.
    var reply: UInt32 = 0
    /// Frames heard.
    var frames: Int64 = 0
    /// Position of the next frame.
    var position: Int64 = 0
  }

  /// The effect of accepting a packet.
  struct Arrival {
    /// The previous reply, if this packet ended it.
    var ended: Account?
    /// True if the packet starts a reply, or audio that is not part of one.
    var isFirst = false
    /// True if it continues the audio after an underrun.
    var endsUnderrun = false
  }

  private let fadeFrames: Int
  private let channels: Int
  private let frameBytes: Int
  private let ducking: Ducking
  /// The packet being played, and how many of its frames have been.
  private var packet: Packet?
  private var done = 0
  private var frames = 0
  /// The last frame rendered at full level, as float; a ramp holds it when the audio ends.
  private let lastFrame: UnsafeMutableBufferPointer<Float>
  /// The current level in ramp steps: 0 is silence, `full` is unity gain.
  private var level = 0
  private var isDucked = false
  /// The reply is cancelled: the rest of its packet only serves the ramp.
  private var isCut = false
  /// No packet was there when one was needed.
  private var isStarved = true
  /// The packet is dropped once it has faded out.
  private var isDropping = false
  /// Timestamp of the last packet accepted.
  private var packetTime: Nanoseconds = 0
  /// The packet is the last of its utterance.
  private var endsUtterance = false
  /// The last utterance rendered to its end, until `takeFinished` collects it.
  private var finished: Account?
  private(set) var account = Account()
  private var holder = HeldReply()
  /// For each of the latest frames, whether it counted as heard; how many were rendered in all, and how many before the account began.
  private let ledger: UnsafeMutablePointer<Bool>
  private let ledgerMask: Int
  private var rendered = 0
  private var accountBegin = 0

  /// Makes a silent playout for this sample type, which can rewind up to `remembered` frames.
  init(channels: Int, sample: SampleType, fadeFrames: Int, ducking: Ducking, remembered: Int) {
    precondition(channels > 0 && fadeFrames > 0, "at least one channel and one frame of fade")
    var capacity = 1
    while capacity < remembered { capacity *= 2 }
    ledgerMask = capacity - 1
    unsafe ledger = .allocate(capacity: capacity)
    unsafe ledger.initialize(repeating: false, count: capacity)
    self.channels = channels
    frameBytes = channels * sample.byteCount
    self.fadeFrames = fadeFrames
    self.ducking = ducking
    packet = nil
    unsafe lastFrame = .allocate(capacity: channels)
    unsafe lastFrame.initialize(repeating: 0)
  }

  deinit {
    unsafe lastFrame.deallocate()
    unsafe ledger.deallocate()
  }

  // MARK: State

  private var full: Int { fadeFrames + 1 }

  /// The level that ramps lead to.
  private var target: Int {
    if isCut || isStarved || isDropping { return 0 }
    guard isDucked else { return full }
    switch ducking {
    case .hold: return 0
    case .lower(let gain): return min(full, max(1, Int((gain * Double(full)).rounded())))
    }
  }

  /// True if the next frame needs a packet.
  var wantsPacket: Bool {
    guard packet == nil && !isCut else { return false }
    // While held at silence, packets stay in the link.
    if isDucked, case .hold = ducking { return level > 0 && !isStarved }
    return true
  }

  /// True while ducking holds the reply.
  var isHeld: Bool {
    if isDucked, case .hold = ducking { return true }
    return false
  }

  /// True if the level is zero and there is no packet.
  var isSilent: Bool { packet == nil && level == 0 }

  // MARK: Control

  /// Cancels the packet if it belongs to a reply older than `current`. False if there is nothing to cancel.
  mutating func cut(at current: UInt32) -> Bool {
    isDucked = false
    guard holder.isStale(at: current), !isCut else { return false }
    isCut = true
    return true
  }

  /// Frames rendered since the reply's account began, including silence; at most these belong to the reply.
  var framesOfReply: Int { rendered - accountBegin }

  /// Ends the cancelled reply at once; its last `frames` frames were queued but are not heard. Returns its account.
  mutating func endCut(without frames: Int) -> Account {
    let first = rendered - min(frames, framesOfReply, ledgerMask + 1)
    for index in first..<rendered where unsafe ledger[index & ledgerMask] {
      account.frames -= 1
      account.position -= 1
    }
    let last = account
    level = 0
    endCut()
    return last
  }

  /// Starts or ends ducking.
  mutating func duck(_ value: Bool) { isDucked = value }

  // MARK: Sound

  /// Takes the next packet, without its first `skipping` frames.
  mutating func accept(_ next: consuming Packet, skipping: Int = 0) -> Arrival {
    let count = Int(next.byteCount) / frameBytes
    // Before position 0 lies a filter's or codec's run-in, which must not be heard.
    let skipped = Int(min(Int64(count), max(Int64(skipping), -next.position)))
    var arrival = Arrival()
    let isLast = next.flags.contains(.endOfUtterance)
    guard skipped < count else {
      if isLast {
        arrival.ended = account
        begin(Account())
      }
      return arrival
    }
    let position = next.position + Int64(skipped)
    if next.generation != account.reply {
      if account.frames > 0 { arrival.ended = account }
      begin(Account(reply: next.generation, frames: 0, position: position))
    }
    arrival.isFirst = account.frames == 0
    arrival.endsUnderrun = isStarved && !arrival.isFirst && next.position == account.position
    let startsFromSilence = isStarved && arrival.isFirst
    isStarved = false
    // A new start is not swallowed by a ramp.
    if startsFromSilence { level = target }
    account.position = position
    done = skipped
    frames = count
    endsUtterance = isLast
    holder.follow(next)
    packetTime = next.timestamp
    packet = consume next
    return arrival
  }

  private mutating func begin(_ next: Account) {
    account = next
    accountBegin = rendered
  }

  /// Records rendered frames in the ledger.
  private mutating func note(_ count: Int, isHeard: Bool) {
    for index in rendered..<rendered + count { unsafe ledger[index & ledgerMask] = isHeard }
    rendered += count
  }

  /// The account of an utterance that was rendered to its end since the last call.
  mutating func takeFinished() -> Account? { finished.take() }

  /// Fades out and drops the rest of the packet.
  mutating func fadeOutAndDrop() { isDropping = packet != nil }

  /// Fades in from silence: what follows a gap must not start with a step.
  mutating func fadeInFromSilence() { level = 0 }

  /// Frames of the packet that are not rendered yet.
  var framesLeft: Int { packet == nil ? 0 : frames - done }

  /// Accounts for frames that were skipped before their packet was accepted.
  mutating func noteSkipped(_ count: Int) { account.position += Int64(count) }

  /// Skips the next frames of the packet, as far as it has them, and returns how many.
  mutating func skip(_ count: Int) -> Int {
    guard packet != nil, !endsUtterance, !isCut else { return 0 }
    let skipped = min(count, frames - done)
    done += skipped
    account.position += Int64(skipped)
    if done == frames { packet = nil }
    return skipped
  }

  /// The timestamp of the next frame, for a stream of `rate` Hz.
  func time(rate: Int) -> Nanoseconds { packetTime &+ .samples(Int64(done), rate: rate) }

  /// True if the packet belongs to a reply, or is uninterruptible.
  var isReply: Bool { account.reply != 0 || holder.isUninterruptible }

  /// Reports that no packet is available: the audio fades out, and fades in with the next one.
  mutating func starve() { isStarved = true }

  /// Renders frames from `start` to the end of `target`, silence included, until a packet is needed. Returns how many. Sets `cut` to the
  /// account of a cancelled reply once it has faded out.
  mutating func render<S: PlayoutSample>(
    into target: inout MutableSpan<S>, from start: Int, cut: inout Account?
  ) -> Int {
    let end = target.count / channels
    var at = start
    while at < end {
      if level == 0 && self.target == 0 {
        if isCut {
          cut = account
          endCut()
          break
        }
        if isDropping { endDrop() }
        for index in at * channels..<end * channels { target[index] = .silence }
        note(end - at, isHeard: false)
        return end - start
      }
      if wantsPacket && !isStarved { break }
      if packet != nil && level == full && self.target == full {
        at += copy(into: &target, at: at, limit: end - at)
      } else {
        at += ramp(into: &target, at: at)
      }
    }
    return at - start
  }

  /// Ends the cancelled reply. What follows starts at its own level.
  private mutating func endCut() {
    isCut = false
    packet = nil
    endsUtterance = false
    isStarved = true
    begin(Account())
    for index in 0..<channels { unsafe lastFrame[index] = 0 }
  }

  /// Ends a faded packet. What follows fades in, unless it starts another reply.
  private mutating func endDrop() {
    isDropping = false
    packet = nil
    endsUtterance = false
    isStarved = true
  }

  /// Copies frames at unity gain, up to the packet's end.
  private mutating func copy<S: PlayoutSample>(into target: inout MutableSpan<S>, at: Int, limit: Int) -> Int
  {
    guard let held = packet.take() else { return 0 }
    let count = min(limit, frames - done)
    write(held, frames: count, gain: 1, into: &target, at: at)
    packet = consume held
    advance(count)
    return count
  }

  /// Renders one frame of a ramp. Returns 0 when the ramp has reached silence.
  private mutating func ramp<S: PlayoutSample>(into target: inout MutableSpan<S>, at: Int) -> Int {
    if level > self.target {
      level -= 1
    } else if level < self.target {
      level += 1
    }
    guard level > 0 else { return 0 }
    let gain = Float(level) / Float(full)
    if let held = packet.take() {
      write(held, frames: 1, gain: gain, into: &target, at: at)
      packet = consume held
      advance(1)
    } else {
      for channel in 0..<channels {
        target[at * channels + channel] = unsafe S(level: lastFrame[channel] * gain)
      }
      note(1, isHeard: false)
    }
    return 1
  }

  /// Writes the packet's next frames and keeps the last of them.
  private func write<S: PlayoutSample>(
    _ packet: borrowing Packet, frames count: Int, gain: Float, into target: inout MutableSpan<S>, at: Int
  ) {
    let samples = packet.samples(of: S.self)
    let (from, to) = (done * channels, at * channels)
    if gain == 1 {
      for index in 0..<count * channels { target[to + index] = samples[from + index].sound }
    } else {
      for index in 0..<count * channels { target[to + index] = samples[from + index].sound.scaled(by: gain) }
    }
    let last = from + (count - 1) * channels
    for channel in 0..<channels { unsafe lastFrame[channel] = samples[last + channel].sound.asFloat }
  }

  private mutating func advance(_ count: Int) {
    note(count, isHeard: true)
    done += count
    account.frames += Int64(count)
    account.position += Int64(count)
    guard done == frames else { return }
    packet = nil
    if endsUtterance {
      finished = account
      begin(Account())
      endsUtterance = false
    }
  }
}

/// A sample that a playout can scale.
protocol PlayoutSample: BitwiseCopyable {
  /// The sample multiplied by a gain of 0 to 1.
  func scaled(by gain: Float) -> Self
  /// The sample, with NaN, infinities and values that would overflow a filter replaced: they must not reach a device.
  var sound: Self { get }
  /// The sample in its own units.
  var asFloat: Float { get }
  /// The nearest sample to a value in its own units.
  init(level: Float)
  static var silence: Self { get }
}

extension Int16: PlayoutSample {
  func scaled(by gain: Float) -> Int16 { Int16((Float(self) * gain).rounded()) }
  var sound: Int16 { self }
  var asFloat: Float { Float(self) }
  init(level: Float) { self = Int16(level.rounded()) }
  static var silence: Int16 { 0 }
}

extension Float: PlayoutSample {
  func scaled(by gain: Float) -> Float { self * gain }
  var sound: Float { SampleMath.sanitized(self) }
  var asFloat: Float { self }
  init(level: Float) { self = level }
  static var silence: Float { 0 }
}
