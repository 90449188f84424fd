/// The reply that what a node holds belongs to: what an interruption may void, and what it must leave alone.
///
/// The engine tells every node of an interruption. Sound of no reply (generation 0: the microphone's), sound that must be
/// played anyhow, and sound of a reply that is newer than the interruption stays whole. For `process` and `interrupted`; no heap.
public struct HeldReply: Sendable {
  /// The reply's number; 0: none.
  public private(set) var generation: UInt32 = 0
  /// It must be played whatever is interrupted.
  public private(set) var isUninterruptible = false

  /// Of no reply.
  @inlinable public init() {}

  /// No reply: the microphone's sound, commands, pictures of a camera. No interruption touches it.
  @inlinable public static var none: HeldReply { HeldReply() }

  /// Of a packet's reply.
  @inlinable
  public init(of packet: borrowing Packet) {
    self.init(generation: packet.generation, flags: packet.flags)
  }

  @usableFromInline
  init(generation: UInt32, flags: PacketFlags) {
    self.generation = generation
    isUninterruptible = flags.contains(.uninterruptible)
  }

  /// Notes the packet that was taken last.
  @inlinable
  public mutating func follow(_ packet: borrowing Packet) { self = HeldReply(of: packet) }

  /// The marks of a packet that is made of what is held.
  @inlinable var flags: PacketFlags { isUninterruptible ? .uninterruptible : [] }

  /// Marks a packet made of what is held as the packet noted last was.
  @inlinable
  public func mark(_ packet: inout Packet) {
    if isUninterruptible { packet.flags.insert(.uninterruptible) }
  }

  /// True when the reply is over, now that `current` is the valid one. Numbers are compared by age, so that they may wrap.
  @inlinable
  public func isVoid(at current: UInt32) -> Bool {
    generation != 0 && !isUninterruptible && Packet.isNewer(current, than: generation)
  }
}

extension HeldReply: Equatable {}
