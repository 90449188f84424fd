/// Access to ports and events by handles from the node's setup.
extension Ports {
  // MARK: In

  /// Takes the oldest packet of an input; nil when none waits or the port is unlinked.
  @inlinable public mutating func next(_ input: InputPort) -> Packet? { next(input.index) }

  /// Takes the oldest packet of the first input.
  @inlinable public mutating func next() -> Packet? { next(0) }

  /// True when an input has a packet. (An interruption may still cancel it before `next`.)
  @inlinable public func hasPacket(_ input: InputPort) -> Bool { hasPacket(input.index) }

  /// True when the first input has a packet.
  @inlinable public func hasPacket() -> Bool { hasPacket(0) }

  /// True when an input is unlinked, or has ended and is empty.
  @inlinable public func isOver(_ input: InputPort) -> Bool { isOver(input.index) }

  /// True when the first input is unlinked, or has ended and is empty.
  @inlinable public func isOver() -> Bool { isOver(0) }

  /// True when an input is unlinked, or has ended, although packets may still wait.
  @inlinable public func isEnding(_ input: InputPort) -> Bool { isEnding(input.index) }

  /// True when the first input is unlinked, or has ended, although packets may still wait.
  @inlinable public func isEnding() -> Bool { isEnding(0) }

  /// True when a link is attached to the input.
  @inlinable public func isLinked(_ input: InputPort) -> Bool { isLinked(input: input.index) }

  // MARK: Out

  /// True when every blocking link of the output has room. Always true at the beginning of a call for as many packets as the
  /// contract's burst; check again before emitting more.
  @inlinable public func hasRoom(_ output: OutputPort) -> Bool { hasRoom(output.index) }

  /// True when the first output has room.
  @inlinable public func hasRoom() -> Bool { hasRoom(0) }

  /// True when a packet can be made and emitted now. When false, the node is called again as soon as it can. For outputs whose room
  /// the engine does not wait for (`OutputShape.burst` 0).
  @inlinable public mutating func hasRoomOrRequestsWake(_ output: OutputPort) -> Bool {
    hasRoomOrRequestsWake(output.index)
  }

  /// The same for the first output.
  @inlinable public mutating func hasRoomOrRequestsWake() -> Bool { hasRoomOrRequestsWake(0) }

  /// True when a link is attached to the output, so its packets are used.
  @inlinable public func isLinked(_ output: OutputPort) -> Bool { isLinked(output: output.index) }

  /// Makes a packet of `bytes` bytes for an output, with uninitialised content, the time of this call and the given reply.
  ///
  /// An interruption cancels the packets of a reply wherever they wait, so every packet names its reply: `HeldReply(of:)` of the packet
  /// it is made from, ``currentReply`` for the beginning of a bot's reply, `.none` for media that no interruption affects. A node with
  /// several inputs must not guess it from the packet it took last.
  ///
  /// Throws `poolEmpty` when no block is free. Traps when `bytes` exceeds the size resolved for the output (`OutputShape.madeBytes`).
  @inlinable
  public mutating func makePacket(
    _ output: OutputPort, bytes: Int, of reply: HeldReply
  ) throws(NodeFault) -> Packet {
    try makePacket(output.index, bytes: bytes, of: reply)
  }

  /// Makes a packet for the first output.
  @inlinable
  public mutating func makePacket(bytes: Int, of reply: HeldReply) throws(NodeFault) -> Packet {
    try makePacket(0, bytes: bytes, of: reply)
  }

  /// Returns the packet itself when its block is not shared, otherwise a copy for an output that may be written.
  @inlinable
  public mutating func makeWritable(
    _ packet: consuming Packet, for output: OutputPort
  ) throws(NodeFault) -> Packet {
    try makeWritable(packet, for: output.index)
  }

  /// Returns the packet itself when its block is not shared, otherwise a copy for the first output that may be written.
  @inlinable
  public mutating func makeWritable(_ packet: consuming Packet) throws(NodeFault) -> Packet {
    try makeWritable(packet, for: 0)
  }

  /// Emits a packet to every link of the output; several links share its bytes. Without a link, the packet is discarded.
  ///
  /// When the output has no room, the packet is lost and the node fails after the call.
  @inlinable
  public mutating func emit(_ packet: consuming Packet, to output: OutputPort) {
    emit(packet, to: output.index)
  }

  /// Emits a packet to every link of the first output.
  @inlinable
  public mutating func emit(_ packet: consuming Packet) { emit(packet, to: 0) }

  // MARK: Events

  /// Posts an event to the links of the port `events` and to the embedding program. `fields` writes the details. Without a listener
  /// it costs one check. When no block is free, the event is counted as dropped.
  @inlinable
  public mutating func post(_ event: EventPort, _ fields: (inout EventWriter) -> Void = { _ in }) {
    post(event.index, fields)
  }
}
