import MillraceCore
import MillraceEngine
import MillraceGraph
import MillraceTesting
import Testing

@Suite("the end of source and sink", .timeLimit(.minutes(10)))
struct AppEndTests {
  private func code(_ body: () async throws -> Void) async -> SourceProblem.Code? {
    do { try await body() } catch { return (error as? SourceProblem)?.code }
    return nil
  }

  @Test("drain ends a source that was not finished, after what was sent")
  func drains() async throws {
    let run = try GraphDescription.ends().prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    try await mic.send([Int16](repeating: 5, count: 320 * 20))
    run.start()
    run.drain()
    #expect(await bot.all().count == 20)
    #expect(try run.ended().failure == nil)
    #expect(await code { try await mic.send([1 as Int16]) } == .stopped)
  }

  @Test("stop ends a waiting send and a waiting reader")
  func stops() async throws {
    let run = try GraphDescription.ends(["capacity": 1]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    let other = try GraphDescription.ends().prepared()
    let idle = try other.sink("bot")
    run.start()
    other.start()
    let sending = Task {
      await code { while true { try await mic.send([Int16](repeating: 5, count: 3_200)) } }
    }
    let reading = Task { await idle.next() }
    _ = await bot.next()
    run.stop()
    other.stop()
    #expect(await sending.value == .stopped)
    #expect(await reading.value == nil)
    #expect(idle.isOver)
  }

  @Test("queued packets can be read after the run has stopped")
  func readsAfterwards() async throws {
    let run = try GraphDescription.ends(["format": "text"]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    run.start()
    try await mic.send("last words")
    mic.finish()
    _ = try run.ended()
    #expect(await bot.all().map(\.text) == ["last words"])
    #expect(bot.tryNext() == nil && bot.isOver)
  }

  @Test("a sink without a reader blocks nothing, and counts what it drops", arguments: [true, false])
  func unread(hasBeenOpened: Bool) async throws {
    let run = try GraphDescription.ends([:], ["capacity": 4]).prepared()
    if hasBeenOpened { _ = try run.sink("bot") }
    let mic = try run.source("mic")
    run.start()
    try await mic.send([Int16](repeating: 5, count: 320 * 1_000))
    mic.finish()
    #expect(try run.ended().failure == nil)
    #expect(try run.sink("bot").droppedCount == 996)
    #expect(try await run.sink("bot").all().count == 4)
  }

  @Test("the node no longer waits when the last handle is released")
  func goesAway() async throws {
    let run = try GraphDescription.ends([:], ["capacity": 1]).prepared()
    let mic = try run.source("mic")
    var bot: GraphSink? = try run.sink("bot")
    run.start()
    let sending = Task { try await mic.send([Int16](repeating: 5, count: 320 * 100)) }
    #expect(await bot?.next() != nil)
    bot = nil
    try await sending.value
    mic.finish()
    #expect(try run.ended().failure == nil)
  }

  @Test("a run that is never started ends its handles when it is released")
  func neverStarted() async throws {
    var run: GraphRun? = try GraphDescription.ends(["capacity": 1]).prepared()
    let (mic, bot) = (try #require(run).source("mic"), try #require(run).sink("bot"))
    let sending = Task { await code { try await mic.send([Int16](repeating: 5, count: 3_200)) } }
    let reading = Task { await bot.next() }
    run = nil
    #expect(await sending.value == .stopped)
    #expect(await reading.value == nil)
  }

  @Test("a cancelled task stops waiting: a send throws, a reader gets nil")
  func cancels() async throws {
    let run = try GraphDescription.ends(["capacity": 1]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    // Not started: nothing is taken, and nothing arrives.
    let first = Task { await code { try await mic.send([Int16](repeating: 5, count: 3_200)) } }
    let second = Task { await code { try await mic.send([Int16](repeating: 6, count: 320)) } }
    let reading = Task { await bot.next() }
    for task in [first, second] { task.cancel() }
    reading.cancel()
    #expect(await first.value == .cancelled)
    #expect([.cancelled, nil].contains(await second.value))
    #expect(await reading.value == nil)
    run.start()
    mic.finish()
    #expect(await bot.all().isEmpty == false)
  }

  @Test("several readers share the packets, and all of them end")
  func sharedReading() async throws {
    let run = try GraphDescription.ends(["format": "text"], ["capacity": 2]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    run.start()
    let reading = Task {
      await withTaskGroup(of: [String].self) { group in
        for _ in 0..<5 { group.addTask { await bot.all().map(\.text) } }
        return await group.reduce(into: []) { $0 += $1 }
      }
    }
    for number in 0..<500 { try await mic.send("\(number)") }
    mic.finish()
    #expect(await reading.value.compactMap(Int.init).sorted() == Array(0..<500))
  }

  @Test("every wrong send throws its code and a message with a cure")
  func problems() async throws {
    let run = try GraphDescription.ends().prepared()
    let mic = try run.source("mic")
    #expect(await code { try await mic.send([1.5 as Float]) } == .wrongFormat)
    #expect(await code { try await mic.send([1] as [UInt8]) } == .wrongFormat)
    do throws(SourceProblem) {
      try mic.trySend("text")
      Issue.record("text was taken for sound")
    } catch {
      #expect(
        error.text
          == "source \"mic\" carries s16 16000 Hz 1 ch, not text; send [Int16], or change the source's format"
      )
    }
    mic.finish()
    #expect(await code { try await mic.send([1] as [Int16]) } == .finished)

    let other = try GraphDescription.ends(["format": "png", "maxBytes": 10]).prepared()
    let picture = try other.source("mic")
    #expect(await code { try await picture.send([UInt8](repeating: 0, count: 11)) } == .tooLarge)
    #expect(await code { try await picture.send([UInt8](repeating: 0, count: 10)) } == nil)
  }

  @Test("a name that is not a source or sink is refused with a hint")
  func wrongNames() throws {
    let run = try GraphDescription.ends().prepared()
    #expect(throws: ControlProblem("no node is named \"mik\"; did you mean \"mic\"?", .unknownNode)) {
      try run.source("mik")
    }
    let refusal = #expect(throws: ControlProblem.self) { try run.source("bot") }
    #expect(refusal?.code == .notAppEnd)
    #expect(refusal?.text == "node \"bot\" (app.sink) is not a program source; use \"mic\"")
    #expect(throws: ControlProblem.self) { try run.sink("mic") }
  }
}
