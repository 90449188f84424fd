/// How packets change on their way through a link between two graphs: each has times and replies of its own.
public struct LinkTranslation: Sendable {
  /// Added to the time of every packet, in nanoseconds.
  public var time: Nanoseconds = 0
  /// Added to the position of every packet of sound, in samples at the port's rate.
  public var samples: Int64 = 0
  /// False: packets belong to no reply behind the link, so that no interruption there touches them.
  public var keepsReplies = true

  /// Changes nothing.
  public init() {}

  /// Changes a packet nobody else holds.
  func apply(to packet: inout Packet) {
    packet.timestamp &+= time
    if samples != 0 { packet.position &+= samples }
    if !keepsReplies { packet.generation = 0 }
  }
}

/// Bits that say that nothing more comes through a link. Written by the writer, or when it is gone for good.
enum LinkClosing {
  /// The writing node has ended.
  static let ended: UInt8 = 1
  /// The writing node goes on, and writes elsewhere.
  static let detached: UInt8 = 2
}

/// Bits that say what follows when nothing more comes through a link. Written by the reader's side.
enum LinkSuccession {
  /// Another link follows.
  static let continues: UInt8 = 1
  /// None follows: a link that was detached ends its input too.
  static let finishes: UInt8 = 2
}
