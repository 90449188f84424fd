import MillraceCore
import MillraceNet
import MillraceTesting
import Testing

@testable import MillraceRTCNodes

@Suite("pictures received") final class PictureDownlinkTests {
  private let stage = PictureStage()

  deinit { stage.close() }

  private func bench(_ codec: String = "h264") throws -> NodeBench {
    try NodeBench(DownlinkNode.self, ["stage": .string(stage.name), "codec": .string(codec)])
  }

  /// Time passes up to when the picture arrives.
  private func receive(_ bench: NodeBench, _ head: PictureDownHead, _ mark: UInt8 = 0) throws {
    try bench.advance(to: max(bench.now, head.arrival))
    let bytes =
      head.codec == PictureCodec.vp8.rawValue
      ? CodedPicture.vp8(isKey: head.isKey, mark) : CodedPicture.h264(isKey: head.isKey, mark)
    stage.receive(bytes, head)
    try bench.advance(by: .milliseconds(10))
  }

  private func marks(_ packets: [CapturedPacket]) -> [UInt8] { packets.map { $0.bytes.last ?? 255 } }

  @Test("without sound a picture leaves at once, whole and with its flags")
  func atOnce() throws {
    let bench = try bench()
    try receive(bench, .made(at: 0, isKey: true), 1)
    try receive(bench, .made(at: 40), 2)
    let packets = bench.packets("video")
    #expect(packets.map(\.bytes) == [CodedPicture.h264(isKey: true, 1), CodedPicture.h264(isKey: false, 2)])
    #expect(packets.map(\.position) == [0, 1] && packets.map(\.flags) == [.key, []])
    #expect(packets.map { $0.timestamp / 1_000_000 } == [0, 40])
    #expect(stage.down.delivered == 2 && stage.commands().isEmpty)
  }

  @Test("timestamps follow the sender's clock, not the delays of the network")
  func jitter() throws {
    let bench = try bench()
    for (index, delay) in [Int64(0), 25, 3, 30, 0].enumerated() {
      let due = Int64(index) * 40
      try receive(bench, .made(at: due + delay, timestamp: due * 90, isKey: index == 0))
    }
    #expect(bench.packets("video").map { $0.timestamp / 1_000_000 } == [0, 40, 80, 120, 160])
  }

  @Test("a picture waits for its sound, and those behind it wait too")
  func lipSync() throws {
    let bench = try bench()
    // Sound is played 120 ms after the pictures of its time arrive.
    stage.playTime = { .milliseconds($0 / 1_000_000 + 120) }
    for index in 0..<4 {
      let time = Int64(index) * 40
      try receive(
        bench, .made(at: time, capture: .milliseconds(time + 1), isKey: index == 0), UInt8(index))
    }
    // It is 130 ms now.
    #expect(marks(bench.packets("video")) == [0])
    try bench.advance(to: .milliseconds(160))
    #expect(bench.packets("video").isEmpty)
    try bench.advance(to: .milliseconds(161))
    let second = bench.packets("video")
    #expect(marks(second) == [1] && second[0].timestamp == .milliseconds(161))
    try bench.advance(to: .milliseconds(400))
    let rest = bench.packets("video")
    #expect(marks(rest) == [2, 3] && rest.map { $0.timestamp / 1_000_000 } == [201, 241])
  }

  @Test("no picture waits for longer than half a second, and waits do not add up")
  func longest() throws {
    let bench = try bench()
    stage.playTime = { _ in .milliseconds(60_000) }
    for index in 0..<5 {
      try receive(bench, .made(at: Int64(index) * 40, capture: 1, isKey: index == 0), UInt8(index))
    }
    try bench.advance(to: .milliseconds(499))
    #expect(bench.packets("video").isEmpty)
    try bench.advance(to: .milliseconds(500))
    #expect(marks(bench.packets("video")) == [0])
    try bench.advance(to: .milliseconds(660))
    #expect(marks(bench.packets("video")) == [1, 2, 3, 4])
  }

  @Test("a late picture is not held back, and times grow")
  func late() throws {
    let bench = try bench()
    stage.playTime = { _ in .milliseconds(20) }
    for index in 0..<3 {
      try receive(bench, .made(at: Int64(index) * 40 + 30, capture: 1, isKey: index == 0), UInt8(index))
    }
    let packets = bench.packets("video")
    #expect(marks(packets) == [0, 1, 2])
    #expect(zip(packets, packets.dropFirst()).allSatisfy { $0.timestamp < $1.timestamp })
  }

  @Test(
    "nothing leaves before a key frame, which is asked for every 500 ms",
    arguments: [PictureCodec.h264, .vp8])
  func beginning(codec: PictureCodec) throws {
    let bench = try bench(codec == .vp8 ? "vp8" : "h264")
    for index in 0..<26 { try receive(bench, .made(at: Int64(index) * 40, codec: codec)) }
    #expect(bench.packets("video").isEmpty && stage.down.dropped == 26)
    // At 10 and 530 ms; the bench stands at 1,010.
    let commands = stage.commands()
    #expect(
      commands.count == 2
        && commands[0] == #"{"command":"extra","name":"requestKeyFrame","payload":{"medium":0}}"#)
    try receive(bench, .made(at: 1_100, codec: codec, isKey: true, isDamaged: true))
    #expect(bench.packets("video").isEmpty)
    try receive(bench, .made(at: 1_140, codec: codec, isKey: true))
    #expect(bench.packets("video").count == 1)
  }

  @Test("a key frame is asked for of the medium in which the picture came", arguments: [UInt8(7), 42, 253])
  func medium(_ medium: UInt8) throws {
    let bench = try bench()
    var head = PictureDownHead.made()
    head.medium = medium
    try receive(bench, head)
    #expect(
      stage.commands() == [#"{"command":"extra","name":"requestKeyFrame","payload":{"medium":\#(medium)}}"#])
  }

  @Test(
    "a damaged picture or one behind a loss: H.264 is marked, VP8 dropped up to a key frame",
    arguments: [false, true])
  func damage(isDamaged: Bool) throws {
    for (codec, name) in [(PictureCodec.h264, "h264"), (.vp8, "vp8")] {
      let stage = PictureStage()
      defer { stage.close() }
      let bench = try NodeBench(DownlinkNode.self, ["stage": .string(stage.name), "codec": .string(name)])
      func receive(_ head: PictureDownHead) throws {
        try bench.advance(to: head.arrival)
        stage.receive(
          codec == .vp8 ? CodedPicture.vp8(isKey: head.isKey) : CodedPicture.h264(isKey: head.isKey), head)
        try bench.advance(by: .milliseconds(10))
      }
      try receive(.made(at: 0, codec: codec, isKey: true))
      try receive(.made(at: 40, codec: codec, isDamaged: isDamaged, followsLoss: !isDamaged))
      try receive(.made(at: 80, codec: codec))
      try receive(.made(at: 120, codec: codec, isKey: true))
      let packets = bench.packets("video")
      if codec == .h264 {
        #expect(packets.map { $0.flags.contains(.discontinuity) } == [false, true, false, false])
        #expect(packets.map(\.position) == [0, 2, 3, 4] && stage.commands().isEmpty)
      } else {
        #expect(packets.map { $0.flags.contains(.discontinuity) } == [false, true])
        #expect(packets.map(\.position) == [0, 2] && stage.commands().count == 1)
      }
    }
  }

  @Test("another codec than the output's is refused with the cure, once in ten seconds")
  func wrongCodec() throws {
    let bench = try bench()
    for index in 0..<300 { try receive(bench, .made(at: Int64(index) * 40, codec: .vp8, isKey: true)) }
    #expect(bench.packets("video").isEmpty && stage.down.refused == 300)
    let texts = bench.events().map { $0.string("text") }
    let text = "the peer sends VP8, but \"video\" carries H.264; set \"videoCodec\" to \"vp8\""
    #expect(texts == [text, text])
  }

  @Test("a picture larger than the output's packets is refused with a message, and a key frame asked for")
  func tooLarge() throws {
    let bench = try bench()
    stage.receive(CodedPicture.h264(isKey: true, count: 5_000), .made(isKey: true))
    try bench.advance(by: .milliseconds(10))
    #expect(bench.packets("video").isEmpty && stage.down.refused == 1)
    #expect(bench.events().first?.number("bytes") ?? 0 > 5_000)
    #expect(stage.commands().count == 1)
  }

  @Test("one source is shown; another takes its place when it has ended, or after three seconds of silence")
  func sources() throws {
    let bench = try bench()
    try receive(bench, .made(source: 1, at: 0, isKey: true), 1)
    try receive(bench, .made(source: 2, at: 20, isKey: true), 2)
    try receive(bench, .made(source: 1, at: 40), 3)
    #expect(marks(bench.packets("video")) == [1, 3] && stage.down.others == 1)
    stage.end(source: 2)
    stage.end(source: 1)
    try receive(bench, .made(source: 2, at: 80), 4)
    #expect(bench.packets("video").isEmpty)
    try receive(bench, .made(source: 2, at: 120, isKey: true), 5)
    let next = bench.packets("video")
    #expect(marks(next) == [5] && next[0].flags == [.key, .discontinuity])
    try receive(bench, .made(source: 3, at: 3_000, isKey: true), 6)
    #expect(bench.packets("video").isEmpty)
    try receive(bench, .made(source: 3, at: 3_200, isKey: true), 7)
    #expect(marks(bench.packets("video")) == [7])
  }

  @Test("records without a head or without a picture are dropped")
  func broken() throws {
    let bench = try bench()
    for count in [0, 1, 39] {
      stage.exchange.pictureDown.put(MediaRecord.picture, count: count) { target in
        for index in 0..<count { target[index] = 0 }
      }
    }
    stage.exchange.pictureDown.put(99, count: 4) { target in for index in 0..<4 { target[index] = 1 } }
    stage.receive([], .made(isKey: true))
    try bench.advance(by: .milliseconds(10))
    #expect(stage.exchange.pictureDown.peek() == nil && bench.packets("video").isEmpty)
    try receive(bench, .made(at: 20, isKey: true), 1)
    #expect(bench.packets("video").count == 1)
    #expect(bench.close() == [])
  }

  @Test("a queue that fills up is not held for sound")
  func crowded() throws {
    let bench = try bench()
    stage.playTime = { _ in .milliseconds(60_000) }
    for index in 0..<700 {
      stage.receive(
        CodedPicture.h264(isKey: index == 0, count: 4_000),
        .made(at: 0, timestamp: Int64(index), capture: 1, isKey: index == 0))
    }
    try bench.advance(by: .milliseconds(10))
    let shown = bench.packets("video").count
    #expect(shown > 100 && shown < 300)
  }
}
