internal import MillraceCodecs
package import MillraceCore
internal import MillraceDSP
internal import MillraceRTC
package import MillraceRTCSound

/// The sound of a room as a mix for each member, without that member's own voice: Opus in, Opus out, 48 kHz, one channel.
///
/// - Every 20 ms each source is decoded behind its jitter buffer, and those that are heard are added up. A voice below -60 dBFS for half a
///   second is not heard, so that noise of many microphones does not add up.
/// - Who is not heard gets the sum, encoded once for all of them. Who is heard gets the sum without it, from an encoder of its own. When a
///   member goes from one encoder to the other, the next packet needs nothing of those before it.
/// - Where nobody is heard nothing is encoded and nothing sent, but for a fifth of a second in which decoders come to rest.
///
/// One thread. No heap for a packet or a frame; a member that begins to send or to be heard makes its decoder or its encoder then.
package final class RoomMixer {
  /// Hz, and samples of a frame.
  package static let rate = 48_000
  package static let frame = 960
  private static let hop: Nanoseconds = .milliseconds(10)
  /// Being late by more, the grid jumps to the present.
  private static let mostLate: Nanoseconds = .milliseconds(1_000)
  /// Frames of silence that are still sent after the last sound.
  private static let restFrames = 10

  /// Sends a packet of Opus to a member.
  /// - Parameters:
  ///   - pause: samples that were not sent before it.
  ///   - level: of its sound, in dBFS.
  package typealias Send =
    (_ seat: RoomMixSeat, _ payload: Span<UInt8>, _ pause: Int, _ level: Double) -> Void

  private let settings: RoomMixSettings
  private var seats: [RoomMixSeat] = []
  private let sum = FrameBuffer(byteCount: RoomMixer.frame * 4)
  private let rest = FrameBuffer(byteCount: RoomMixer.frame * 4)
  private let shared: MixEncoder
  /// Frames since somebody was heard.
  private var quietFrames = RoomMixer.restFrames
  /// When the next frame is due; nil: nobody is there.
  private var due: Nanoseconds?

  /// Creates the mix of an empty room. Throws when libopus has no encoder for the settings.
  package init(_ settings: RoomMixSettings) throws(NodeProblem) {
    self.settings = settings
    shared = try MixEncoder(settings)
    seats.reserveCapacity(RoomMixSettings.seats)
  }

  // MARK: Members

  /// Makes a place for a member, which neither sends nor hears yet.
  package func addSeat() -> RoomMixSeat {
    let seat = RoomMixSeat()
    seats.append(seat)
    return seat
  }

  /// A member is gone.
  package func remove(_ seat: RoomMixSeat) {
    seats.removeAll { $0 === seat }
    if seats.isEmpty { due = nil }
  }

  /// Takes a packet of a member.
  package func take(
    _ head: SoundDownHead, _ payload: Span<UInt8>, from seat: RoomMixSeat, at now: Nanoseconds
  ) {
    seat.take(head, payload, settings, at: now)
    if due == nil { due = now }
  }

  /// The member hears the mix from now on, or no longer.
  package func setListening(_ seat: RoomMixSeat, _ listens: Bool, at now: Nanoseconds) {
    seat.listens = listens
    if due == nil { due = now }
  }

  // MARK: Frames

  /// Makes the frames that are due. Returns when the next is; nil: nobody is there.
  package func run(at now: Nanoseconds, _ send: Send) -> Nanoseconds? {
    guard var time = due else { return nil }
    if now &- time > Self.mostLate { time = now }
    while time <= now {
      makeFrame(at: time, send)
      time += 2 * Self.hop
    }
    due = time
    return time
  }

  private func makeFrame(at time: Nanoseconds, _ send: Send) {
    let heard = mix(at: time)
    quietFrames = heard > 0 ? 0 : min(quietFrames + 1, Self.restFrames)
    let isResting = quietFrames >= Self.restFrames
    var sharedCount: Int?
    for index in 0..<seats.count where seats[index].listens {
      let seat = seats[index]
      let isOwn = seat.isHeard
      if isResting || isOwn && heard == 1 && seat.quietFrames >= Self.restFrames {
        seat.skip()
        continue
      }
      if isOwn {
        sendOwn(to: seat, others: heard - 1, send)
      } else {
        seat.quietFrames = 0
        if sharedCount == nil { sharedCount = encodeShared() }
        deliver(shared, sharedCount ?? 0, to: seat, send)
      }
      seat.hasOwnStream = isOwn
    }
  }

  /// Adds up who is heard. Returns how many are.
  private func mix(at time: Nanoseconds) -> Int {
    var total = unsafe sum.room(for: Float.self)
    for index in total.indices { total[index] = 0 }
    var heard = 0
    for index in 0..<seats.count {
      let seat = seats[index]
      guard seat.play(at: time) else { continue }
      heard += 1
      SampleMath.mix(unsafe seat.sound(), into: &total)
    }
    return heard
  }

  /// The sum for those who are not heard; a member that had a stream of its own begins with this frame.
  private func encodeShared() -> Int {
    var begins = false
    for index in 0..<seats.count where seats[index].listens && !seats[index].isHeard {
      if seats[index].hasOwnStream { begins = true }
    }
    return shared.encode(unsafe sum.contents(of: Float.self, count: Self.frame), standsAlone: begins)
  }

  /// The sum without the member's own voice.
  private func sendOwn(to seat: RoomMixSeat, others: Int, _ send: Send) {
    seat.quietFrames = others > 0 ? 0 : seat.quietFrames + 1
    guard let encoder = seat.encoder(settings) else { return seat.skip() }
    if !seat.hasOwnStream { encoder.reset() }
    var target = unsafe rest.room(for: Float.self)
    if others > 0 {
      let all = unsafe sum.contents(of: Float.self, count: Self.frame)
      for index in target.indices { target[index] = all[index] }
      SampleMath.mix(unsafe seat.sound(), gain: -1, into: &target)
    } else {
      // Not what rounding leaves of the own voice.
      for index in target.indices { target[index] = 0 }
    }
    let count = encoder.encode(unsafe rest.contents(of: Float.self, count: Self.frame), standsAlone: false)
    deliver(encoder, count, to: seat, send)
  }

  private func deliver(_ encoder: MixEncoder, _ count: Int, to seat: RoomMixSeat, _ send: Send) {
    guard count > 0 else { return seat.skip() }
    send(seat, unsafe encoder.encoded(count), seat.takePause(), encoder.level)
  }
}
