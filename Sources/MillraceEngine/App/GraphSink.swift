public import MillraceCore

/// The program's way out of a graph: what reaches a node of type `app.sink`.
///
/// ```swift
/// let bot = try run.sink("bot")
/// for await packet in bot.packets { speaker.play(packet.samples(of: Int16.self)) }
/// ```
///
/// The node queues up to `capacity` packets. Then it takes no more from its link, and the link's own policy decides and counts: a graph whose
/// sources can wait is held back, a live one drops. While the program has no handle, or no longer, a full queue drops what comes, so that
/// a sink nobody reads holds nothing up. An interruption drops what is queued of the reply.
///
/// Any thread. Several tasks may read: each packet goes to one of them.
public final class GraphSink: Sendable {
  private let channel: SinkChannel

  init(_ channel: SinkChannel) {
    self.channel = channel
    channel.open()
  }

  deinit { channel.close() }

  /// What its packets carry.
  public var format: Format { channel.format }

  /// The name of its node.
  public var node: String { channel.node }

  /// Packets that were dropped since the run was prepared because the queue was full and had no reader. Any thread.
  public var droppedCount: Int { channel.droppedCount }

  /// The packets, one after the other, until the run has stopped. Iterators share them.
  public var packets: GraphPackets { GraphPackets(self) }

  /// The next packet; waits for one. nil when nothing more comes, or the task was cancelled.
  nonisolated(nonsending) public func next() async -> GraphPacket? { await channel.next() }

  /// The oldest packet that is queued; nil when none is. Never waits.
  public func tryNext() -> GraphPacket? { channel.tryNext() }

  /// True when nothing is queued and nothing more comes.
  public var isOver: Bool { channel.isOver }
}

/// The packets of a sink, in order. Ends with the run, and for a task when that is cancelled.
public struct GraphPackets: AsyncSequence, Sendable {
  /// What a reader gets.
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
