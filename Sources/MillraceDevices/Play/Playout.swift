internal import MillraceCore
internal import MillraceDSP

/// What a loudspeaker is given, frame by frame, and an exact account of how much of each reply that was.
///
/// Sound comes in as packets (`accept`) and leaves in stretches of any length (`render`), which ask for the next packet as they
/// need it. Every way to silence and back is a straight ramp of at most `fadeFrames` frames, never a step: when the reply is
/// cut, when it is held or lowered, when no packet is there in time. Ramps run over the sound that is there; where it ends
/// early, over the last frame held still. A frame counts as heard when it was given at any level above zero; each is given once.
///
/// Pure: no clock, no ports, no allocation after `init`. One thread at a time.
@safe
struct Playout: ~Copyable {
  /// What ducking does to a reply.
  enum Ducking {
    /// It stops, and goes on later with the frame after the last one heard.
    case hold
    /// It goes on at this amplitude factor.
    case lower(Double)
  }

  /// How much of a reply was heard.
  struct Account: Equatable {
    /// The reply's generation; 0: sound of no reply.
    var reply: UInt32 = 0
    /// Frames heard.
    var frames: Int64 = 0
    /// Position of the frame that would have been next.
    var position: Int64 = 0
  }

  /// What a packet changed.
  struct Arrival {
    /// The reply before it, when that is over.
    var ended: Account?
    /// It begins a reply, or sound of none.
    var isFirst = false
    /// It goes on where the sound had run dry.
    var endsDrought = false
  }

  private let fadeFrames: Int
  private let channels: Int
  private let frameBytes: Int
  private let ducking: Ducking
  /// The packet being played, and how many of its frames are done.
  private var packet: Packet?
  private var done = 0
  private var frames = 0
  /// The last frame given at its own level, in float: what a ramp goes on with when the sound ends.
  private let lastFrame: UnsafeMutableBufferPointer<Float>
  /// The level now, in steps of a ramp: 0 is silence, `full` is as it came.
  private var level = 0
  private var isDucked = false
  /// The reply is void: what is left of its packet only serves the ramp.
  private var isCut = false
  /// No packet was there when one was needed.
  private var isDry = true
  /// What is held is left as soon as it has faded.
  private var isLeaving = false
  /// Time of the packet taken last.
  private var packetTime: Nanoseconds = 0
  /// The packet is the last of its utterance.
  private var endsUtterance = false
  /// An utterance that was given to its last frame, until somebody asks.
  private var finished: Account?
  private(set) var account = Account()
  private var holder = HeldReply()
  /// Of the latest frames given, whether each counts as heard; how many were given, and how many before the account began.
  private let ledger: UnsafeMutablePointer<Bool>
  private let ledgerMask: Int
  private var given = 0
  private var accountBegin = 0

  /// Makes a silent playout of frames of `channels` samples of a type, which can take back up to `remembered` frames.
  init(channels: Int, sample: SampleType, fadeFrames: Int, ducking: Ducking, remembered: Int) {
    precondition(channels > 0 && fadeFrames > 0, "a frame has a sample, a ramp has a frame")
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

  /// The level ramps go to.
  private var target: Int {
    if isCut || isDry || isLeaving { return 0 }
    guard isDucked else { return full }
    switch ducking {
    case .hold: return 0
    case .lower(let gain): return min(full, max(1, Int((gain * Double(full)).rounded())))
    }
  }

  /// True when the next frame has to come out of a packet that is not there yet.
  var wantsPacket: Bool {
    guard packet == nil && !isCut else { return false }
    // Held at silence, it lets what is to come wait in its link.
    if isDucked, case .hold = ducking { return level > 0 && !isDry }
    return true
  }

  /// True while ducking holds the reply.
  var isHeld: Bool {
    if isDucked, case .hold = ducking { return true }
    return false
  }

  /// True when nothing sounds and no packet is held.
  var isSilent: Bool { packet == nil && level == 0 }

  // MARK: Control

  /// Voids what is held when it belongs to a reply older than `current`. False when there is nothing to void.
  mutating func cut(at current: UInt32) -> Bool {
    isDucked = false
    guard holder.isVoid(at: current), !isCut else { return false }
    isCut = true
    return true
  }

  /// Frames given since the reply's account began, silence in it included: no more than these are its own.
  var framesOfReply: Int { given - accountBegin }

  /// The void reply is over at once, and its last `frames` frames, though given, are not heard. Answers its account.
  mutating func endCut(without frames: Int) -> Account {
    let first = given - min(frames, framesOfReply, ledgerMask + 1)
    for index in first..<given where unsafe ledger[index & ledgerMask] {
      account.frames -= 1
      account.position -= 1
    }
    let last = account
    level = 0
    endCut()
    return last
  }

  /// Makes room for a voice, or takes that back.
  mutating func duck(_ value: Bool) { isDucked = value }

  // MARK: Sound

  /// Takes the next packet, without its first `leaving` frames.
  mutating func accept(_ next: consuming Packet, leaving: Int = 0) -> Arrival {
    let count = Int(next.byteCount) / frameBytes
    // Before position 0 lies the run-in of a filter or a codec, which nobody is to hear.
    let skipped = Int(min(Int64(count), max(Int64(leaving), -next.position)))
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
    arrival.endsDrought = isDry && !arrival.isFirst && next.position == account.position
    let beginsAfresh = isDry && arrival.isFirst
    isDry = false
    // A beginning of its own is not to be swallowed by a ramp.
    if beginsAfresh { level = target }
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
    accountBegin = given
  }

  /// Notes frames that were given.
  private mutating func note(_ count: Int, isHeard: Bool) {
    for index in given..<given + count { unsafe ledger[index & ledgerMask] = isHeard }
    given += count
  }

  /// The account of an utterance that was given to its end since the last question.
  mutating func takeFinished() -> Account? { finished.take() }

  /// Fades, and leaves the rest of what is held.
  mutating func leave() { isLeaving = packet != nil }

  /// Comes back out of silence: where sound was missing, what follows is not to begin with a step.
  mutating func rise() { level = 0 }

  /// Frames of what is held that were not given yet.
  var framesLeft: Int { packet == nil ? 0 : frames - done }

  /// Notes that frames were left out before they were accepted.
  mutating func passOver(_ count: Int) { account.position += Int64(count) }

  /// Leaves out the next frames of what is held, as far as it has them, and answers how many.
  mutating func skip(_ count: Int) -> Int {
    guard packet != nil, !endsUtterance, !isCut else { return 0 }
    let skipped = min(count, frames - done)
    done += skipped
    account.position += Int64(skipped)
    if done == frames { packet = nil }
    return skipped
  }

  /// The time of the next frame that is given, when the stream has so many frames a second.
  func time(rate: Int) -> Nanoseconds { packetTime &+ .samples(Int64(done), rate: rate) }

  /// What is held belongs to a reply, or must be played anyhow.
  var isReply: Bool { account.reply != 0 || holder.isUninterruptible }

  /// Says that no packet is there: the sound fades, and comes back with the next one.
  mutating func runDry() { isDry = true }

  /// Writes frames from `start` to the end of `target`, as far as there is something to give: silence counts, a packet that
  /// is wanted ends it. Answers how many. `cut` becomes the account of a void reply when that has faded out.
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
        if isLeaving { endLeave() }
        for index in at * channels..<end * channels { target[index] = .silence }
        note(end - at, isHeard: false)
        return end - start
      }
      if wantsPacket && !isDry { break }
      if packet != nil && level == full && self.target == full {
        at += copy(into: &target, at: at, limit: end - at)
      } else {
        at += ramp(into: &target, at: at)
      }
    }
    return at - start
  }

  /// The void reply is over. What comes next begins at its own level.
  private mutating func endCut() {
    isCut = false
    packet = nil
    endsUtterance = false
    isDry = true
    begin(Account())
    for index in 0..<channels { unsafe lastFrame[index] = 0 }
  }

  /// What was left has faded. What comes next rises out of silence, unless it is another reply's.
  private mutating func endLeave() {
    isLeaving = false
    packet = nil
    endsUtterance = false
    isDry = true
  }

  /// Frames as they are, up to the packet's end.
  private mutating func copy<S: PlayoutSample>(into target: inout MutableSpan<S>, at: Int, limit: Int) -> Int
  {
    guard let held = packet.take() else { return 0 }
    let count = min(limit, frames - done)
    write(held, frames: count, gain: 1, into: &target, at: at)
    packet = consume held
    advance(count)
    return count
  }

  /// One frame on the way to the target level. Answers 0 when it is the silence at the end.
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

  /// Writes the next frames of a packet and keeps the last of them.
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

/// A sample a playout can scale.
protocol PlayoutSample: BitwiseCopyable {
  /// The sample times a gain of 0 to 1.
  func scaled(by gain: Float) -> Self
  /// The sample, or what of it is sound: NaN, infinities and what would overflow in a filter must not reach a device.
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
