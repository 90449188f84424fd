import COpus
import Millrace
import MillraceCore

/// Fifty sessions in one process, each with Opus both ways: 25 calls of which both ends are here.
enum CallCrowd {
  private static let callCount = 25
  private static var sessions: Int { 2 * callCount }
  private static let defaultSeconds = 60.0
  private static let settling = 5.0
  private static let floorRounds = 5
  /// Packets of the floor: 20 s.
  private static let floorPackets = 1_000
  private static let bitrate = 32_000
  private static let form = CallStage.Form(signal: "voice", isDuplex: true)

  /// What is measured at the beginning and at the end.
  private struct Sample {
    let memory, work, time: Double
    let requests: Int?

    init() throws {
      memory = try residentKilobytes()
      work = processorSeconds()
      time = seconds()
      requests = Peers.heapRequests
    }
  }

  static func run(_ stage: CallStage) throws -> [Figure] {
    let length = DialogueStage.setting("MILLRACE_SECONDS", default: defaultSeconds)
    // The nodes' tables, the loops and the engine's threads are there before the first measurement of memory.
    try stage.established(form).hangUp()
    releaseFreeMemory()
    let empty = try residentKilobytes()
    let calls = try (0..<callCount).map { _ in try stage.established(form) }
    pause(settling)
    for ear in ears(calls) { ear.reset() }
    let before = try Sample()
    pause(length)
    let after = try Sample()
    let heard = ears(calls).map(\.heard)
    for call in calls {
      try call.check()
      try call.hangUp()
    }
    return try figures(length, empty, before, after, heard) + floor()
  }

  private static func ears(_ calls: [CallStage.Call]) -> [CallEar] {
    calls.flatMap { [$0.ear] + ($0.callerEar.map { [$0] } ?? []) }
  }

  private static func figures(
    _ length: Double, _ empty: Double, _ before: Sample, _ after: Sample, _ heard: [CallEar.Heard]
  ) -> [Figure] {
    func row(_ what: String, _ unit: String, _ value: Double, goal: String = "") -> Figure {
      Figure(RTCSuite.name, name(what, length), unit: unit, goal: goal, samples: [value])
    }
    let each = Double(sessions)
    let silences = heard.reduce(0) { $0 + $1.silences }
    let pauses = heard.reduce(0) { $0 + $1.pauses }
    let longest = heard.map { max($0.longestSilence, $0.longestPause) }.max() ?? 0
    return [
      row(
        "processor, each, with its voice and ear", "% of a core",
        100 * (after.work - before.work) / (after.time - before.time) / each, goal: "<= 1.5"),
      row("memory, each", "KB", (before.memory - empty) / each),
      row("memory, growth from start to end", "KB", after.memory - before.memory),
      row("silences beyond 60 ms", "", Double(silences), goal: "0"),
      row("times without a packet beyond 60 ms", "", Double(pauses), goal: "0"),
      row("longest silence or time without a packet", "ms", Double(longest) / 1e6),
      row("packets of 10 ms heard", "", Double(heard.reduce(0) { $0 + $1.packets })),
      heap(length, before, after),
    ]
  }

  private static func name(_ what: String, _ length: Double) -> String {
    "\(sessions) sessions, \(Int(length)) s: \(what)"
  }

  /// Heap requests of the whole process for each packet of the network, sent or received.
  private static func heap(_ length: Double, _ before: Sample, _ after: Sample) -> Figure {
    let name = name("heap requests for a packet", length)
    guard let first = before.requests, let last = after.requests else {
      return Figure(RTCSuite.name, name, skipped: "this program does not count heap requests")
    }
    // 50 packets a second each way.
    let packets = 100 * (after.time - before.time) * Double(sessions)
    return Figure(RTCSuite.name, name, unit: "", samples: [Double(last - first) / packets])
  }

  // MARK: Floor

  /// What a session needs for Opus alone: the same voice encoded and decoded by libopus in a loop, with the node's settings.
  private static func floor() throws -> [Figure] {
    let voice = Sound.voice(seconds: 20, rate: CallVoice.rate).map { Float($0) / 32_768 }
    let shares = try (0..<floorRounds).map { _ in 100 * (try share(voice)) }
    return [
      Figure(
        RTCSuite.name, "encoding and decoding of a session", of: "floor", unit: "% of a core", samples: shares
      )
    ]
  }

  /// Seconds of processor time for a second of sound, encoded and decoded.
  private static func share(_ voice: [Float]) throws -> Double {
    let frame = CallVoice.rate / 50
    guard let encoder = unsafe opus_encoder_create(opus_int32(CallVoice.rate), 1, OPUS_APPLICATION_VOIP, nil)
    else { throw MeasurementProblem("libopus cannot create an encoder") }
    defer { unsafe opus_encoder_destroy(encoder) }
    guard let decoder = unsafe opus_decoder_create(opus_int32(CallVoice.rate), 1, nil) else {
      throw MeasurementProblem("libopus cannot create a decoder")
    }
    defer { unsafe opus_decoder_destroy(decoder) }
    _ = unsafe millrace_opus_encoder_set_bitrate(encoder, opus_int32(bitrate))
    _ = unsafe millrace_opus_encoder_set_complexity(encoder, 5)
    _ = unsafe millrace_opus_encoder_set_vbr(encoder, 1)
    _ = unsafe millrace_opus_encoder_set_vbr_constraint(encoder, 1)
    var packet = [UInt8](repeating: 0, count: PlainUplink.packetBytes)
    var decoded = [Float](repeating: 0, count: frame)
    let start = processorSeconds()
    for number in 0..<floorPackets {
      let place = number * frame % (voice.count - frame + 1)
      let sound = Array(voice[place..<place + frame])
      let bytes = unsafe opus_encode_float(encoder, sound, Int32(frame), &packet, Int32(packet.count))
      guard bytes > 0 else { throw MeasurementProblem("libopus refused a frame (\(bytes))") }
      let count = unsafe opus_decode_float(decoder, packet, bytes, &decoded, Int32(frame), 0)
      guard count == Int32(frame) else { throw MeasurementProblem("libopus decoded \(count) samples") }
    }
    return (processorSeconds() - start) / (Double(floorPackets) / 50)
  }
}
