import MillraceCore
import MillraceEngine
import MillraceGraph
import MillraceTesting
import Testing

@Suite("source and sink", .timeLimit(.minutes(10)))
struct SourceAndSinkTests {
  private func ramp(_ count: Int, from first: Int = 0) -> [Int16] {
    (first..<first + count).map { Int16(truncatingIfNeeded: $0) }
  }

  @Test("a program gets back every sample it sent, in packets of one frame, for sends of any length")
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

  @Test("a send waits for room, so more than queues and links hold arrives complete")
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

  @Test("sends from several tasks arrive one after the other, each as a whole")
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

  @Test("many tasks and threads may send at once without waiting, and every loss is counted")
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

  @Test("a send without waiting drops the newest when the queue is full, and what follows keeps its position")
  func drops() async throws {
    let run = try GraphDescription.ends(["capacity": 3]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    // Nothing takes packets before the start.
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

  @Test("the last packet of an utterance is marked, and may be short or empty")
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

  @Test("text, events and bytes are sent as one packet each", arguments: ["text", "event", "jpeg", "aac"])
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

  @Test("streams are cut into packets where their format allows it anywhere")
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

  @Test("an Opus packet has the duration that its first bytes declare")
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
