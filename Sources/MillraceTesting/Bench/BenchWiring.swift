internal import MillraceCore

/// The memory that an engine would own: the node's port table, a link for each linked port, and the tables of the outside, which feeds
/// the node's inputs and drains its outputs.
@safe
final class BenchWiring {
  /// The description of one input or output.
  struct Port {
    var shape: OutputShape?
    var isLinked: Bool
    var drives = false
    var holds = 0
    var limit = 8
    var policy = LinkPolicy.block

    /// Enough blocks for a full link of any policy with its slack, and for the packets of one call.
    var blocks: Int { shape.map { 2 * (limit + max(8, limit / 2) + $0.burst) } ?? 0 }
  }

  /// The node under test.
  let node: UnsafeMutablePointer<PortTable>
  /// Its outputs are linked to the node's inputs, in the same order.
  let feeder: UnsafeMutablePointer<PortTable>
  /// Its inputs are linked to the node's outputs, in the same order.
  let drain: UnsafeMutablePointer<PortTable>
  let feedPools: [BlockPool?]
  let outputPools: [BlockPool?]
  private(set) var inputLinks: [BenchLink?]
  private(set) var outputLinks: [BenchLink?]

  /// Wake-up bits of the links: one for the node, one for the outside.
  private let ready: UnsafeMutablePointer<UInt64>
  private static let nodeBit: UInt64 = 1
  private static let outsideBit: UInt64 = 2
  private let prefixes: UnsafeMutablePointer<EventPrefix>

  init(inputs: [Port], outputs: [Port], events: [String], eventsOutput: Int?, nodeName: String) {
    let ready = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)
    // As in a graph that starts, the node is ready at first.
    unsafe ready.initialize(to: Self.nodeBit)
    let inside = unsafe Wake(word: ready, bit: Self.nodeBit)
    let outside = unsafe Wake(word: ready, bit: Self.outsideBit)
    func makeLink(_ port: Port, _ consumer: Wake, _ producer: Wake) -> BenchLink? {
      guard port.isLinked, let shape = port.shape else { return nil }
      return unsafe BenchLink(
        shape: shape, limit: port.limit, policy: port.policy, consumer: consumer, producer: producer)
    }
    unsafe self.ready = unsafe ready
    inputLinks = inputs.map { unsafe makeLink($0, inside, outside) }
    outputLinks = outputs.map { unsafe makeLink($0, outside, inside) }
    // A node may pass its input on, so each input pool also has blocks for every output.
    let beyond = outputs.reduce(0) { $0 + $1.blocks }
    feedPools = inputs.map { port in
      port.shape.map { Self.makePool($0, blocks: port.blocks + port.holds + beyond) }
    }
    outputPools = outputs.map { port in port.shape.map { Self.makePool($0, blocks: port.blocks) } }
    unsafe node = Self.makeTable(inputs: inputs.count, outputs: outputs.count)
    unsafe feeder = Self.makeTable(inputs: 0, outputs: inputs.count)
    unsafe drain = Self.makeTable(inputs: outputs.count, outputs: 0)
    unsafe prefixes = .allocate(capacity: max(1, events.count))
    for (index, port) in inputs.enumerated() {
      unsafe node.pointee.inputs[index] = InputSlot(link: inputLinks[index]?.link, drives: port.drives)
      unsafe feeder.pointee.outputs[index] = Self.makeSlot(inputLinks[index], feedPools[index], format: index)
    }
    for index in outputs.indices {
      unsafe node.pointee.outputs[index] = Self.makeSlot(
        outputLinks[index], outputPools[index], format: inputs.count + index)
      unsafe node.pointee.outputs[index].gates = outputs[index].shape?.burst != 0
      unsafe drain.pointee.inputs[index] = InputSlot(link: outputLinks[index]?.link, drives: true)
    }
    for (index, event) in events.enumerated() {
      let text = Array("\"node\":\"\(nodeName)\",\"event\":\"\(event)\"".utf8)
      let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: text.count)
      unsafe bytes.initialize(from: text, count: text.count)
      unsafe (prefixes + index).initialize(to: EventPrefix(start: UnsafePointer(bytes), count: text.count))
    }
    unsafe node.pointee.prefixes = unsafe prefixes
    unsafe node.pointee.prefixCount = events.count
    if let eventsOutput {
      unsafe node.pointee.eventsOutput = eventsOutput
      unsafe node.pointee.eventPool = outputPools[eventsOutput].map { unsafe .passUnretained($0) }
    }
  }

  /// True when the node is called only while the output has room.
  func gates(output: Int) -> Bool { unsafe node.pointee.outputs[output].gates }

  /// Marks the node ready.
  func markReady() { unsafe ready.pointee |= Self.nodeBit }

  /// True once after the node became ready: a packet or an end arrived, or an output that was full has room.
  func takeReady() -> Bool {
    let isReady = unsafe ready.pointee & Self.nodeBit != 0
    unsafe ready.pointee = 0
    return isReady
  }

  private static func makePool(_ shape: OutputShape, blocks: Int) -> BlockPool {
    BlockPool(blockBytes: max(1, shape.madeBytes), blockCount: blocks)
  }

  private static func makeSlot(_ link: BenchLink?, _ pool: BlockPool?, format: Int) -> OutputSlot {
    unsafe OutputSlot(
      links: link?.list, linkCount: link == nil ? 0 : 1, pool: pool.map { unsafe .passUnretained($0) },
      format: UInt16(format))
  }

  private static func makeTable(inputs: Int, outputs: Int) -> UnsafeMutablePointer<PortTable> {
    let slots = UnsafeMutablePointer<InputSlot>.allocate(capacity: max(1, inputs))
    unsafe slots.initialize(repeating: InputSlot(link: nil, drives: false), count: max(1, inputs))
    let sources = UnsafeMutablePointer<OutputSlot>.allocate(capacity: max(1, outputs))
    let empty = unsafe OutputSlot(links: nil, linkCount: 0, pool: nil, format: 0)
    unsafe sources.initialize(repeating: empty, count: max(1, outputs))
    let table = UnsafeMutablePointer<PortTable>.allocate(capacity: 1)
    unsafe table.initialize(
      to: PortTable(inputs: slots, inputCount: inputs, outputs: sources, outputCount: outputs))
    return unsafe table
  }

  /// Frees every link with its packets, so that the pools can be checked.
  func dropLinks() {
    for index in inputLinks.indices {
      unsafe node.pointee.inputs[index].link = nil
      unsafe feeder.pointee.outputs[index].linkCount = 0
    }
    for index in outputLinks.indices {
      unsafe node.pointee.outputs[index].linkCount = 0
      unsafe drain.pointee.inputs[index].link = nil
    }
    inputLinks = inputLinks.map { _ in nil }
    outputLinks = outputLinks.map { _ in nil }
  }

  deinit {
    for index in unsafe 0..<node.pointee.prefixCount { unsafe prefixes[index].start.deallocate() }
    unsafe Self.free(node)
    unsafe Self.free(feeder)
    unsafe Self.free(drain)
    unsafe prefixes.deallocate()
    unsafe ready.deallocate()
  }

  private static func free(_ table: UnsafeMutablePointer<PortTable>) {
    unsafe table.pointee.inputs.deallocate()
    unsafe table.pointee.outputs.deallocate()
    unsafe table.deallocate()
  }
}
