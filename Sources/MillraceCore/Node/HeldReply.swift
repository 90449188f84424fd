/// The reply that the media a node holds belongs to, which decides whether an interruption cancels it.
///
/// The engine notifies every node of an interruption. Media without a reply (generation 0, such as microphone sound), uninterruptible
/// media, and media of a reply newer than the interruption must be kept. For `process` and `interrupted`; no heap.
public struct HeldReply: Sendable {
  /// The number of the reply; 0: none.
  public private(set) var generation: UInt32 = 0
  /// It is played even when its reply is interrupted.
  public private(set) var isUninterruptible = false

  /// No reply.
  @inlinable public init() {}

  /// No reply: microphone sound, commands, camera pictures. No interruption affects it.
  @inlinable public static var none: HeldReply { HeldReply() }

  /// The reply of a packet.
  @inlinable
  public init(of packet: borrowing Packet) {
    self.init(generation: packet.generation, flags: packet.flags)
  }

  @usableFromInline
  init(generation: UInt32, flags: PacketFlags) {
    self.generation = generation
    isUninterruptible = flags.contains(.uninterruptible)
  }

  /// Takes over the reply of the packet taken last.
  @inlinable
  public mutating func follow(_ packet: borrowing Packet) { self = HeldReply(of: packet) }

  /// The flags of a packet made from what is held.
  @inlinable var flags: PacketFlags { isUninterruptible ? .uninterruptible : [] }

  /// Sets the flags of a packet made from what is held.
  @inlinable
  public func mark(_ packet: inout Packet) {
    if isUninterruptible { packet.flags.insert(.uninterruptible) }
  }

  /// True when the reply is stale because `current` is the valid one. Numbers are compared by age, so they may wrap around.
  @inlinable
  public func isStale(at current: UInt32) -> Bool {
    generation != 0 && !isUninterruptible && Packet.isNewer(current, than: generation)
  }
}

extension HeldReply: Equatable {}
