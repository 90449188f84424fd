import Foundation
import MillraceCore
import MillraceRTCSound
import Testing

@testable import MillraceCodecs
@testable import MillraceRoom

/// The level of a tone in sound, in dB below an amplitude of 1 (Goertzel, behind a Hann window).
func mixLevel(_ frequency: Double, _ sound: ArraySlice<Float>) -> Double {
  let step = 2 * Double.pi * frequency / Double(RoomMixer.rate)
  var (real, imaginary, weights) = (0.0, 0.0, 0.0)
  for (index, sample) in sound.enumerated() {
    let weight = 0.5 - 0.5 * cos(2 * Double.pi * (Double(index) + 0.5) / Double(sound.count))
    weights += weight
    real += Double(sample) * weight * cos(step * Double(index))
    imaginary += Double(sample) * weight * sin(step * Double(index))
  }
  guard weights > 0 else { return -200 }
  return 20 * log10(max(1e-10, 2 * hypot(real, imaginary) / weights))
}

/// A tone, as a member sends it: 20 ms of Opus a packet.
final class MixVoice {
  let frequency: Double
  var amplitude: Double
  private let encoder: LibopusEncoder
  private var position = 0

  init(_ frequency: Double, amplitude: Double = 0.3) throws {
    self.frequency = frequency
    self.amplitude = amplitude
    encoder = try LibopusEncoder(rate: RoomMixer.rate, channels: 1, application: .audio)
    encoder.set(bitrate: 64_000)
    encoder.set(discontinuous: false)
  }

  func packet() -> [UInt8] {
    let step = 2 * Double.pi * frequency / Double(RoomMixer.rate)
    let sound = (0..<RoomMixer.frame).map { Float(amplitude * sin(step * Double(position + $0))) }
    position += RoomMixer.frame
    var bytes = [UInt8](repeating: 0, count: 1_152)
    let count = sound.withUnsafeBytes { from in
      bytes.withUnsafeMutableBufferPointer { to in
        encoder.encode(
          from.baseAddress!, sample: .f32, frame: RoomMixer.frame, to: to.baseAddress!, room: to.count)
      }
    }
    return Array(bytes.prefix(max(0, count)))
  }
}

/// Decodes what a member gets.
final class MixEar {
  private let decoder: LibopusDecoder
  /// With silence where nothing was sent.
  private(set) var sound: [Float] = []
  private(set) var pauses: [Int] = []

  init() throws { decoder = try LibopusDecoder(rate: RoomMixer.rate, channels: 1, sample: .f32) }

  var packets: Int { pauses.count }

  func take(_ payload: [UInt8], pause: Int = 0) {
    pauses.append(pause)
    sound += [Float](repeating: 0, count: pause)
    var frame = [Float](repeating: 0, count: RoomMixer.frame)
    let made = payload.withUnsafeBufferPointer { bytes in
      frame.withUnsafeMutableBytes { room in
        decoder.decode(bytes.baseAddress, count: bytes.count, to: room.baseAddress!, room: RoomMixer.frame)
      }
    }
    #expect(made == RoomMixer.frame)
    sound += frame
  }

  /// The level of a tone in the last so many frames, but for some at the end.
  func level(_ frequency: Double, frames: Int, before: Int = 0) -> Double {
    mixLevel(frequency, sound.dropLast(before * RoomMixer.frame).suffix(frames * RoomMixer.frame))
  }

  /// The highest level of a tone in any 40 ms of the last so many frames.
  func highest(_ frequency: Double, frames: Int) -> Double {
    (0..<frames - 1).map { level(frequency, frames: 2, before: $0) }.max() ?? -200
  }
}

extension MixEar: RoomMixListener {
  func mixed(_ payload: Span<UInt8>, pause: Int, level: Double) {
    #expect(level <= 0)
    take(payload.indices.map { payload[$0] }, pause: pause)
  }
}

/// A member of a mix: a seat, and what is at the other end of its network.
final class MixMember {
  let seat: RoomMixSeat
  let voice: MixVoice
  let ear: MixEar
  let source: UInt64
  var talks = false
  private var sequence: Int64 = 0

  init(_ seat: RoomMixSeat, _ voice: MixVoice, source: UInt64) throws {
    self.seat = seat
    self.voice = voice
    self.source = source
    ear = try MixEar()
  }

  /// The head of its next packet.
  /// - Parameter skipped: packets that it has not made.
  func head(at now: Nanoseconds, skipped: Int64 = 0) -> SoundDownHead {
    sequence += 1 + skipped
    return SoundDownHead(
      source: source, sequence: sequence, timestamp: sequence * Int64(RoomMixer.frame), arrival: now,
      capture: 0,
      codec: SoundCodec.opus.packed, level: 255, marker: false, restarts: false)
  }
}

/// A mixer and its members, in time that a test passes.
final class MixRig {
  static let length: Nanoseconds = .milliseconds(20)
  /// Far from each other's harmonics.
  static let tones: [Double] = [400, 1_100, 2_300, 700, 3_100, 1_700, 550, 2_650]

  let mixer: RoomMixer
  private(set) var members: [MixMember] = []
  private(set) var now: Nanoseconds = .milliseconds(1_000)
  /// Frames that have passed since the first packet.
  private(set) var frames = 0

  init(_ count: Int, _ settings: RoomMixSettings = RoomMixSettings()) throws {
    mixer = RoomMixer(settings)
    for _ in 0..<count { try add() }
  }

  @discardableResult
  func add() throws -> MixMember {
    let number = members.count
    let voice = try MixVoice(Self.tones[number % Self.tones.count])
    let member = try MixMember(mixer.addSeat(), voice, source: UInt64(number + 1))
    member.seat.setListener(member.ear)
    members.append(member)
    return member
  }

  /// Members talk from now on, and no others.
  func talk(_ numbers: Int...) {
    for (number, member) in members.enumerated() { member.talks = numbers.contains(number) }
  }

  /// Passes 20 ms each.
  func step(_ count: Int) {
    for _ in 0..<count {
      for member in members where member.talks { send(member) }
      run()
    }
  }

  func send(_ member: MixMember) { take(member.voice.packet(), of: member) }

  func take(_ payload: [UInt8], of member: MixMember, skipped: Int64 = 0) {
    mixer.take(member.head(at: now, skipped: skipped), payload.span, from: member.seat, at: now)
  }

  func run() {
    if mixer.due != nil || frames > 0 { frames += 1 }
    _ = mixer.run(at: now)
    now += Self.length
  }

  /// The machine does nothing for so many frames.
  func stall(_ count: Int) {
    if frames > 0 { frames += count }
    now += Nanoseconds(count) * Self.length
  }
}
