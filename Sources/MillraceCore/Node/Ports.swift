/// A node's ports for the length of one call: the only way packets come and go.
///
/// Ports are named by the handles that the node's setup made, such as ``InputPort``; what names none is about the first input or
/// output. The compiler refuses to keep this value beyond the call. Nothing here allocates, locks or waits.
@safe
public struct Ports: ~Copyable, ~Escapable {
  @usableFromInline let table: UnsafeMutablePointer<PortTable>

  /// For engines and test benches: lends a port table for one call.
  @unsafe
  @inlinable
  @_lifetime(borrow table)
  package init(_ table: UnsafeMutablePointer<PortTable>) {
    unsafe self.table = unsafe table
  }

  // MARK: In

  /// Takes the oldest packet of an input, or answers nil when none waits or the port is unlinked.
  @inlinable
  package mutating func next(_ input: Int) -> Packet? {
    precondition(unsafe input >= 0 && input < table.pointee.inputCount, "no such input")
    guard let link = unsafe table.pointee.inputs[input].link else { return nil }
    guard let packet = unsafe link.pointee.take(generation: table.pointee.generation) else { return nil }
    // Spelled out: `&+=` here does not compile under the thread sanitizer (its access hook counts as an escape).
    unsafe table.pointee.taken = table.pointee.taken &+ 1
    let age = unsafe table.pointee.now &- packet.timestamp
    if unsafe age > table.pointee.age { unsafe table.pointee.age = age }
    return packet
  }

  /// True when an input has a packet. (An interruption may still void it before `next`.)
  @inlinable
  package func hasPacket(_ input: Int) -> Bool {
    precondition(unsafe input >= 0 && input < table.pointee.inputCount, "no such input")
    guard let link = unsafe table.pointee.inputs[input].link else { return false }
    return unsafe link.pointee.hasPacket(generation: table.pointee.generation)
  }

  /// True when an input is unlinked, or is empty and nothing more will come.
  @inlinable
  package func isOver(_ input: Int) -> Bool {
    precondition(unsafe input >= 0 && input < table.pointee.inputCount, "no such input")
    guard let link = unsafe table.pointee.inputs[input].link else { return true }
    return unsafe link.pointee.isOver()
  }

  /// True when an input is unlinked, or nothing more will come than what waits already.
  @inlinable
  package func isEnding(_ input: Int) -> Bool {
    precondition(unsafe input >= 0 && input < table.pointee.inputCount, "no such input")
    guard let link = unsafe table.pointee.inputs[input].link else { return true }
    return unsafe link.pointee.isEnding()
  }

  /// True when the graph is to end: its sources have been told, and what is inside flows out. For nodes that wait for something
  /// outside of the graph; the others hear of it by the end of their inputs.
  @inlinable public var isDraining: Bool { unsafe table.pointee.isDraining }

  /// True when a link is attached to the input.
  @inlinable
  package func isLinked(input: Int) -> Bool {
    unsafe input >= 0 && input < table.pointee.inputCount && table.pointee.inputs[input].link != nil
  }

  // MARK: Out

  /// True when every link of the output that makes its writer wait has room. Always true after the engine called, for as
  /// many packets as the contract's burst says; ask again before emitting more.
  @inlinable
  package func hasRoom(_ output: Int) -> Bool {
    precondition(unsafe output >= 0 && output < table.pointee.outputCount, "no such output")
    let slot = unsafe table.pointee.outputs[output]
    for index in unsafe 0..<slot.linkCount {
      if unsafe !slot.links.unsafelyUnwrapped[index].pointee.hasRoom() { return false }
    }
    return true
  }

  /// True when a packet may be made and emitted now. When not, the node is called again once it may be. For outputs whose room the engine
  /// does not wait for (`OutputShape.burst` 0).
  @inlinable
  package mutating func hasRoomOrAsks(_ output: Int) -> Bool {
    precondition(unsafe output >= 0 && output < table.pointee.outputCount, "no such output")
    let slot = unsafe table.pointee.outputs[output]
    for index in unsafe 0..<slot.linkCount {
      if unsafe !slot.links.unsafelyUnwrapped[index].pointee.hasRoomOrAsks() { return false }
    }
    guard let pool = unsafe slot.pool, unsafe !pool._withUnsafeGuaranteedRef({ $0.hasFree }) else {
      return true
    }
    // Blocks come back from any thread without a word. The node's own wish stays as it is.
    unsafe table.pointee.notes = table.pointee.notes.union(.retry)
    return false
  }

  /// True when a link is attached to the output, so that working for it is worth while.
  @inlinable
  package func isLinked(output: Int) -> Bool {
    unsafe output >= 0 && output < table.pointee.outputCount && table.pointee.outputs[output].linkCount > 0
  }

  /// A fresh packet of `bytes` bytes for an output, with unset content, the time of this call, and the reply it belongs to.
  ///
  /// An interruption voids the packets of a reply wherever they wait. Whose a packet is therefore has to be said: `HeldReply(of:)` of the
  /// packet it is made of, ``currentReply`` for what a bot begins to say, `.none` for everything that no interruption may touch. A node with
  /// several inputs must not guess it from the packet it took last.
  ///
  /// Throws `poolEmpty` when no block is free. Traps when `bytes` is more than the output was resolved to make (`OutputShape.madeBytes`).
  @inlinable
  package mutating func makePacket(
    _ output: Int, bytes: Int, of reply: HeldReply
  ) throws(NodeFault) -> Packet {
    precondition(unsafe output >= 0 && output < table.pointee.outputCount, "no such output")
    let slot = unsafe table.pointee.outputs[output]
    guard let pool = unsafe slot.pool else { fatalError("output \(output) carries nothing") }
    guard let header = unsafe pool._withUnsafeGuaranteedRef({ unsafe $0.takeHeader() }) else {
      throw .poolEmpty
    }
    return unsafe Packet(
      Block(header), byteCount: bytes, timestamp: table.pointee.now, format: slot.format,
      generation: reply.generation, flags: reply.flags)
  }

  /// The packet itself when nobody else holds its bytes, otherwise a copy that may be written.
  @inlinable
  package mutating func makeWritable(
    _ packet: consuming Packet, for output: Int
  ) throws(NodeFault) -> Packet {
    if packet.block.isUnique { return packet }
    var copy = try makePacket(output, bytes: Int(packet.byteCount), of: HeldReply(of: packet))
    copy.describeLike(packet)
    let source = packet.samples(of: UInt8.self)
    var target = copy.mutableSamples(of: UInt8.self)
    for index in source.indices { target[index] = source[index] }
    return copy
  }

  /// Hands a packet on: to every link of the output, sharing the bytes when there are several; to nobody when there is none.
  ///
  /// Emitting more than the output has room for loses the packet and fails the node after the call.
  @inlinable
  package mutating func emit(_ packet: consuming Packet, to output: Int) {
    precondition(unsafe output >= 0 && output < table.pointee.outputCount, "no such output")
    let slot = unsafe table.pointee.outputs[output]
    guard unsafe slot.linkCount > 0 else { return }
    packet.format = unsafe slot.format
    let links = unsafe slot.links.unsafelyUnwrapped
    for index in unsafe 1..<slot.linkCount {
      if unsafe !links[index].pointee.put(packet.share()) { noteOverflow(of: output, index) }
    }
    if unsafe !links[0].pointee.put(packet) { noteOverflow(of: output, 0) }
  }

  @usableFromInline
  mutating func noteOverflow(of output: Int, _ link: Int) {
    unsafe table.pointee.fault = NodeFault(
      .outputFull, code: Int32(truncatingIfNeeded: output), detail: Int64(link))
    unsafe table.pointee.notes = table.pointee.notes.union(.fault)
  }

  // MARK: Time

  /// The time on the graph clock when this call began.
  @inlinable public var now: Nanoseconds { unsafe table.pointee.now }

  /// Asks for a call of `process` at a time on the graph clock; a time that has passed means as soon as possible. One wish
  /// at a time: a new one replaces the old.
  @inlinable
  public mutating func wake(at time: Nanoseconds) {
    unsafe table.pointee.wakeAt = time
  }

  /// The number of the reply that is valid now; packets of older ones are dropped.
  @inlinable public var generation: UInt32 { unsafe table.pointee.generation }

  /// The reply that is valid now: what the first packets of a bot's reply belong to.
  @inlinable public var currentReply: HeldReply {
    unsafe HeldReply(generation: table.pointee.generation, flags: [])
  }

  // MARK: Replies

  /// Voids every reply up to now, as `GraphRun.interrupt` does; carried out right after this call. For nodes that decide on
  /// barge-in: a packet made before the call's end still belongs to the old reply.
  @inlinable
  public mutating func interruptReplies() {
    unsafe table.pointee.notes = table.pointee.notes.union(.interrupt)
  }

  /// Has the nodes that play replies make room for a voice that may turn out to be none: they hold the reply, or lower it.
  /// Carried out right after this call, and before `resumeReplies` of the same call.
  @inlinable
  public mutating func duckReplies() { unsafe table.pointee.notes = table.pointee.notes.union(.duck) }

  /// Takes `duckReplies` back: the reply goes on with the sample after the last one that was heard.
  @inlinable
  public mutating func resumeReplies() { unsafe table.pointee.notes = table.pointee.notes.union(.resume) }

  // MARK: Events

  /// Posts an event of the contract's list, by its index: to the links of the port `events` and to the embedding program.
  /// `fields` writes the details. Costs nothing but a look when nobody listens; counted as dropped when no block is free.
  @inlinable
  package mutating func post(_ event: Int, _ fields: (inout EventWriter) -> Void = { _ in }) {
    guard isHeard else { return }
    write(event, fields)
  }

  @usableFromInline
  var isHeard: Bool {
    let output = unsafe table.pointee.eventsOutput
    return unsafe table.pointee.outbox != nil || (output >= 0 && table.pointee.outputs[output].linkCount > 0)
  }

  /// Counts an event that could not be written, wherever it was to go.
  private func noteLostEvent() {
    unsafe table.pointee.outbox?.pointee.tellLost()
    let output = unsafe table.pointee.eventsOutput
    guard output >= 0 else { return }
    let slot = unsafe table.pointee.outputs[output]
    for index in unsafe 0..<slot.linkCount { unsafe slot.links.unsafelyUnwrapped[index].pointee.noteLost() }
  }

  @usableFromInline
  mutating func write(_ event: Int, _ fields: (inout EventWriter) -> Void) {
    precondition(unsafe event >= 0 && event < table.pointee.prefixCount, "no such event in the contract")
    guard let pool = unsafe table.pointee.eventPool,
      let header = unsafe pool._withUnsafeGuaranteedRef({ unsafe $0.takeHeader() })
    else {
      noteLostEvent()
      return
    }
    let block = unsafe Block(header)
    let now = unsafe table.pointee.now
    let prefix = unsafe table.pointee.prefixes.unsafelyUnwrapped[event]
    var writer = unsafe EventWriter(
      block.start.assumingMemoryBound(to: UInt8.self), capacity: block.byteCount, count: 0)
    writer.literal("{\"time\":")
    unsafe writer.decimal(Double(now &+ table.pointee.eventShift) / 1e9, decimals: 6)
    writer.byte(UInt8(ascii: ","))
    for index in unsafe 0..<prefix.count { unsafe writer.byte(prefix.start[index]) }
    // A block too small for the beginning has no place for an ending either.
    guard writer.isWithin else {
      noteLostEvent()
      return
    }
    fields(&writer)
    let length = writer.finish()
    var packet = Packet(block, byteCount: length, timestamp: now)
    // For whoever sorts events without parsing them: which event of which node.
    packet.position = Int64(event)
    packet.duration = unsafe table.pointee.nodeIndex
    if let outbox = unsafe table.pointee.outbox { _ = unsafe outbox.pointee.put(packet.share()) }
    let output = unsafe table.pointee.eventsOutput
    if output >= 0 { emit(packet, to: output) }
  }
}
