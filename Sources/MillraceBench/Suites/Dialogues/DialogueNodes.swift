import CMillraceSys
import MillraceCore
import Synchronization

/// What the nodes of a measured dialogue record. Times are in nanoseconds of the monotonic clock.
final class DialogueNotes: Sendable {
  /// An event that passed.
  struct Event: Sendable {
    var time: Int64
    /// When it was posted, in graph time.
    var posted: Nanoseconds
    var text: String
  }

  /// A picture that was shown, in graph time.
  struct Picture: Sendable {
    /// Its timestamp, and when it arrived.
    var time: Nanoseconds
    var seen: Nanoseconds
    var isWhite: Bool
  }

  /// A packet that was played and not silent: when its first and last audible sample were played, in graph time.
  struct Sound: Sendable {
    var first: Nanoseconds
    var last: Nanoseconds
    var samples: Int
  }

  private let allEvents = Mutex<[Event]>([])
  private let allSounds = Mutex<[Sound]>([])
  private let allPictures = Mutex<[Picture]>([])

  /// The notes of nodes created from now on.
  static let current = Mutex<DialogueNotes?>(nil)

  static func get() throws(NodeProblem) -> DialogueNotes {
    guard let notes = current.withLock({ $0 }) else { throw NodeProblem("no notes have been set") }
    return notes
  }

  var events: [Event] { allEvents.withLock { $0 } }
  var sounds: [Sound] { allSounds.withLock { $0 } }
  func add(_ event: Event) { allEvents.withLock { $0.append(event) } }
  func add(_ sound: Sound) { allSounds.withLock { $0.append(sound) } }
  var pictures: [Picture] { allPictures.withLock { $0 } }
  func add(_ picture: Picture) { allPictures.withLock { $0.append(picture) } }
}

/// A microphone: 1.2 s of a loud tone every six seconds, silence otherwise, in packets of 20 ms. The last samples of each packet carry the
/// time it was created, too faint to be heard.
struct StampedVoice: Node {
  static let contract = NodeContract(
    "bench.stamped", "a voice whose packets carry the time they were created",
    outputs: [
      PortContract("out", .pcm(rates: .only(16_000), channels: .only(1), samples: [.s16]), text: "the voice")
    ],
    parameters: [
      ParameterContract("speaks", .bool, default: true, text: "false: only silence")
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
    // A second of silence first, so that the dialogue has begun.
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

  /// When the last packet in an audio frame was created.
  static func stamp(_ frame: [UInt8]) -> Int64 {
    frame.suffix(2 * stampSamples).enumerated().reduce(0) { time, entry in
      entry.offset % 2 == 0 ? time | Int64(entry.element & 3) << Int64(entry.offset) : time
    }
  }
}

/// Records what is played.
struct PlayedSink: Node {
  static let contract = NodeContract(
    "bench.played", "records when something was audible",
    inputs: [PortContract("in", .pcm(samples: [.s16, .f32]), text: "what was played")],
    parameters: [
      ParameterContract(
        "above", .number(0...1), default: 0, text: "the level above which a sample is audible")
    ])
  private let above: Float
  private let notes: DialogueNotes
  private let rate: Int
  private let isFloat: Bool

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    above = Float(setup.parameters.number("above"))
    notes = try DialogueNotes.get()
    rate = setup.inputFormat().rate ?? 1
    isFloat = setup.inputFormat().sample == .f32
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      let time = packet.timestamp
      if isFloat {
        let samples = packet.samples(of: Float.self)
        note(time, samples.indices.filter { abs(samples[$0]) > above })
      } else {
        let samples = packet.samples(of: Int16.self)
        note(time, samples.indices.filter { Float(samples[$0].magnitude) > above * 32_768 })
      }
    }
    return .done
  }

  private func note(_ time: Nanoseconds, _ audible: [Int]) {
    guard let first = audible.first, let last = audible.last else { return }
    notes.add(
      DialogueNotes.Sound(
        first: time + .samples(Int64(first), rate: rate), last: time + .samples(Int64(last), rate: rate),
        samples: audible.count))
  }
}

/// Records events with the time at which they pass.
struct EventSink: Node {
  static let contract = NodeContract(
    "bench.notes", "records events",
    inputs: [PortContract("in", .kind(.event), text: "events", copies: 1...4)])
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
            time: millrace_monotonic_ns(), posted: packet.timestamp,
            text: String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)))
      }
    }
    return .done
  }
}

/// Records when pictures arrive, and which of them are white.
struct SeenSink: Node {
  static let contract = NodeContract(
    "bench.seen", "records pictures",
    inputs: [PortContract("in", .video(pixels: [.i420]), text: "pictures")])
  private static let white = 230
  private let notes: DialogueNotes

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { notes = try DialogueNotes.get() }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      let pixels = packet.samples(of: UInt8.self)
      notes.add(
        DialogueNotes.Picture(time: packet.timestamp, seen: ports.now, isWhite: Int(pixels[0]) > Self.white))
    }
    return .done
  }
}
