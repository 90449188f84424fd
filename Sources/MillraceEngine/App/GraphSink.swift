public import MillraceCore

/// Reads packets from a graph: those that reach an `app.sink` node.
///
/// ```swift
/// let bot = try run.sink("bot")
/// for await packet in bot.packets { speaker.play(packet.samples(of: Int16.self)) }
/// ```
///
/// The node queues up to `capacity` packets. When the queue is full the node stops reading its link, and the link's policy takes
/// over: sources that can wait are blocked, a live graph drops and counts. While the program holds no handle, a full queue drops
/// new packets, so an unread sink blocks nothing. An interruption discards the queued packets of the reply.
///
/// Any thread. Several tasks may read: each packet goes to one of them.
public final class GraphSink: Sendable {
  private let channel: SinkChannel

  init(_ channel: SinkChannel) {
    self.channel = channel
    channel.open()
  }

  deinit { channel.close() }

  /// The format of its packets.
  public var format: Format { channel.format }

  /// The name of its node.
  public var node: String { channel.node }

  /// Packets dropped since the run was prepared because the queue was full and had no reader. Any thread.
  public var droppedCount: Int { channel.droppedCount }

  /// The packets in order, until the run has stopped. Iterators share them.
  public var packets: GraphPackets { GraphPackets(self) }

  /// The next packet; waits for one. nil at the end of the stream, or when the task was cancelled.
  nonisolated(nonsending) public func next() async -> GraphPacket? { await channel.next() }

  /// The oldest queued packet; nil when there is none. Never waits.
  public func tryNext() -> GraphPacket? { channel.tryNext() }

  /// True when nothing is queued and no more packets will arrive.
  public var isOver: Bool { channel.isOver }
}

/// The packets of a sink, in order. Ends with the run, and for a task when that is cancelled.
public struct GraphPackets: AsyncSequence, Sendable {
  /// What a reader receives.
  public typealias Element = GraphPacket
  /// Reading does not fail.
  public typealias Failure = Never

  private let sink: GraphSink

  init(_ sink: GraphSink) { self.sink = sink }

  /// Takes the packets one after the other.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let sink: GraphSink

    /// The next packet; nil at the end or when the task was cancelled.
    nonisolated(nonsending) public mutating func next() async -> GraphPacket? { await sink.next() }

    /// As `next()`; the lock makes every isolation safe.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> GraphPacket? {
      await sink.next()
    }
  }

  /// An iterator that shares the packets with all others of the sink.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(sink: sink) }
}
