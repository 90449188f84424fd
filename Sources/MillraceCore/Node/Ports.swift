/// A node's ports during one call: how packets enter and leave the node.
///
/// Ports are named by handles from the node's setup, such as ``InputPort``; methods without a handle use the first input or output.
/// The compiler does not let this value outlive the call. Nothing here allocates, locks or waits.
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

  /// Takes the oldest packet of an input; nil when none waits or the port is unlinked.
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

  /// True when an input has a packet. (An interruption may still cancel it before `next`.)
  @inlinable
  package func hasPacket(_ input: Int) -> Bool {
    precondition(unsafe input >= 0 && input < table.pointee.inputCount, "no such input")
    guard let link = unsafe table.pointee.inputs[input].link else { return false }
    return unsafe link.pointee.hasPacket(generation: table.pointee.generation)
  }

  /// True when an input is unlinked, or has ended and is empty.
  @inlinable
  package func isOver(_ input: Int) -> Bool {
    precondition(unsafe input >= 0 && input < table.pointee.inputCount, "no such input")
    guard let link = unsafe table.pointee.inputs[input].link else { return true }
    return unsafe link.pointee.isOver()
  }

  /// True when an input is unlinked, or has ended, although packets may still wait.
  @inlinable
  package func isEnding(_ input: Int) -> Bool {
    precondition(unsafe input >= 0 && input < table.pointee.inputCount, "no such input")
    guard let link = unsafe table.pointee.inputs[input].link else { return true }
    return unsafe link.pointee.isEnding()
  }

  /// True while the graph drains: its sources are ending, and what is inside flows out. For nodes that wait for something outside the
  /// graph; other nodes see their inputs end.
  @inlinable public var isDraining: Bool { unsafe table.pointee.isDraining }

  /// True when a link is attached to the input.
  @inlinable
  package func isLinked(input: Int) -> Bool {
    unsafe input >= 0 && input < table.pointee.inputCount && table.pointee.inputs[input].link != nil
  }

  // MARK: Out

  /// True when every blocking link of the output has room. Always true at the beginning of a call for as many packets as the
  /// contract's burst; check again before emitting more.
  @inlinable
  package func hasRoom(_ output: Int) -> Bool {
    precondition(unsafe output >= 0 && output < table.pointee.outputCount, "no such output")
    let slot = unsafe table.pointee.outputs[output]
    for index in unsafe 0..<slot.linkCount {
      if unsafe !slot.links.unsafelyUnwrapped[index].pointee.hasRoom() { return false }
    }
    return true
  }

  /// True when a packet can be made and emitted now. When false, the node is called again as soon as it can. For outputs whose room
  /// the engine does not wait for (`OutputShape.burst` 0).
  @inlinable
  package mutating func hasRoomOrRequestsWake(_ output: Int) -> Bool {
    precondition(unsafe output >= 0 && output < table.pointee.outputCount, "no such output")
    let slot = unsafe table.pointee.outputs[output]
    for index in unsafe 0..<slot.linkCount {
      if unsafe !slot.links.unsafelyUnwrapped[index].pointee.hasRoomOrRequestsWake() { return false }
    }
    guard let pool = unsafe slot.pool, unsafe !pool._withUnsafeGuaranteedRef({ $0.hasFree }) else {
      return true
    }
    // Blocks return from any thread without a wake-up. The node's own timer request is kept.
    unsafe table.pointee.requests = table.pointee.requests.union(.retry)
    return false
  }

  /// True when a link is attached to the output, so its packets are used.
  @inlinable
  package func isLinked(output: Int) -> Bool {
    unsafe output >= 0 && output < table.pointee.outputCount && table.pointee.outputs[output].linkCount > 0
  }

  /// Makes a packet of `bytes` bytes for an output, with uninitialised content, the time of this call and the given reply.
  ///
  /// An interruption cancels the packets of a reply wherever they wait, so every packet names its reply: `HeldReply(of:)` of the packet
  /// it is made from, ``currentReply`` for the beginning of a bot's reply, `.none` for media that no interruption affects. A node with
  /// several inputs must not guess it from the packet it took last.
  ///
  /// Throws `poolEmpty` when no block is free. Traps when `bytes` exceeds the size resolved for the output (`OutputShape.madeBytes`).
  @inlinable
  package mutating func makePacket(
    _ output: Int, bytes: Int, of reply: HeldReply
  ) throws(NodeFault) -> Packet {
    precondition(unsafe output >= 0 && output < table.pointee.outputCount, "no such output")
    let slot = unsafe table.pointee.outputs[output]
    guard let pool = unsafe slot.pool else { fatalError("output \(output) has no format") }
    guard let header = unsafe pool._withUnsafeGuaranteedRef({ unsafe $0.takeHeader() }) else {
      throw .poolEmpty
    }
    return unsafe Packet(
      Block(header), byteCount: bytes, timestamp: table.pointee.now, format: slot.format,
      generation: reply.generation, flags: reply.flags)
  }

  /// Returns the packet itself when its block is not shared, otherwise a copy that may be written.
  @inlinable
  package mutating func makeWritable(
    _ packet: consuming Packet, for output: Int
  ) throws(NodeFault) -> Packet {
    if packet.block.isUnique { return packet }
    var copy = try makePacket(output, bytes: Int(packet.byteCount), of: HeldReply(of: packet))
    copy.copyMetadata(from: packet)
    let source = packet.samples(of: UInt8.self)
    var target = copy.mutableSamples(of: UInt8.self)
    for index in source.indices { target[index] = source[index] }
    return copy
  }

  /// Emits a packet to every link of the output; several links share its bytes. Without a link, the packet is discarded.
  ///
  /// When the output has no room, the packet is lost and the node fails after the call.
  @inlinable
  package mutating func emit(_ packet: consuming Packet, to output: Int) {
    precondition(unsafe output >= 0 && output < table.pointee.outputCount, "no such output")
    let slot = unsafe table.pointee.outputs[output]
    guard unsafe slot.linkCount > 0 else { return }
    packet.format = unsafe slot.format
    let links = unsafe slot.links.unsafelyUnwrapped
    for index in unsafe 1..<slot.linkCount {
      if unsafe !links[index].pointee.put(packet.share()) { recordOverflow(of: output, index) }
    }
    if unsafe !links[0].pointee.put(packet) { recordOverflow(of: output, 0) }
  }

  @usableFromInline
  mutating func recordOverflow(of output: Int, _ link: Int) {
    unsafe table.pointee.fault = NodeFault(
      .outputFull, code: Int32(truncatingIfNeeded: output), detail: Int64(link))
    unsafe table.pointee.requests = table.pointee.requests.union(.fault)
  }

  // MARK: Time

  /// The time on the graph clock when this call began.
  @inlinable public var now: Nanoseconds { unsafe table.pointee.now }

  /// Requests a call of `process` at a time on the graph clock; a time in the past means as soon as possible. A new request replaces
  /// the previous one.
  @inlinable
  public mutating func wake(at time: Nanoseconds) {
    unsafe table.pointee.wakeAt = time
  }

  /// The number of the current reply; packets of older replies are discarded.
  @inlinable public var generation: UInt32 { unsafe table.pointee.generation }

  /// The current reply, to which the first packets of a bot's reply belong.
  @inlinable public var currentReply: HeldReply {
    unsafe HeldReply(generation: table.pointee.generation, flags: [])
  }

  // MARK: Replies

  /// Cancels every reply up to now, as `GraphRun.interrupt` does; takes effect right after this call. For nodes that detect
  /// barge-in. A packet made before the call returns still belongs to the old reply.
  @inlinable
  public mutating func interruptReplies() {
    unsafe table.pointee.requests = table.pointee.requests.union(.interrupt)
  }

  /// Ducks the nodes that play replies while it is not yet known whether the user is speaking: they pause or lower the reply. Takes
  /// effect right after this call, and before `resumeReplies` of the same call.
  @inlinable
  public mutating func duckReplies() { unsafe table.pointee.requests = table.pointee.requests.union(.duck) }

  /// Ends `duckReplies`: the reply continues with the sample after the last one played.
  @inlinable
  public mutating func resumeReplies() {
    unsafe table.pointee.requests = table.pointee.requests.union(.resume)
  }

  // MARK: Events

  /// Posts an event, by its index in the contract, to the links of the port `events` and to the embedding program. `fields` writes
  /// the details. Without a listener it costs one check. When no block is free, the event is counted as dropped.
  @inlinable
  package mutating func post(_ event: Int, _ fields: (inout EventWriter) -> Void = { _ in }) {
    guard hasListener else { return }
    write(event, fields)
  }

  @usableFromInline
  var hasListener: Bool {
    let output = unsafe table.pointee.eventsOutput
    return unsafe table.pointee.outbox != nil || (output >= 0 && table.pointee.outputs[output].linkCount > 0)
  }

  /// Counts an event that could not be written, on every link it would have taken.
  private func countLostEvent() {
    unsafe table.pointee.outbox?.pointee.countLostAndNotify()
    let output = unsafe table.pointee.eventsOutput
    guard output >= 0 else { return }
    let slot = unsafe table.pointee.outputs[output]
    for index in unsafe 0..<slot.linkCount { unsafe slot.links.unsafelyUnwrapped[index].pointee.countLost() }
  }

  @usableFromInline
  mutating func write(_ event: Int, _ fields: (inout EventWriter) -> Void) {
    precondition(unsafe event >= 0 && event < table.pointee.prefixCount, "no such event in the contract")
    guard let pool = unsafe table.pointee.eventPool,
      let header = unsafe pool._withUnsafeGuaranteedRef({ unsafe $0.takeHeader() })
    else {
      countLostEvent()
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
    // A block too small for the beginning has no room for the end either.
    guard writer.isWithin else {
      countLostEvent()
      return
    }
    fields(&writer)
    let length = writer.finish()
    var packet = Packet(block, byteCount: length, timestamp: now)
    // For readers that sort events without parsing them: which event of which node.
    packet.position = Int64(event)
    packet.duration = unsafe table.pointee.nodeIndex
    if let outbox = unsafe table.pointee.outbox { _ = unsafe outbox.pointee.put(packet.share()) }
    let output = unsafe table.pointee.eventsOutput
    if output >= 0 { emit(packet, to: output) }
  }
}
