internal import MillraceCore

/// A short queue of packets between a node's link and the playout. Packets are taken as they arrive, so that their arrival times are known.
@safe
struct ArrivalQueue: ~Copyable {
  /// Most packets in the queue; further ones wait in the link.
  static let capacity = 8

  /// Properties of a waiting packet.
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
  /// Total bytes of the waiting packets.
  private(set) var bytes = 0
  /// Timestamp of the last packet that arrived; nil before the first.
  private(set) var newest: Nanoseconds?

  init() {
    let ring = Ring<Entry>(minimumCapacity: Self.capacity, isShared: false)
    writer = ring.writer
    reader = ring.reader
  }

  var count: Int { mutating get { reader.count } }

  var hasRoom: Bool { mutating get { reader.count < Self.capacity } }

  /// The next packet.
  var head: Head? {
    mutating get {
      reader.peek { entry in
        Head(
          timestamp: entry.packet.timestamp, arrival: entry.arrival, reply: HeldReply(of: entry.packet),
          bytes: Int(entry.packet.byteCount))
      }
    }
  }

  /// Appends a packet. Call it only while `hasRoom`.
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

  /// Drops packets at the front that belong to a cancelled reply.
  mutating func dropStale(at generation: UInt32) {
    while let head, head.reply.isStale(at: generation) { _ = pop() }
  }

  /// Drops everything.
  mutating func clear() {
    while pop() != nil {}
  }
}
