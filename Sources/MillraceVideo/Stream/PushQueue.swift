internal import MillraceCore

/// What was encoded and is not sent yet: so much and no more, and never a picture whose key frame was dropped. A value; takes heap.
struct PushQueue {
  /// The longest time between the oldest and the newest of it.
  private let limit: Nanoseconds
  /// Bytes that may wait, whatever their times say: two seconds of 8K.
  static let mostBytes = 64 << 20
  private var byteCount = 0
  private var waiting: [EncodedPacket] = []
  /// True while nothing is taken but a key picture, and what comes behind it.
  private(set) var awaitsKey = false
  /// What was left out, so far.
  private(set) var dropped = (pictures: 0, sound: 0)

  init(limit: Nanoseconds) { self.limit = limit }

  var isEmpty: Bool { waiting.isEmpty }

  /// The time between the oldest and the newest.
  var length: Nanoseconds {
    guard let first = waiting.first, let last = waiting.last else { return 0 }
    return last.time - first.time
  }

  /// Adds a packet; what has become too old goes, up to the next key picture.
  mutating func put(_ packet: EncodedPacket) {
    if awaitsKey && !packet.isKeyPicture { return note(packet) }
    awaitsKey = false
    waiting.append(packet)
    byteCount += packet.byteCount
    guard length > limit || byteCount > Self.mostBytes else { return }
    let newest = packet.time
    var left = byteCount
    let key = waiting.indices.dropFirst().first { index in
      left -= waiting[index - 1].byteCount
      return waiting[index].isKeyPicture && newest - waiting[index].time <= limit && left <= Self.mostBytes
    }
    drop(key ?? waiting.count)
  }

  mutating func take() -> EncodedPacket? {
    guard !waiting.isEmpty else { return nil }
    byteCount -= waiting[0].byteCount
    return waiting.removeFirst()
  }

  /// A connection begins: so does what is sent over it, with a key picture.
  mutating func begin() { drop(waiting.firstIndex(where: \.isKeyPicture) ?? waiting.count) }

  /// A packet was taken and did not arrive.
  mutating func note(_ packet: EncodedPacket) {
    if packet.track == .pictures { dropped.pictures += 1 } else { dropped.sound += 1 }
  }

  /// Leaves out what waits.
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
  /// Where whoever sees it first can begin.
  var isKeyPicture: Bool { track == .pictures && isKey }
}
