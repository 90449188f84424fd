import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceService
import MillraceTesting
import Testing

/// A node, its service's wire and the clock of both, on one thread: nothing here waits.
@Suite("Images and files of a service") final class ServiceImageTests {
  private let stage = ParrotStage()
  private let name = RandomID.uuid()

  deinit { ParrotStage.stages.withLock { $0[name] = nil } }

  /// A node that listens.
  private func bench(outputs: [String] = ["audio", "image", "file", "events"]) throws -> NodeBench {
    ParrotStage.stages.withLock { $0[name] = stage }
    let bench = try NodeBench(
      ParrotNode.self, ["stage": .string(name)],
      inputs: [
        "image": OutputShape(.jpeg, packetDuration: nil, packetBytes: 65_536),
        "file": OutputShape(.text, packetDuration: nil, packetBytes: 65_536),
        "control": OutputShape(.event, packetDuration: nil, packetBytes: 65_536),
      ],
      outputs: outputs)
    try turn(bench)
    stage.wire.arrives(.opened)
    stage.wire.arrives(.message(.ready))
    try turn(bench)
    _ = bench.events()
    return bench
  }

  /// Lets the node and the connection do what they can, at this moment.
  private func turn(_ bench: NodeBench) throws {
    for _ in 0..<12 {
      try run(bench)
      stage.clock.advance(by: 0)
    }
    try run(bench)
  }

  private func run(_ bench: NodeBench) throws {
    while try bench.run(calls: 1) > 0 {
      if bench.requests.contains(.interrupt) { bench.interrupt() }
    }
  }

  /// Bytes that begin as a JPEG does, and of which no two pieces are alike.
  private func jpeg(_ count: Int) -> [UInt8] {
    [0xFF, 0xD8] + (2..<count).map { UInt8(truncatingIfNeeded: $0 * 7 + $0 >> 8) }
  }

  private func errors(_ bench: NodeBench) -> [String] {
    bench.events().filter { $0.name == "error" }.map { event in
      ["category", "scope", "text"].map { event.string($0) ?? "" }.joined(separator: ", ")
    }
  }

  // MARK: To the service

  @Test("an image that the endpoint holds is sent when the session says so, and the latest counts")
  func held() throws {
    stage.holdsImages = true
    let bench = try bench()
    for byte in [1, 2] as [UInt8] {
      bench.push(bytes: [byte], to: "image")
      try turn(bench)
    }
    #expect(stage.wire.sent == ["image [1]", "image [2]"])
    bench.push(bytes: [UInt8](repeating: 1, count: 1_001), to: "image")
    try turn(bench)
    #expect(stage.wire.sent.count == 2)
    #expect(
      errors(bench) == ["request, command, image discarded: 1001 bytes exceed the limit of 1000"])
  }

  @Test("a path at the input is a command, and one that cannot be sent is refused without repeating it")
  func fileUp() throws {
    let bench = try bench()
    // Longer than what is handed over at once.
    let long = "/" + String(repeating: "a", count: 20_000)
    bench.push(text: "/geheim/a.pdf", to: "file")
    bench.push(text: "geheim", to: "file")
    bench.push(text: long, to: "file")
    try turn(bench)
    #expect(stage.wire.sent == [#"say("file /geheim/a.pdf")"#, "say(\"file \(long)\")"])
    #expect(errors(bench) == ["request, command, file not sent: the path is not absolute"])
  }

  @Test("a service that says nothing of files takes none")
  func noFiles() {
    var endpoint = PlainEndpoint()
    #expect(endpoint.command(forFile: "/a") == .refuse("the service takes no files"))
    #expect(endpoint.command(forImage: [0xFF, 0xD8]) == .refuse("the service takes no images"))
    #expect(endpoint.problem(withImage: [0xFF, 0xD8, 0xFF]) == nil)
    #expect(endpoint.problem(withImage: [0x89, 0x50]) == "the image is not a JPEG")
  }

  // MARK: From the service

  @Test(
    "an image arrives as one packet, however large",
    arguments: [2, 16_383, 16_384, 16_385, 32_768, 65_536, 100_000])
  func imageDown(count: Int) throws {
    let bench = try bench()
    let (first, second) = (jpeg(count), jpeg(3))
    stage.wire.arrives(.image(first))
    stage.wire.arrives(.image(second))
    try turn(bench)
    #expect(bench.packets("image").map(\.bytes) == [first, second])
    #expect(bench.events().isEmpty)
  }

  @Test("what is no JPEG or too large for the output is discarded and reported, and the next arrives")
  func unfit() throws {
    let bench = try bench()
    stage.wire.arrives(.image(jpeg(100_001)))
    stage.wire.arrives(.image([]))
    stage.wire.arrives(.image([1, 2, 3]))
    stage.wire.arrives(.image(jpeg(5)))
    try turn(bench)
    #expect(bench.packets("image").map(\.bytes) == [jpeg(5)])
    #expect(
      errors(bench) == [
        "internal, reply, an image of 100001 bytes exceeds the limit of 100000; it is discarded",
        "internal, reply, the image is not a JPEG; it is discarded",
        "internal, reply, the image is not a JPEG; it is discarded",
      ])
  }

  @Test("an image that the session does not deliver, or that no output takes, leaves no trace")
  func undelivered() throws {
    stage.refusesImages = true
    let silent = try bench()
    stage.wire.arrives(.image(jpeg(50)))
    try turn(silent)
    #expect(silent.packets("image").isEmpty && silent.events().isEmpty)
    stage.refusesImages = false
    let unlinked = try bench(outputs: ["audio", "events"])
    for _ in 0..<40 { stage.wire.arrives(.image(jpeg(1 << 20))) }
    stage.wire.arrives(.message(.file("/a")))
    stage.wire.arrives(.audio([1, 0]))
    try turn(unlinked)
    #expect(!stage.wire.isPaused && unlinked.events().isEmpty && unlinked.int16("audio") == [1])
  }

  @Test("an output without room for images holds up neither audio nor events, and reading pauses in the end")
  func backPressure() throws {
    let bench = try bench()
    bench.hold("image")
    let image = jpeg(100_000)
    for _ in 0..<20 { stage.wire.arrives(.image(image)) }
    stage.wire.arrives(.audio([1, 0]))
    stage.wire.arrives(.message(.events(3)))
    try turn(bench)
    #expect(bench.int16("audio") == [1] && bench.events().count == 3)
    #expect(!stage.wire.isPaused)
    for _ in 0..<180 { stage.wire.arrives(.image(image)) }
    try turn(bench)
    #expect(stage.wire.isPaused)
    bench.release("image")
    var images: [[UInt8]] = []
    for _ in 0..<10_000 where images.count < 200 {
      try turn(bench)
      images += bench.packets("image").map(\.bytes)
    }
    #expect(images.count == 200 && images.allSatisfy { $0 == image })
    #expect(!stage.wire.isPaused && stage.wire.pauses == 1)
  }

  @Test("the cancellation of a reply leaves its images")
  func cancelled() throws {
    let bench = try bench()
    bench.interrupt()
    try turn(bench)
    bench.hold("image")
    stage.wire.arrives(.image(jpeg(60_000)))
    stage.wire.arrives(.image(jpeg(70_000)))
    try turn(bench)
    stage.wire.arrives(.message(.cancel))
    try turn(bench)
    bench.interrupt()
    try turn(bench)
    bench.release("image")
    try turn(bench)
    #expect(bench.packets("image").map(\.bytes) == [jpeg(60_000), jpeg(70_000)])
  }

  @Test("every image is delivered before the end of the session")
  func endIsLast() throws {
    let bench = try bench()
    bench.hold("image")
    for _ in 0..<40 { stage.wire.arrives(.image(jpeg(90_000))) }
    try turn(bench)
    bench.push(text: #"{"command":"hangUp"}"#, to: "control")
    try turn(bench)
    #expect(!bench.hasEnded)
    bench.release("image")
    for _ in 0..<100 where !bench.hasEnded { try turn(bench) }
    #expect(
      bench.hasEnded && bench.packets("image").map(\.bytes.count) == [Int](repeating: 90_000, count: 40))
  }

  @Test(
    "the path of a received file comes between the events before and after it; one that is too long is reported"
  )
  func fileDown() throws {
    let bench = try bench()
    stage.wire.arrives(.message(.file("/cache/a.pdf")))
    stage.wire.arrives(.message(.file("/" + String(repeating: "a", count: 1_024))))
    try turn(bench)
    #expect(bench.texts("file") == ["/cache/a.pdf"])
    #expect(
      errors(bench) == [
        "internal, reply, the path of a received file has 1025 bytes, more than the limit of 1024; it is not emitted"
      ])
    bench.hold("file")
    for _ in 0..<40 { stage.wire.arrives(.message(.file("/b"))) }
    stage.wire.arrives(.message(.events(1)))
    try turn(bench)
    #expect(bench.events().isEmpty)
    bench.release("file")
    try turn(bench)
    #expect(bench.texts("file") == [String](repeating: "/b", count: 40) && bench.events().count == 1)
  }

  @Test(
    "images and files allocate nothing on the node's thread",
    .enabled(if: HeapScope.isCounting, "\(HeapScope.skipReason)"))
  func heap() throws {
    stage.holdsImages = true
    let bench = try bench()
    for _ in 0..<2 {
      bench.resetHeapRequests()
      bench.push(bytes: jpeg(900), to: "image")
      bench.push(text: "/a", to: "file")
      stage.wire.arrives(.image(jpeg(100_000)))
      stage.wire.arrives(.message(.file("/b")))
      try turn(bench)
    }
    #expect(bench.heapRequests == 0)
    #expect(bench.packets("image").count == 2 && bench.texts("file").count == 2)
  }
}

/// An endpoint with nothing of its own.
private struct PlainEndpoint: ServiceEndpoint {
  static let vendor = "plain"
  mutating func open(
    on loop: NetLoop, _ receive: @escaping @Sendable (ServiceEvent<ParrotMessage>) -> Void
  ) -> ParrotWire { ParrotWire(ManualServiceClock(), receive) }
  mutating func send(_ request: ParrotRequest, from session: ParrotSession, over wire: ParrotWire) -> Bool {
    true
  }
  mutating func use(_ credential: String) {}
}
