internal import MillraceCore

/// Packets between a node's link and its loudspeaker: a few, taken as they arrive, so that it is known when that was.
@safe
struct Intake: ~Copyable {
  /// Packets it holds, at most; what is behind them waits in the link.
  static let capacity = 8

  /// What is known of a packet that waits.
  struct Head {
    var timestamp: Nanoseconds
    var arrival: Nanoseconds
    var reply: HeldReply
    var bytes: Int
  }

  private struct Entry: ~Copyable {
    var packet: Packet
    var arrival: Nanoseconds
  }

  private var writer: RingWriter<Entry>
  private var reader: RingReader<Entry>
  /// Bytes of the packets that wait.
  private(set) var bytes = 0
  /// Time of the packet that came last; nil before the first.
  private(set) var newest: Nanoseconds?

  init() {
    let ring = Ring<Entry>(minimumCapacity: Self.capacity, isShared: false)
    writer = ring.writer
    reader = ring.reader
  }

  var count: Int { mutating get { reader.count } }

  var hasRoom: Bool { mutating get { reader.count < Self.capacity } }

  /// The packet that is next.
  var head: Head? {
    mutating get {
      reader.peek { entry in
        Head(
          timestamp: entry.packet.timestamp, arrival: entry.arrival, reply: HeldReply(of: entry.packet),
          bytes: Int(entry.packet.byteCount))
      }
    }
  }

  /// Appends a packet. Only while there is room.
  mutating func push(_ packet: consuming Packet, at now: Nanoseconds) {
    newest = packet.timestamp
    bytes += Int(packet.byteCount)
    writer.push(Entry(packet: packet, arrival: now))
  }

  /// Takes the next packet.
  mutating func pop() -> Packet? {
    guard let entry = reader.pop() else { return nil }
    bytes -= Int(entry.packet.byteCount)
    return Self.packet(of: entry)
  }

  private static func packet(of entry: consuming Entry) -> Packet { entry.packet }

  /// Drops packets at the front that belong to a reply that is over.
  mutating func dropVoid(at generation: UInt32) {
    while let head, head.reply.isVoid(at: generation) { _ = pop() }
  }

  /// Drops everything.
  mutating func clear() {
    while pop() != nil {}
  }
}
