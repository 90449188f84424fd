internal import MillraceCore

/// A bounded queue of encoded packets to send; it never keeps a picture whose key frame was dropped. A value type; allocates.
struct PushQueue {
  /// Longest time between the oldest and the newest packet.
  private let limit: Nanoseconds
  /// Most bytes in the queue, regardless of time: two seconds of 8K.
  static let maximumBytes = 64 << 20
  private var byteCount = 0
  private var waiting: [EncodedPacket] = []
  /// True while packets are dropped until the next key frame.
  private(set) var awaitsKey = false
  /// Packets dropped so far.
  private(set) var dropped = (pictures: 0, sound: 0)

  init(limit: Nanoseconds) { self.limit = limit }

  var isEmpty: Bool { waiting.isEmpty }

  /// The time between the oldest and the newest packet.
  var length: Nanoseconds {
    guard let first = waiting.first, let last = waiting.last else { return 0 }
    return last.time - first.time
  }

  /// Adds a packet; drops what is too old, up to the next key frame.
  mutating func put(_ packet: EncodedPacket) {
    if awaitsKey && !packet.isKeyPicture { return note(packet) }
    awaitsKey = false
    waiting.append(packet)
    byteCount += packet.byteCount
    guard length > limit || byteCount > Self.maximumBytes else { return }
    let newest = packet.time
    var left = byteCount
    let key = waiting.indices.dropFirst().first { index in
      left -= waiting[index - 1].byteCount
      return waiting[index].isKeyPicture && newest - waiting[index].time <= limit && left <= Self.maximumBytes
    }
    drop(key ?? waiting.count)
  }

  mutating func take() -> EncodedPacket? {
    guard !waiting.isEmpty else { return nil }
    byteCount -= waiting[0].byteCount
    return waiting.removeFirst()
  }

  /// Starts a connection: the queue starts at a key frame.
  mutating func begin() { drop(waiting.firstIndex(where: \.isKeyPicture) ?? waiting.count) }

  /// Records that a packet was taken but not sent.
  mutating func note(_ packet: EncodedPacket) {
    if packet.track == .pictures { dropped.pictures += 1 } else { dropped.sound += 1 }
  }

  /// Drops everything.
  mutating func clear() { drop(waiting.count) }

  private mutating func drop(_ count: Int) {
    for packet in waiting.prefix(count) {
      note(packet)
      byteCount -= packet.byteCount
    }
    waiting.removeFirst(count)
    if waiting.isEmpty { awaitsKey = true }
  }
}

extension EncodedPacket {
  /// True for a picture at which a viewer can start.
  var isKeyPicture: Bool { track == .pictures && isKey }
}
