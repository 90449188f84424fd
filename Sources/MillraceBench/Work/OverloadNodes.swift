import CMillraceSys
import MillraceCore
import Synchronization

/// The counts of one overload measurement, over all sessions.
final class OverloadTally: Sendable {
  /// The age of voice packets at the end of their session.
  let voice = LatenessBars(step: 100_000, count: 20_000)
  /// The age of the oldest voice packet at the end of a session, in nanoseconds since capture.
  let oldest = Atomic<Int>(0)
  /// Frames that were lost because they were not read from the device in time.
  let overruns = Atomic<Int>(0)
  /// Pictures that were encoded.
  let pictures = Atomic<Int>(0)
  /// When the last picture was encoded, in nanoseconds of the monotonic clock.
  let lastPicture = Atomic<Int>(0)

  /// The tally of nodes created from now on.
  static let current = Mutex(OverloadTally())
}

/// A microphone that behaves like a sound device: a frame every 20 ms, and the device keeps the last 200 ms.
struct OverloadVoice: Node {
  static let contract = NodeContract(
    "bench.microphone", "plays a voice from memory, with a device buffer of 200 ms",
    outputs: [
      PortContract("out", .pcm(rates: .only(48_000), channels: .only(1), samples: [.s16]), text: "the voice")
    ], drive: .itself,
    resolve: { resolution in
      resolution.outputs["out"] = .pcm(rate: 48_000, channels: 1, sample: .s16, frames: LiveLoad.frame)
      resolution.pacing = .paced
    })
  /// Frames in the device buffer.
  static let kept = 10
  private static let voice = Sound.voice(seconds: 2, rate: 48_000)
  private let tally = OverloadTally.current.withLock { $0 }
  private let voice = Self.voice
  private var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    // A frame is available when its last sample was captured.
    let heard = Int(ports.now) / LiveLoad.frameTime
    if heard <= next {
      ports.wake(at: Int64(next + 1) * Int64(LiveLoad.frameTime))
      return .done
    }
    if heard - next > Self.kept {
      tally.overruns.add(heard - next - Self.kept, ordering: .relaxed)
      next = heard - Self.kept
    }
    var packet = try ports.makePacket(bytes: 2 * LiveLoad.frame, of: .none)
    packet.timestamp = Int64(next + 1) * Int64(LiveLoad.frameTime)
    packet.position = Int64(next * LiveLoad.frame)
    packet.duration = LiveLoad.frame
    let start = next * LiveLoad.frame % voice.count
    var samples = packet.mutableSamples(of: Int16.self)
    for index in 0..<LiveLoad.frame { samples[index] = voice[start + index] }
    ports.emit(packet)
    next += 1
    return .again
  }
}

/// Records the age of voice packets at the end of a session.
struct OverloadSink: Node {
  static let contract = NodeContract(
    "bench.age", "records the age of packets", inputs: [PortContract("in", .opus(), text: "Opus packets")])
  private let tally = OverloadTally.current.withLock { $0 }

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      let age = Int(ports.now - packet.timestamp)
      tally.voice.add(age)
      tally.oldest.max(age, ordering: .relaxed)
    }
    return .done
  }
}

/// Keeps the processor busy every 500 ms for as long as a JPEG encoder does at 720p, alongside the voice.
struct OverloadPictures: Node {
  static let contract = NodeContract(
    "bench.pictures", "keeps a processor busy like a picture encoder",
    inputs: [PortContract("in", .any, text: "50 packets a second, which set the pace")], lane: .bulk)
  /// Packets per picture.
  private static let pace = 25
  /// Nanoseconds per picture.
  static let work: Int64 = 6_000_000
  private let tally = OverloadTally.current.withLock { $0 }
  private var taken = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard ports.next() != nil else { return .done }
    taken += 1
    guard taken % Self.pace == 0 else { return .done }
    let end = millrace_thread_cpu_ns() + Self.work
    while millrace_thread_cpu_ns() < end { millrace_pause() }
    tally.pictures.add(1, ordering: .relaxed)
    tally.lastPicture.store(Int(millrace_monotonic_ns()), ordering: .relaxed)
    return .done
  }
}
