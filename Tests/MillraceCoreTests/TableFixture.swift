@testable import MillraceCore
import TestSystem

/// A port table with links to and from the test, and one pool for everything.
final class TableFixture {
  struct Port {
    var limit = 4
    var policy = LinkPolicy.block
    var burst = 1
    var linkCount = 1
    /// The ends are used by different threads.
    var isRemote = false
    /// They are, and their wake-ups are deferred to the end of a turn: bits are set in `pending`.
    var isDeferred = false
  }

  let table: UnsafeMutablePointer<PortTable>
  let pool: BlockPool
  /// The wake-up bits of links.
  let ready = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)
  /// The deferred wake-up bits of links, and the wake-ups made at once.
  let pending = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)
  let told = Listener()
  private(set) var inputs: [UnsafeMutablePointer<Link>] = []
  private(set) var outputs: [[UnsafeMutablePointer<Link>]] = []
  private(set) var counters: [UnsafeMutablePointer<LinkCounters>] = []
  private var lists: [UnsafeMutablePointer<UnsafeMutablePointer<Link>>] = []
  private var prefix: UnsafeMutablePointer<EventPrefix>?
  private var prefixText: UnsafeMutablePointer<UInt8>?

  init(inputs: [Port] = [], outputs: [Port] = [], blockBytes: Int = 64, blockCount: Int = 64) {
    pool = BlockPool(blockBytes: blockBytes, blockCount: blockCount)
    ready.initialize(to: 0)
    pending.initialize(to: 0)
    let slots = UnsafeMutablePointer<InputSlot>.allocate(capacity: 8)
    let sources = UnsafeMutablePointer<OutputSlot>.allocate(capacity: 8)
    table = .allocate(capacity: 1)
    table.initialize(
      to: PortTable(inputs: slots, inputCount: inputs.count, outputs: sources, outputCount: outputs.count))
    for (index, port) in inputs.enumerated() {
      let link = makeLink(port)
      self.inputs.append(link)
      (slots + index).initialize(to: InputSlot(link: link, drives: true))
    }
    for (index, port) in outputs.enumerated() {
      let links = (0..<port.linkCount).map { _ in makeLink(port) }
      let list = UnsafeMutablePointer<UnsafeMutablePointer<Link>>.allocate(capacity: max(1, links.count))
      list.initialize(from: links, count: links.count)
      lists.append(list)
      self.outputs.append(links)
      (sources + index).initialize(
        to: OutputSlot(
          links: list, linkCount: links.count, pool: .passUnretained(pool), format: UInt16(10 + index)))
    }
  }

  private func makeLink(_ port: Port) -> UnsafeMutablePointer<Link> {
    let counter = UnsafeMutablePointer<LinkCounters>.allocate(capacity: 1)
    counter.initialize(to: LinkCounters())
    counters.append(counter)
    let link = UnsafeMutablePointer<Link>.allocate(capacity: 1)
    let remote = Unmanaged<RemoteWake>.passUnretained(told)
    link.initialize(
      to: Link(
        limit: port.limit, policy: port.policy, burst: port.burst, counters: counter,
        consumer: port.isDeferred
          ? patient(0) : port.isRemote ? Wake(remote: remote, index: 0) : Wake(word: ready, bit: 1),
        producer: port.isDeferred
          ? patient(1) : port.isRemote ? Wake(remote: remote, index: 1) : Wake(word: ready, bit: 2)))
    return link
  }

  private func patient(_ index: Int) -> Wake {
    Wake(word: pending, bit: 1 << UInt64(index), remote: .passUnretained(told), index: index)
  }

  /// Makes output 0 the events output.
  func listen(event text: String) {
    let bytes = Array(text.utf8)
    prefixText = .allocate(capacity: bytes.count)
    prefixText!.initialize(from: bytes, count: bytes.count)
    prefix = .allocate(capacity: 1)
    prefix!.initialize(to: EventPrefix(start: prefixText!, count: bytes.count))
    table.pointee.prefixes = prefix
    table.pointee.prefixCount = 1
    table.pointee.eventsOutput = 0
    table.pointee.eventPool = .passUnretained(pool)
  }

  /// A packet with the same number as first byte, timestamp and position.
  func packet(_ number: Int, generation: UInt32 = 0, flags: PacketFlags = []) -> Packet {
    var packet = Packet(
      pool.take()!, byteCount: 1, timestamp: Int64(number), generation: generation, flags: flags)
    packet.position = Int64(number)
    var bytes = packet.mutableSamples(of: UInt8.self)
    bytes[0] = UInt8(truncatingIfNeeded: number)
    return packet
  }

  /// Takes a packet from a link of an output, as text.
  func takeText(_ output: Int, link: Int = 0) -> String? {
    guard let packet = outputs[output][link].pointee.take(generation: 0) else { return nil }
    let view = packet.samples(of: UInt8.self)
    return String(decoding: view.indices.map { view[$0] }, as: UTF8.self)
  }

  deinit {
    for link in inputs + outputs.flatMap({ $0 }) {
      link.deinitialize(count: 1)
      link.deallocate()
    }
    for counter in counters {
      counter.deinitialize(count: 1)
      counter.deallocate()
    }
    for list in lists { list.deallocate() }
    table.pointee.inputs.deallocate()
    table.pointee.outputs.deallocate()
    table.deallocate()
    prefix?.deallocate()
    prefixText?.deallocate()
    ready.deallocate()
    pending.deallocate()
  }
}

extension TableFixture {
  /// Puts a packet on input 0.
  func feed(_ number: Int) { _ = inputs[0].pointee.put(packet(number)) }
}

/// A group of cells that counts the wake-ups of each end: 0 the reading one, 1 the writing one.
final class Listener: RemoteWake, @unchecked Sendable {
  let ends = (Tally(), Tally())
  override func wake(_ index: Int) { if index == 0 { ends.0.add() } else { ends.1.add() } }
}
