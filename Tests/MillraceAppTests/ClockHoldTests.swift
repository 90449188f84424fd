import MillraceGraph
import Testing

@testable import MillraceCore

/// Which channels hold a virtual clock, when the program acts while the worker decides whether time may advance.
@Suite("Channels that hold a virtual clock")
struct ClockHoldTests {
  private final class NoWake: RemoteWake {
    override func wake(_ index: Int) {}
  }

  private let place = AppChannel.Place(
    node: "mic", cells: NoWake(), cell: 0, replies: ReplyCounter(), resumer: TaskResumer())
  private let shape = OutputShape.pcm(rate: 16_000, channels: 1, sample: .s16, frames: 320)

  /// Calls the node's side: true when there was a packet.
  private func takes(_ channel: SourceChannel) -> Bool {
    if channel.take(generation: 0) != nil { return true }
    return false
  }

  @Test("what was sent, or the end, releases the clock only when the node has seen it")
  func source() throws {
    let channel = SourceChannel(place, shape: shape, settings: SourceSettings(capacity: 4))
    #expect(!channel.holdsClock, "the node has not been called yet")
    #expect(!takes(channel))
    #expect(channel.holdsClock)
    try [UInt8](repeating: 0, count: 640).withUnsafeBytes {
      _ = try channel.trySend($0, .int16, ends: false)
    }
    #expect(channel.holdsClock, "the node has not been woken yet")
    #expect(takes(channel))
    #expect(!channel.holdsClock)
    #expect(!takes(channel))
    channel.finish()
    #expect(channel.holdsClock, "the node has not been woken yet")
    #expect(channel.isOver && !channel.holdsClock)
  }

  @Test("room in a full queue releases the clock only when the node has seen it")
  func sink() {
    let channel = SinkChannel(place, shape: shape, capacity: 1)
    channel.open()
    let pool = BlockPool(blockBytes: 640, blockCount: 1)
    guard let block = pool.take() else { preconditionFailure("the pool is new") }
    let packet = Packet(block, byteCount: 640)
    while channel.room() == .free { channel.put(packet) }
    #expect(channel.holdsClock)
    while channel.tryNext() != nil {}
    #expect(channel.holdsClock, "the node has not been woken yet")
    #expect(channel.room() == .free && !channel.holdsClock)
    while channel.room() == .free { channel.put(packet) }
    channel.end()
    #expect(!channel.holdsClock, "the node has ended")
  }
}
