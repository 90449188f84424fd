internal import MillraceCore

/// The reply that what a node holds belongs to: what an interruption may void, and what it must leave alone.
///
/// The engine tells every node of an interruption. Sound of no reply (generation 0: the microphone's) and sound that must
/// be played anyhow stays whole.
struct HeldReply {
  private var generation: UInt32 = 0
  private var isUninterruptible = false

  /// Notes the packet that was taken last.
  mutating func follow(_ packet: borrowing Packet) {
    generation = packet.generation
    isUninterruptible = packet.flags.contains(.uninterruptible)
  }

  /// Marks a packet made of what is held as the packet noted last was.
  func mark(_ packet: inout Packet) {
    if isUninterruptible { packet.flags.insert(.uninterruptible) }
  }

  /// True when the packet noted last belongs to a reply that is over, now that `current` is the valid one.
  func isVoid(at current: UInt32) -> Bool {
    generation != 0 && !isUninterruptible && Int32(bitPattern: current &- generation) > 0
  }
}
