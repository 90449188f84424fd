import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceTesting
import Synchronization

@testable import MillraceRTCNodes

/// An exchange, and nodes that only have an uplink or a downlink of pictures. Everything runs on the thread of the test, on the bench's
/// clock.
final class PictureStage: @unchecked Sendable {
  let exchange = RTCExchange(
    RTCExchange.Use(sendsPictures: true, seesPictures: true), events: 1_024, waker: .none)
  /// When the sound of a capture time is played.
  var playTime: (Int64) -> Nanoseconds? = { _ in nil }
  var up = PictureUplink.Counts()
  var down = PictureDownlink.Counts()
  let name: String

  static let stages = Locked<[String: PictureStage]>([:])
  private static let count = Atomic<Int>(0)

  init() {
    name = "\(Self.count.add(1, ordering: .relaxed).newValue)"
    Self.stages.withLock { $0[self.name] = self }
  }

  /// Forgets the stage: call it at the end of a test.
  func close() { Self.stages.withLock { $0[self.name] = nil } }

  static func named(_ name: String) -> PictureStage { stages.withLock { $0[name] }! }

  // MARK: The other side of the exchange

  /// A picture that was handed over to the sessions.
  struct Sent: Equatable {
    var head: (time: Nanoseconds, isKey: Bool, codec: UInt8)
    var bytes: [UInt8]
    static func == (one: Sent, other: Sent) -> Bool { one.head == other.head && one.bytes == other.bytes }
  }

  /// Takes the pictures that were handed over.
  func sent() -> [Sent] {
    var result: [Sent] = []
    while let record = exchange.pictureUp.peek() {
      if record.kind == MediaRecord.picture, let head = PictureUpHead.load(record.bytes) {
        result.append(
          Sent(
            head: (head.timestamp, head.isKey, head.codec),
            bytes: Array(record.bytes.dropFirst(PictureUpHead.byteCount))))
      }
      exchange.pictureUp.drop(record)
    }
    return result
  }

  /// Takes the commands of the node.
  func commands() -> [String] {
    var result: [String] = []
    while let record = exchange.commands.peek() {
      result.append(String(decoding: record.bytes, as: UTF8.self))
      exchange.commands.drop(record)
    }
    return result
  }

  /// Puts a picture into the queue towards the node, as a session does.
  func receive(_ bytes: [UInt8], _ head: PictureDownHead) {
    exchange.pictureDown.put(MediaRecord.picture, count: PictureDownHead.byteCount + bytes.count) { target in
      head.store(to: target)
      for index in bytes.indices { target[PictureDownHead.byteCount + index] = bytes[index] }
    }
  }

  func end(source: UInt64) {
    exchange.pictureDown.put(MediaRecord.pictureEnd, count: PictureDownHead.byteCount) { target in
      PictureDownHead.made(source: source).store(to: target)
    }
  }
}

extension PictureDownHead {
  /// A head with the usual values.
  static func made(
    source: UInt64 = 1, at milliseconds: Int64 = 0, timestamp: Int64? = nil, capture: Int64 = 0,
    codec: PictureCodec = .h264, isKey: Bool = false, isDamaged: Bool = false, followsLoss: Bool = false
  ) -> PictureDownHead {
    PictureDownHead(
      source: source, arrival: .milliseconds(milliseconds), timestamp: timestamp ?? milliseconds * 90,
      capture: capture, codec: codec.rawValue, isKey: isKey, isDamaged: isDamaged, followsLoss: followsLoss)
  }
}

/// Pictures with the first bytes that tell what they are.
enum CodedPicture {
  static func h264(isKey: Bool, _ mark: UInt8 = 0, count: Int = 0) -> [UInt8] {
    let head: [UInt8] =
      isKey ? [0, 0, 0, 1, 0x67, 1, 0, 0, 0, 1, 0x68, 2, 0, 0, 0, 1, 0x65] : [0, 0, 0, 1, 0x41]
    return head + [mark] + [UInt8](repeating: 7, count: count)
  }

  static func vp8(isKey: Bool, _ mark: UInt8 = 0) -> [UInt8] {
    isKey ? [0x10, 0, 0, 0x9D, 1, 0x2A, 64, 0, 48, 0, mark] : [0x11, 0, 0, mark]
  }
}

private let stageParameter = ParameterContract("stage", .string, default: "", text: "the stage")

/// A node with an uplink.
struct UplinkNode: ~Copyable, Node {
  static let contract = NodeContract(
    "test.pictureUp", "sends pictures",
    inputs: [PortContract("video", .kind(.h264).or(.kind(.vp8)), text: "pictures")],
    parameters: [stageParameter], events: DialogEvent.contracts, resolve: { _ in })

  private let stage: PictureStage
  private var uplink: PictureUplink

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let uplink = PictureUplink(setup.inputFormat().kind) else { throw NodeProblem("no pictures") }
    stage = PictureStage.named(setup.parameters.string("stage"))
    self.uplink = uplink
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    _ = uplink.process(&ports, input: 0, exchange: stage.exchange)
    stage.up = uplink.counts
    return .done
  }
}

/// A node with a downlink, which looks every 10 ms and when a picture is due.
struct DownlinkNode: ~Copyable, Node {
  static let contract = NodeContract(
    "test.pictureDown", "receives pictures",
    outputs: [PortContract("video", .kind(.h264).or(.kind(.vp8)), text: "pictures")],
    parameters: [
      stageParameter, ParameterContract("codec", .string, default: "h264", text: "of the output"),
    ],
    events: DialogEvent.contracts, drive: .itself,
    resolve: {
      $0.outputs["video"] = OutputShape(
        $0.parameters.string("codec") == "vp8" ? .vp8 : .h264, packetDuration: nil, packetBytes: 4_096,
        burst: 0)
    })

  private let stage: PictureStage
  private var downlink: PictureDownlink

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let shape = setup.outputs[0].shape,
      let downlink = PictureDownlink(shape.format.kind, packetBytes: shape.packetBytes)
    else { throw NodeProblem("no pictures") }
    stage = PictureStage.named(setup.parameters.string("stage"))
    self.downlink = downlink
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let (place, exchange) = (stage, stage.exchange)
    let playTime = downlink.nextCapture(exchange).flatMap { place.playTime($0) }
    let isBusy = try downlink.process(
      &ports, output: 0, exchange: exchange, playTime: playTime, at: ports.now)
    place.down = downlink.counts
    if isBusy { return .again }
    let look = ports.now + .milliseconds(10)
    ports.wake(at: min(look, downlink.due ?? look))
    return .done
  }
}
