internal import MillraceCodecs
internal import MillraceCore
internal import MillraceDSP
internal import MillraceRTCSound

/// The sound of one received medium by itself, beside the mix: the same 10 ms, with the same delay. Node's thread; no heap after `init`.
final class SoundTap {
  /// The output.
  let output: Int
  /// As in `SoundDownHead`.
  let medium: UInt8
  private let sample: SampleType
  private let channels: Int
  private let frames: Int
  private var resampler: Resampler
  private var limiter: Limiter
  private let sum: FrameBuffer
  private let made: FrameBuffer
  /// The output had no room.
  private var hasGap = false

  /// - Parameters:
  ///   - sample: of the output; its rate and channels are those of the mix.
  ///   - mixRate: the rate at which sources are decoded.
  init(
    _ output: Int, medium: UInt8, _ sample: SampleType, rate: Int, mixRate: Int, channels: Int
  ) throws(NodeProblem) {
    self.output = output
    self.medium = medium
    self.sample = sample
    self.channels = channels
    frames = rate / 100
    do throws(ResamplerProblem) {
      resampler = try Resampler(from: mixRate, to: rate, channels: channels)
    } catch {
      throw NodeProblem(error.description, parameter: "rate")
    }
    limiter = SoundMixer.limiter(rate: rate, channels: channels)
    sum = FrameBuffer(byteCount: mixRate / 100 * channels * 4)
    made = FrameBuffer(byteCount: frames * channels * 4)
  }

  /// Begins 10 ms of silence.
  func clear() {
    var target = unsafe sum.room(for: Float.self)
    for index in target.indices { target[index] = 0 }
  }

  /// Adds the 10 ms of a source that are due at `time`, here and to the mix.
  func mix(_ place: SoundSource, at time: Nanoseconds) {
    var target = unsafe sum.room(for: Float.self)
    place.mix(at: time, into: &target)
  }

  /// Adds what was mixed here to the sum of all.
  func add(to total: inout MutableSpan<Float>) {
    SampleMath.mix(unsafe sum.contents(of: Float.self, count: total.count), into: &total)
  }

  /// Emits the 10 ms; without room they are left out.
  func emit(
    _ ports: inout Ports, position: Int64, at time: Nanoseconds, hasJumped: Bool
  ) throws(NodeFault) {
    let mixed = unsafe sum.contents(of: Float.self, count: sum.byteCount / 4)
    var target = unsafe made.room(for: Float.self)
    let count = resampler.process(mixed, into: &target).produced * channels
    for index in count..<target.count { target[index] = 0 }
    limiter.process(&target)
    guard ports.hasRoomOrRequestsWake(output) else {
      hasGap = true
      return
    }
    var packet = try ports.makePacket(output, bytes: frames * channels * sample.byteCount, of: .none)
    SoundMixer.write(unsafe made.contents(of: Float.self, count: frames * channels), sample, into: &packet)
    packet.position = position
    packet.duration = frames
    packet.timestamp = time
    if hasJumped || hasGap { packet.flags.insert(.discontinuity) }
    hasGap = false
    ports.emit(packet, to: output)
  }
}
