import CMillraceSys
import MillraceCore
import Synchronization

/// What the nodes of one measured dialogue note. Times are of the monotonic clock, in nanoseconds.
final class DialogueNotes: Sendable {
  /// An event that passed.
  struct Event: Sendable {
    var time: Int64
    var text: String
  }

  /// A packet of what was played that was not silent: when its first and last sample that is not 0 were heard, in graph time.
  struct Sound: Sendable {
    var first: Nanoseconds
    var last: Nanoseconds
    var samples: Int
  }

  private let allEvents = Mutex<[Event]>([])
  private let allSounds = Mutex<[Sound]>([])

  /// Where nodes made from now on note things.
  static let current = Mutex<DialogueNotes?>(nil)

  static func get() throws(NodeProblem) -> DialogueNotes {
    guard let notes = current.withLock({ $0 }) else { throw NodeProblem("nobody asks for notes") }
    return notes
  }

  var events: [Event] { allEvents.withLock { $0 } }
  var sounds: [Sound] { allSounds.withLock { $0 } }
  func add(_ event: Event) { allEvents.withLock { $0.append(event) } }
  func add(_ sound: Sound) { allSounds.withLock { $0.append(sound) } }
}

/// A microphone: a second and a fifth of a loud tone every six seconds, quiet otherwise, in packets of 20 ms. Each packet carries in its
/// last samples when it was made, too faint to be heard.
struct StampedVoice: Node {
  static let contract = NodeContract(
    "bench.stamped", "a voice whose packets say when they were made",
    outputs: [
      PortContract("out", .pcm(rates: .only(16_000), channels: .only(1), samples: [.s16]), text: "the voice")
    ],
    parameters: [
      ParameterContract("speaks", .bool, default: true, text: "false: it is quiet all the time")
    ],
    drive: .itself,
    resolve: { resolution in
      resolution.outputs["out"] = .pcm(rate: 16_000, channels: 1, sample: .s16, frames: frames)
      resolution.pacing = .live
    })
  static let frames = 320
  /// Samples that carry the time, two bits each.
  static let stampSamples = 32
  private static let round = 300
  private static let spoken = 60
  private let speaks: Bool
  private var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { speaks = setup.parameters.bool("speaks") }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let due = Int64(next) * 20_000_000
    if ports.now < due {
      ports.wake(at: due)
      return .done
    }
    var packet = try ports.makePacket(bytes: 2 * Self.frames, of: .none)
    packet.timestamp = due
    packet.position = Int64(next * Self.frames)
    packet.duration = Self.frames
    // A second of quiet first, so that the dialogue has begun.
    let isLoud = speaks && next % Self.round >= 50 && next % Self.round < 50 + Self.spoken
    var samples = packet.mutableSamples(of: Int16.self)
    for index in 0..<Self.frames { samples[index] = isLoud ? (index / 20 % 2 == 0 ? 6_000 : -6_000) : 0 }
    let time = millrace_monotonic_ns()
    for index in 0..<Self.stampSamples {
      samples[Self.frames - Self.stampSamples + index] = Int16(time >> Int64(2 * index) & 3)
    }
    ports.emit(packet)
    next += 1
    return .again
  }

  /// When the last packet in a frame of sound was made.
  static func stamp(_ frame: [UInt8]) -> Int64 {
    frame.suffix(2 * stampSamples).enumerated().reduce(0) { time, entry in
      entry.offset % 2 == 0 ? time | Int64(entry.element & 3) << Int64(entry.offset) : time
    }
  }
}

/// Hears what is played.
struct PlayedEar: Node {
  static let contract = NodeContract(
    "bench.played", "notes when there was something to hear",
    inputs: [PortContract("in", .pcm(samples: [.s16, .f32]), text: "what was played")])
  private let notes: DialogueNotes
  private let rate: Int
  private let isFloat: Bool

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    notes = try DialogueNotes.get()
    rate = setup.inputFormat().rate ?? 1
    isFloat = setup.inputFormat().sample == .f32
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      let time = packet.timestamp
      if isFloat {
        let samples = packet.samples(of: Float.self)
        note(time, samples.indices.filter { samples[$0] != 0 })
      } else {
        let samples = packet.samples(of: Int16.self)
        note(time, samples.indices.filter { samples[$0] != 0 })
      }
    }
    return .done
  }

  private func note(_ time: Nanoseconds, _ heard: [Int]) {
    guard let first = heard.first, let last = heard.last else { return }
    notes.add(
      DialogueNotes.Sound(
        first: time + .samples(Int64(first), rate: rate), last: time + .samples(Int64(last), rate: rate),
        samples: heard.count))
  }
}

/// Notes events with the time at which they pass.
struct EventNotes: Node {
  static let contract = NodeContract(
    "bench.notes", "notes events", inputs: [PortContract("in", .kind(.event), text: "events", copies: 1...4)])
  private let notes: DialogueNotes
  private let inputs: Int

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    notes = try DialogueNotes.get()
    inputs = setup.inputs.count
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    for input in 0..<inputs {
      while let packet = ports.next(input) {
        let bytes = packet.samples(of: UInt8.self)
        notes.add(
          DialogueNotes.Event(
            time: millrace_monotonic_ns(),
            text: String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)))
      }
    }
    return .done
  }
}
