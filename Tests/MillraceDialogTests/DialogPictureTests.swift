import Foundation
import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceTesting
import Testing

private let events = OutputShape(.event, packetDuration: nil, packetBytes: 448)
private let pictures = OutputShape(.jpeg, packetDuration: nil, packetBytes: 135_000)
private let request = #"{"time":1.0,"node":"bot","event":"command","name":"visual_qa","payload":[]}"#

@Suite("dialog.picture") struct DialogPictureTests {
  private func bench(_ parameters: [String: ParameterValue] = [:]) throws -> NodeBench {
    try NodeBench(DialogPicture.self, parameters, inputs: ["in": pictures, "service": events])
  }

  /// The bytes of the image in a question.
  private func picture(_ question: String) throws -> [UInt8] {
    let json = try JSONValue(parsing: question)
    let text = try #require(json["images"]?.array?.first?["base64"]?.string)
    return Array(try #require(Data(base64Encoded: text)))
  }

  @Test("an image that declares too many pixels is discarded, and a row of them is reported once")
  func tooLarge() throws {
    let bench = try bench(["maxPixels": 10_000])
    func jpeg(_ side: UInt8) -> [UInt8] { [0xFF, 0xD8, 0xFF, 0xC0, 0, 17, 8, 0, side, 0, side, 3, 0, 0, 0] }
    for side in [UInt8(100), 101, 102] { bench.push(bytes: jpeg(side), to: "in") }
    bench.push(text: request, to: "service")
    try bench.run()
    #expect(try picture(try #require(bench.texts("control").first)) == jpeg(100))
    bench.push(bytes: jpeg(99), to: "in")
    bench.push(bytes: jpeg(200), to: "in")
    try bench.run()
    let reports = bench.events().filter { $0.name == "tooLarge" }
    #expect(reports.map { [$0.number("width"), $0.number("height")] } == [[101, 101], [200, 200]])
    #expect(bench.close() == [])
  }

  @Test(
    "a request is answered with the latest image, complete, whatever its length",
    arguments: [1, 2, 3, 134_999])
  func shows(length: Int) throws {
    let bench = try bench(["text": "what is \"this\"?"])
    let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) }
    bench.push(bytes: [0xFF, 0xD8], to: "in")
    bench.push(bytes: bytes, to: "in")
    try bench.run()
    #expect(bench.texts("control").isEmpty, "no request yet")
    bench.push(text: request, to: "service")
    try bench.run()
    let question = try #require(bench.texts("control").first)
    #expect(try picture(question) == bytes)
    let json = try JSONValue(parsing: question)
    #expect(json["command"]?.string == "ask" && json["text"]?.string == "what is \"this\"?")
    #expect(bench.events().first { $0.name == "shown" }?.number("bytes") == Double(length))
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test("two requests get the image twice; without an image the request is reported")
  func twice() throws {
    let bench = try bench()
    bench.push(text: request, to: "service")
    try bench.run()
    #expect(bench.events().map(\.name) == ["noPicture"] && bench.texts("control").isEmpty)
    bench.push(bytes: [1, 2, 3, 4], to: "in")
    try bench.run()
    for _ in 0..<2 { bench.push(text: request, to: "service") }
    try bench.run()
    #expect(try bench.texts("control").map(picture) == [[1, 2, 3, 4], [1, 2, 3, 4]])
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test("other commands and other events request nothing")
  func others() throws {
    let bench = try bench()
    bench.push(bytes: [1], to: "in")
    for text in [
      #"{"event":"command","name":"visual_qa2"}"#, #"{"event":"command","name":"open_videochat"}"#,
      #"{"event":"state","name":"visual_qa"}"#, #"{"event":"transcript","text":"command visual_qa"}"#,
      "no json",
    ] {
      bench.push(text: text, to: "service")
    }
    try bench.run()
    #expect(bench.texts("control").isEmpty && bench.events().isEmpty)
    let other = try self.bench(["command": "open_videochat"])
    other.push(bytes: [1], to: "in")
    other.push(text: #"{"event":"command","name":"open_videochat"}"#, to: "service")
    try other.run()
    #expect(other.texts("control").count == 1)
    for bench in [bench, other] {
      try bench.finish()
      #expect(bench.close() == [])
    }
  }

  @Test("the output has room for the largest image, and needs little without an image input")
  func room() throws {
    #expect(try bench().shape("control").packetBytes >= 180_000)
    let alone = try NodeBench(DialogPicture.self, inputs: ["service": events])
    #expect(alone.shape("control").packetBytes < 1_000)
  }
}
