import MillraceCore
import MillraceEngine
import MillraceGraph
import MillraceTesting
import Testing

@Suite("A program that sends and takes packets", .timeLimit(.minutes(10)))
struct SourceAndSinkTests {
  private func ramp(_ count: Int, from first: Int = 0) -> [Int16] {
    (first..<first + count).map { Int16(truncatingIfNeeded: $0) }
  }

  @Test("gets back every sample it sent, in packets of one frame, whatever the lengths of its sends")
  func cutsPCM() async throws {
    let run = try GraphDescription.ends(["rate": 16_000, "frame": 20]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    run.start()
    let packets = Task { await bot.all() }
    var sent = 0
    for length in [1, 319, 320, 7, 1_000, 0, 640, 33] {
      try await mic.send(ramp(length, from: sent))
      sent += length
    }
    mic.finish()
    let got = await packets.value
    #expect(got.flatMap { $0.samples(of: Int16.self) } == ramp(sent))
    #expect(got.dropLast().allSatisfy { $0.sampleCount == 320 })
    #expect(got.last?.sampleCount == sent % 320)
    #expect(got.map(\.position) == got.indices.map { Int64($0 * 320) })
    #expect(got.map(\.time) == got.indices.map { .milliseconds(20 * $0) })
    #expect(got.allSatisfy { $0.format == .pcm(rate: 16_000, channels: 1, sample: .s16) && $0.flags == [] })
    #expect(await run.wait().failure == nil)
  }

  @Test("waits for room: what is more than queues and links hold arrives whole")
  func waits() async throws {
    let run = try GraphDescription.ends(["capacity": 2], ["capacity": 1]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    run.start()
    let samples = ramp(320 * 500 + 10)
    let sending = Task {
      try await mic.send(samples)
      mic.finish()
    }
    #expect(await bot.allSamples() == samples)
    try await sending.value
    #expect(mic.droppedCount == 0 && bot.droppedCount == 0)
  }

  @Test("sends from several tasks: each send arrives as a whole")
  func concurrentSends() async throws {
    let run = try GraphDescription.ends(["capacity": 2], ["capacity": 2]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    run.start()
    let reading = Task { await bot.allSamples() }
    await withTaskGroup(of: Void.self) { group in
      for sender in 0..<8 {
        group.addTask {
          for _ in 0..<10 { try? await mic.send([Int16](repeating: Int16(sender), count: 960)) }
        }
      }
    }
    mic.finish()
    let got = await reading.value
    #expect(got.count == 8 * 10 * 960)
    for start in stride(from: 0, to: got.count, by: 960) {
      #expect(Set(got[start..<start + 960]).count == 1)
    }
  }

  @Test("may send from many tasks and threads at once without waiting: what is lost is counted")
  func concurrentTrySends() async throws {
    let run = try GraphDescription.ends(["capacity": 4, "whenFull": "dropNewest"]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    run.start()
    let reading = Task { await bot.all().count }
    let queued = await withTaskGroup(of: SendResult.self) { group in
      for _ in 0..<8 {
        group.addTask {
          var sum = SendResult()
          for _ in 0..<500 {
            guard let result = try? mic.trySend([Int16](repeating: 1, count: 320)) else { continue }
            sum.queued += result.queued
            sum.dropped += result.dropped
          }
          return sum
        }
      }
      return await group.reduce(into: SendResult()) {
        $0.queued += $1.queued
        $0.dropped += $1.dropped
      }
    }
    mic.finish()
    #expect(await reading.value == queued.queued)
    #expect(queued.queued + queued.dropped == 4_000)
    #expect(mic.droppedCount == queued.dropped)
  }

  @Test("loses the newest when it does not wait and the queue is full, and what follows keeps its place")
  func drops() async throws {
    let run = try GraphDescription.ends(["capacity": 3]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    // Nothing takes them before the start.
    #expect(try mic.trySend(ramp(320 * 5)) == SendResult(queued: 3, dropped: 2))
    #expect(mic.droppedCount == 2)
    run.start()
    let first = [await bot.next(), await bot.next(), await bot.next()].compactMap(\.self)
    #expect(first.map(\.position) == [0, 320, 640])
    try await mic.send(ramp(320))
    mic.finish()
    let rest = await bot.all()
    #expect(rest.map(\.position) == [320 * 5])
    #expect(rest.map(\.isDiscontinuous) == [true])
  }

  @Test("marks the end of an utterance on its last packet, which may be short or empty")
  func endsUtterances() async throws {
    let run = try GraphDescription.ends().prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    try await mic.send(ramp(400), endsUtterance: true)
    try await mic.send(ramp(320), endsUtterance: true)
    try await mic.send([Int16](), endsUtterance: true)
    mic.finish()
    run.start()
    let got = await bot.all()
    #expect(got.map(\.sampleCount) == [320, 80, 320, 0])
    #expect(got.map(\.endsUtterance) == [false, true, true, true])
  }

  @Test("sends text, events and bytes, a packet each", arguments: ["text", "event", "jpeg", "aac"])
  func packets(format: String) async throws {
    let run = try GraphDescription.ends(["format": .string(format)]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    run.start()
    for text in ["one", "two", "drei"] {
      if format == "text" || format == "event" {
        try await mic.send(text)
      } else {
        try await mic.send(Array(text.utf8))
      }
    }
    mic.finish()
    let got = await bot.all()
    #expect(got.map(\.text) == ["one", "two", "drei"])
    #expect(got.allSatisfy { $0.format.kind.rawValue == format })
  }

  @Test("sends streams cut into packets that their format allows anywhere")
  func streams() async throws {
    let run = try GraphDescription.ends(["format": "mp3", "maxBytes": 100]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    run.start()
    let bytes = (0..<250).map { UInt8($0) }
    try await mic.send(bytes)
    mic.finish()
    let got = await bot.all()
    #expect(got.map(\.bytes.count) == [100, 100, 50])
    #expect(got.flatMap(\.bytes) == bytes)
  }

  @Test("sends Opus packets, which have the length their first byte says")
  func opus() async throws {
    let run = try GraphDescription.ends(["format": "opus", "rate": 48_000]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    run.start()
    // 20 ms CELT; two frames of 60 ms SILK; three frames of 10 ms hybrid.
    for bytes in [[0xF8, 1], [0x19, 1, 1], [0x63, 3, 1]] as [[UInt8]] { try await mic.send(bytes) }
    mic.finish()
    let got = await bot.all()
    #expect(got.map(\.sampleCount) == [960, 5_760, 1_440])
    #expect(got.map(\.position) == [0, 960, 6_720])
  }
}

extension SendResult {
  init(queued: Int, dropped: Int) {
    self.init()
    self.queued = queued
    self.dropped = dropped
  }
}
