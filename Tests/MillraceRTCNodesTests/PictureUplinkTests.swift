import MillraceCore
import MillraceNet
import MillraceTesting
import Testing

@testable import MillraceRTCNodes

@Suite("pictures to send") final class PictureUplinkTests {
  private let stage = PictureStage()

  deinit { stage.close() }

  private func bench(_ format: Format = .h264) throws -> NodeBench {
    stage.exchange.pictureTakers.store(1, ordering: .relaxed)
    return try NodeBench(
      UplinkNode.self, ["stage": .string(stage.name)],
      inputs: ["video": OutputShape(format, packetDuration: nil, packetBytes: 2 << 20)])
  }

  private func push(
    _ bench: NodeBench, _ bytes: [UInt8], _ position: Int64, at milliseconds: Int64? = nil,
    flags: PacketFlags = []
  ) throws {
    let time = Nanoseconds.milliseconds(milliseconds ?? position * 40)
    try bench.advance(to: max(bench.now, time))
    bench.push(CapturedPacket(bytes: bytes, timestamp: time, position: position, flags: flags))
    try bench.run()
  }

  private func requests(_ bench: NodeBench) -> Int {
    bench.events().count { $0.name == "extra" && $0.string("name") == "keyframeRequested" }
  }

  @Test(
    "a picture goes up with its time, its codec and whether it is a key frame",
    arguments: [Format.h264, .vp8])
  func whole(format: Format) throws {
    let bench = try bench(format)
    func picture(_ isKey: Bool) -> [UInt8] {
      format == .vp8 ? CodedPicture.vp8(isKey: isKey, 5) : CodedPicture.h264(isKey: isKey, 5)
    }
    try push(bench, picture(true), 0)
    try push(bench, picture(false), 1)
    let codec: UInt8 = format == .vp8 ? 2 : 1
    #expect(
      stage.sent() == [
        .init(head: (0, true, codec), bytes: picture(true)),
        .init(head: (40_000_000, false, codec), bytes: picture(false)),
      ])
    #expect(stage.up.sent == 2 && stage.up.dropped == 0 && requests(bench) == 0)
  }

  @Test("nothing goes up before a key frame, which is asked for at once and then every second")
  func beginning() throws {
    let bench = try bench()
    for index in 0..<60 { try push(bench, CodedPicture.h264(isKey: false), Int64(index)) }
    #expect(stage.sent().isEmpty && stage.up.dropped == 60)
    // At 0, 1,000 and 2,000 ms.
    #expect(requests(bench) == 3)
    try push(bench, CodedPicture.h264(isKey: true), 60)
    try push(bench, CodedPicture.h264(isKey: false), 61)
    #expect(stage.sent().map(\.head.isKey) == [true, false])
  }

  @Test("pictures that nobody takes are dropped, and a peer that comes gets a key frame first")
  func noTakers() throws {
    let bench = try bench()
    stage.exchange.pictureTakers.store(0, ordering: .relaxed)
    try push(bench, CodedPicture.h264(isKey: true), 0)
    try push(bench, CodedPicture.h264(isKey: false), 1)
    #expect(stage.sent().isEmpty && stage.up.dropped == 2 && requests(bench) == 0)
    stage.exchange.pictureTakers.store(2, ordering: .relaxed)
    try push(bench, CodedPicture.h264(isKey: false), 2)
    #expect(stage.sent().isEmpty && requests(bench) == 1)
    try push(bench, CodedPicture.h264(isKey: true), 3)
    #expect(stage.sent().count == 1)
  }

  @Test("no key frame is asked for while those who are there take sound only")
  func soundOnly() throws {
    let bench = try bench()
    stage.exchange.takers.store(3, ordering: .relaxed)
    stage.exchange.pictureTakers.store(0, ordering: .relaxed)
    for index in 0..<60 { try push(bench, CodedPicture.h264(isKey: false), Int64(index)) }
    #expect(stage.sent().isEmpty && stage.up.dropped == 60 && requests(bench) == 0)
  }

  @Test("without room pictures are dropped up to a key frame, and no partial one is sent")
  func noRoom() throws {
    let bench = try bench()
    try push(bench, CodedPicture.h264(isKey: true, count: 900_000), 0)
    for index in 1..<8 { try push(bench, CodedPicture.h264(isKey: false, count: 900_000), Int64(index)) }
    #expect(stage.up.withoutRoom == 1 && requests(bench) == 1)
    let first = stage.sent()
    #expect(first.count + stage.up.dropped == 8 && first.allSatisfy { $0.bytes.count > 900_000 })
    try push(bench, CodedPicture.h264(isKey: false), 8)
    #expect(stage.sent().isEmpty)
    try push(bench, CodedPicture.h264(isKey: true), 9)
    try push(bench, CodedPicture.h264(isKey: false), 10)
    #expect(stage.sent().count == 2)
  }

  @Test("a picture that is too large is refused with a message, once in ten seconds")
  func tooLarge() throws {
    let bench = try bench()
    for index in 0..<3 {
      try push(bench, CodedPicture.h264(isKey: true, count: 1 << 20), Int64(index))
    }
    #expect(stage.sent().isEmpty && stage.up.tooLarge == 3)
    let errors = bench.events().filter { $0.name == "error" }
    #expect(errors.count == 1)
    #expect(
      errors.first?.string("text")
        == "an encoded picture has more than 1048576 bytes and was dropped; lower the encoder's bitrate or size"
    )
    #expect(errors.first?.number("bytes") ?? 0 > 1_048_576)
    try push(bench, CodedPicture.h264(isKey: false), 3)
    #expect(stage.sent().isEmpty)
  }

  @Test(
    "after a gap a key frame comes first",
    arguments: [(3, []), (2, .discontinuity), (2, .lost)] as [(Int64, PacketFlags)])
  func gap(position: Int64, flags: PacketFlags) throws {
    let bench = try bench()
    try push(bench, CodedPicture.h264(isKey: true), 0)
    try push(bench, CodedPicture.h264(isKey: false), 1)
    try push(bench, CodedPicture.h264(isKey: false), position, flags: flags)
    #expect(stage.sent().count == 2 && requests(bench) == 1)
    try push(bench, CodedPicture.h264(isKey: true), position + 1)
    #expect(stage.sent().count == 1)
  }

  @Test("an empty packet is ignored, and positions that do not count are no gap")
  func empty() throws {
    let bench = try bench()
    try push(bench, CodedPicture.h264(isKey: true), 0)
    try push(bench, [], 0, at: 40)
    try push(bench, CodedPicture.h264(isKey: false), 0, at: 80)
    #expect(stage.sent().count == 2 && requests(bench) == 0)
  }
}
