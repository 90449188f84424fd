/// How a link between two graphs rewrites packets: each graph has its own time and its own replies.
public struct LinkTranslation: Sendable {
  /// Added to the time of every packet, in nanoseconds.
  public var time: Nanoseconds = 0
  /// Added to the position of every audio packet, in samples at the port's rate.
  public var samples: Int64 = 0
  /// False: packets belong to no reply behind the link, so no interruption there affects them.
  public var keepsReplies = true

  /// A translation that changes nothing.
  public init() {}

  /// Translates a packet whose block is not shared.
  func apply(to packet: inout Packet) {
    packet.timestamp &+= time
    if samples != 0 { packet.position &+= samples }
    if !keepsReplies { packet.generation = 0 }
  }
}

/// Bits that mark a link as closed. Set by the writer, or after it has gone for good.
enum LinkClosing {
  /// The writing node has ended.
  static let ended: UInt8 = 1
  /// The writing node continues, but no longer writes to this link.
  static let detached: UInt8 = 2
}

/// Bits that tell what happens to the reader's input after its link has closed. Set by the reading side.
enum LinkSuccession {
  /// Another link follows: the input continues.
  static let expected: UInt8 = 1
  /// No link follows: detaching this one ends the input too.
  static let excluded: UInt8 = 2
}
