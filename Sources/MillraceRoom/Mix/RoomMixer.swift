internal import MillraceCodecs
package import MillraceCore
internal import MillraceDSP
package import MillraceRTCSound

/// The sound of a room as a mix for each member, without that member's own voice: Opus in, Opus out, 48 kHz, one channel.
///
/// - Every 20 ms each source is decoded behind its jitter buffer, and those that are heard are added up. A voice below -60 dBFS for half a
///   second is not heard, so that noise of many microphones does not add up; of more voices than `RoomMixSettings.voices` the loudest are.
/// - Members that are not heard get the sum, encoded once for all of them. One that is heard, and for a moment after, gets the sum without
///   its voice, from an encoder of its own. When a member changes from one encoder to the other, the sound continues, and the next packet
///   needs nothing of those before it.
/// - Where nobody else is heard nothing is encoded and nothing sent, but for a fifth of a second in which decoders come to rest. What was
///   not sent is the `pause` of the next packet, so that timestamps keep the time.
/// - Late by up to 200 ms, frames are made up for; later than that they are left out. Without packets for five seconds the mixer sleeps
///   until the next.
///
/// One thread. No heap for a packet or a frame; a member that begins to send or to be heard makes its decoder or its encoder then.
package final class RoomMixer {
  /// Hz, and samples of a frame.
  package static let rate = 48_000
  package static let frame = 960
  /// Half of a frame: what sources play at a time.
  static let hop: Nanoseconds = .milliseconds(10)
  private static let length: Nanoseconds = .milliseconds(20)
  /// When it is later than this, the grid jumps to the present: receivers wait no longer either.
  private static let mostLate: Nanoseconds = .milliseconds(200)
  /// Frames without a packet of anybody after which the mixer sleeps: five seconds.
  private static let sleepFrames = 250
  /// How much louder than the softest voice that is heard another has to be to take its place, in dB.
  private static let margin = 6.0

  private let settings: RoomMixSettings
  private var seats: [RoomMixSeat] = []
  private let sum = FrameBuffer(byteCount: RoomMixer.frame * 4)
  private let rest = FrameBuffer(byteCount: RoomMixer.frame * 4)
  /// The sum of the frame before.
  private let last = FrameBuffer(byteCount: RoomMixer.frame * 4)
  private var hasLast = false
  private var shared: MixEncoder?
  /// The next time of the grid; nil: nobody has sent anything yet.
  private var grid: Nanoseconds?
  private var isAsleep = false
  /// The number of the frame, and frames since the latest packet.
  private var number = 0
  private var idleFrames = 0
  /// Frames that were encoded.
  package private(set) var encodings = 0

  /// Creates the mix of an empty room.
  package init(_ settings: RoomMixSettings) {
    self.settings = settings
    seats.reserveCapacity(RoomMixSettings.seats)
  }

  // MARK: Members

  /// Members at present.
  package var seatCount: Int { seats.count }

  /// Makes a place for a member, which neither sends nor hears yet.
  package func addSeat() -> RoomMixSeat {
    let seat = RoomMixSeat()
    seats.append(seat)
    return seat
  }

  /// A member is gone.
  package func remove(_ seat: RoomMixSeat) {
    seat.setListener(nil)
    seats.removeAll { $0 === seat }
    if seats.isEmpty { (grid, isAsleep) = (nil, false) }
  }

  /// Takes a packet of a member.
  package func take(
    _ head: SoundDownHead, _ payload: Span<UInt8>, from seat: RoomMixSeat, at now: Nanoseconds
  ) {
    seat.take(head, payload, settings, at: now)
    idleFrames = 0
    if grid == nil { grid = now }
    guard isAsleep else { return }
    isAsleep = false
    skip(to: now)
  }

  // MARK: Frames

  /// When the next frame is due; nil: not before a packet comes.
  package var due: Nanoseconds? { isAsleep ? nil : grid }

  /// Makes the frames that are due. Returns when the next is; nil: not before a packet comes.
  package func run(at now: Nanoseconds) -> Nanoseconds? {
    guard let first = due else { return nil }
    if now &- first > Self.mostLate { skip(to: now) }
    while let time = grid, time <= now {
      grid = time + Self.length
      makeFrame(at: time)
    }
    if idleFrames >= Self.sleepFrames, !hasSound { sleep() }
    return due
  }

  /// Leaves frames out, up to the one that is due now.
  private func skip(to now: Nanoseconds) {
    guard let grid, now > grid else { return }
    let frames = (now - grid) / Self.length
    guard frames > 0 else { return }
    self.grid = grid + frames * Self.length
    for index in 0..<seats.count { seats[index].skip(Int(frames)) }
    // What encoders have in memory does not go before what comes, nor does the latest sum.
    number &+= 1
    hasLast = false
  }

  private var hasSound: Bool {
    for index in 0..<seats.count where seats[index].hasSound { return true }
    return false
  }

  private func sleep() {
    isAsleep = true
    for index in 0..<seats.count { seats[index].sleep() }
  }

  private func makeFrame(at time: Nanoseconds) {
    number &+= 1
    idleFrames += 1
    for index in 0..<seats.count { seats[index].play(at: time) }
    let heard = choose()
    addUp()
    var (isShared, begins) = (false, false)
    for index in 0..<seats.count {
      let seat = seats[index]
      seat.note(others: seat.isHeard ? heard - 1 : heard)
      guard seat.takesFrame, !seat.isApart else { continue }
      isShared = true
      if seat.stream != .shared { begins = true }
    }
    let count = isShared ? encodeShared(standsAlone: begins) : 0
    for index in 0..<seats.count {
      let seat = seats[index]
      if !seat.takesFrame {
        seat.skip()
      } else if seat.isApart {
        sendOwn(to: seat, others: seat.isHeard ? heard - 1 : heard)
      } else {
        deliver(shared, count, .shared, to: seat)
      }
    }
    keepSum()
  }

  /// Chooses who is heard. Returns how many are.
  private func choose() -> Int {
    var heard = 0
    for index in 0..<seats.count {
      let seat = seats[index]
      if !seat.isActive { seat.isHeard = false }
      if seat.isHeard { heard += 1 }
    }
    for index in 0..<seats.count where seats[index].isActive && !seats[index].isHeard {
      let seat = seats[index]
      if heard < settings.voices {
        heard += 1
      } else {
        guard let softest = softestHeard(), seat.loudness > softest.loudness + Self.margin else { continue }
        softest.isHeard = false
      }
      seat.isHeard = true
    }
    return heard
  }

  private func softestHeard() -> RoomMixSeat? {
    var found: RoomMixSeat?
    for index in 0..<seats.count where seats[index].isHeard {
      let seat = seats[index]
      if seat.loudness < found?.loudness ?? .infinity { found = seat }
    }
    return found
  }

  /// Adds up who is heard.
  private func addUp() {
    var total = unsafe sum.room(for: Float.self)
    for index in total.indices { total[index] = 0 }
    for index in 0..<seats.count where seats[index].isHeard {
      SampleMath.mix(unsafe seats[index].sound(), into: &total)
    }
  }

  private func keepSum() {
    var target = unsafe last.room(for: Float.self)
    let all = unsafe sum.contents(of: Float.self, count: Self.frame)
    for index in target.indices { target[index] = all[index] }
    hasLast = true
  }

  /// The sum, for those whose voice is not in it; nor was it in the one before.
  private func encodeShared(standsAlone: Bool) -> Int {
    guard let encoder = sharedEncoder() else { return 0 }
    let all = unsafe sum.contents(of: Float.self, count: Self.frame)
    return encode(all, encoder, isContinued: true, standsAlone: standsAlone)
  }

  /// Encodes a frame.
  /// - Parameter isContinued: the sum of the frame before goes before it.
  private func encode(
    _ sound: Span<Float>, _ encoder: MixEncoder, isContinued: Bool, standsAlone: Bool
  ) -> Int {
    let begins = encoder.isBehind(number)
    if begins, isContinued, hasLast {
      encoder.prime(unsafe last.contents(of: Float.self, count: Self.frame), before: number)
    }
    encodings += 1
    return encoder.encode(sound, number: number, standsAlone: standsAlone || begins)
  }

  /// Nil: libopus has no memory for it.
  private func sharedEncoder() -> MixEncoder? {
    if let shared { return shared }
    do throws(NodeProblem) { shared = try MixEncoder(settings) } catch { return nil }
    return shared
  }

  /// The sum without the member's own voice.
  private func sendOwn(to seat: RoomMixSeat, others: Int) {
    guard let encoder = seat.encoder(settings) else { return seat.skip() }
    var target = unsafe rest.room(for: Float.self)
    let all = unsafe sum.contents(of: Float.self, count: Self.frame)
    for index in target.indices { target[index] = all[index] }
    if seat.isHeard {
      SampleMath.mix(unsafe seat.sound(), gain: -1, into: &target)
    }
    if others == 0 {
      // Not what rounding leaves of the own voice.
      for index in target.indices { target[index] = 0 }
    }
    let count = encode(
      unsafe rest.contents(of: Float.self, count: Self.frame), encoder, isContinued: !seat.wasHeard,
      standsAlone: seat.stream != .own)
    deliver(encoder, count, .own, to: seat)
  }

  private func deliver(
    _ encoder: MixEncoder?, _ count: Int, _ stream: RoomMixSeat.Stream, to seat: RoomMixSeat
  ) {
    guard let encoder, count > 0, let listener = seat.listener else { return seat.skip() }
    listener.mixed(unsafe encoder.encoded(count), pause: seat.takePause(), level: encoder.level)
    seat.stream = stream
  }
}
