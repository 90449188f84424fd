/// Packets in and out, by the handles that the node's setup made.
extension Ports {
  // MARK: In

  /// Takes the oldest packet of an input, or answers nil when none waits or the port is unlinked.
  @inlinable public mutating func next(_ input: InputPort) -> Packet? { next(input.index) }

  /// Takes the oldest packet of the first input.
  @inlinable public mutating func next() -> Packet? { next(0) }

  /// True when an input has a packet. (An interruption may still cancel it before `next`.)
  @inlinable public func hasPacket(_ input: InputPort) -> Bool { hasPacket(input.index) }

  /// True when the first input has a packet.
  @inlinable public func hasPacket() -> Bool { hasPacket(0) }

  /// True when an input is unlinked, or is empty and nothing more will come.
  @inlinable public func isOver(_ input: InputPort) -> Bool { isOver(input.index) }

  /// True when the first input is unlinked, or is empty and nothing more will come.
  @inlinable public func isOver() -> Bool { isOver(0) }

  /// True when an input is unlinked, or nothing more will come than what waits already.
  @inlinable public func isEnding(_ input: InputPort) -> Bool { isEnding(input.index) }

  /// True when the first input is unlinked, or nothing more will come than what waits already.
  @inlinable public func isEnding() -> Bool { isEnding(0) }

  /// True when a link is attached to the input.
  @inlinable public func isLinked(_ input: InputPort) -> Bool { isLinked(input: input.index) }

  // MARK: Out

  /// True when every link of the output that makes its writer wait has room. Always true after the engine called, for as
  /// many packets as the contract's burst says; ask again before emitting more.
  @inlinable public func hasRoom(_ output: OutputPort) -> Bool { hasRoom(output.index) }

  /// True when the first output has room.
  @inlinable public func hasRoom() -> Bool { hasRoom(0) }

  /// True when a packet may be made and emitted now. When not, the node is called again once it may be. For outputs whose
  /// room the engine does not wait for (`OutputShape.burst` 0).
  @inlinable public mutating func hasRoomOrAsks(_ output: OutputPort) -> Bool { hasRoomOrAsks(output.index) }

  /// The same for the first output.
  @inlinable public mutating func hasRoomOrAsks() -> Bool { hasRoomOrAsks(0) }

  /// True when a link is attached to the output, so that working for it is worth while.
  @inlinable public func isLinked(_ output: OutputPort) -> Bool { isLinked(output: output.index) }

  /// A fresh packet of `bytes` bytes for an output, with unset content, the time of this call, and the reply it belongs to.
  ///
  /// An interruption cancels the packets of a reply wherever they wait. So every packet says which reply it belongs to:
  /// `HeldReply(of:)` of the packet it is made of, ``currentReply`` for what a bot begins to say, `.none` for everything that no
  /// interruption may touch. A node with several inputs must not guess it from the packet it took last.
  ///
  /// Throws `poolEmpty` when no block is free. Traps when `bytes` is more than the output was resolved to make
  /// (`OutputShape.madeBytes`).
  @inlinable
  public mutating func makePacket(
    _ output: OutputPort, bytes: Int, of reply: HeldReply
  ) throws(NodeFault) -> Packet {
    try makePacket(output.index, bytes: bytes, of: reply)
  }

  /// A fresh packet for the first output.
  @inlinable
  public mutating func makePacket(bytes: Int, of reply: HeldReply) throws(NodeFault) -> Packet {
    try makePacket(0, bytes: bytes, of: reply)
  }

  /// The packet itself when nobody else holds its bytes, otherwise a copy that may be written, for an output.
  @inlinable
  public mutating func makeWritable(
    _ packet: consuming Packet, for output: OutputPort
  ) throws(NodeFault) -> Packet {
    try makeWritable(packet, for: output.index)
  }

  /// The packet itself when nobody else holds its bytes, otherwise a copy that may be written, for the first output.
  @inlinable
  public mutating func makeWritable(_ packet: consuming Packet) throws(NodeFault) -> Packet {
    try makeWritable(packet, for: 0)
  }

  /// Hands a packet on: to every link of the output, sharing the bytes when there are several; to nobody when there is none.
  ///
  /// Emitting more than the output has room for loses the packet and fails the node after the call.
  @inlinable
  public mutating func emit(_ packet: consuming Packet, to output: OutputPort) {
    emit(packet, to: output.index)
  }

  /// Hands a packet on to every link of the first output.
  @inlinable
  public mutating func emit(_ packet: consuming Packet) { emit(packet, to: 0) }

  // MARK: Events

  /// Posts an event: to the links of the port `events` and to the embedding program. `fields` writes the details. Costs no
  /// more than a look when it has no listener; counted as dropped when no block is free.
  @inlinable
  public mutating func post(_ event: EventPort, _ fields: (inout EventWriter) -> Void = { _ in }) {
    post(event.index, fields)
  }
}
