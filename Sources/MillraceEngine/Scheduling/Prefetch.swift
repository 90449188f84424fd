internal import CMillraceSys
internal import MillraceCore

/// The cache lines that a call of a cell uses besides the cell itself, as addresses; nil where it has none.
///
/// With a thousand live instances, nothing of the next one is still in the cache. The lines depend on each other (cell, link, end
/// of the link, slot), so a call took the misses one after the other, ten times as long as the call itself. With the addresses
/// known in advance they are prefetched together, while the previous cell is being called.
@unsafe
struct CallLines {
  /// The first output's first link, its writing end, its published indices, its first slot and its counters.
  var link: UnsafeRawPointer?
  var end: UnsafeRawPointer?
  var indices: UnsafeRawPointer?
  var slot: UnsafeRawPointer?
  var counters: UnsafeRawPointer?
  /// The node itself.
  var node: UnsafeRawPointer?

  init(_ table: borrowing PortTable, _ executor: AnyExecutor) {
    unsafe node = unsafe executor.nodeAddress
    unsafe link = nil
    unsafe end = nil
    unsafe indices = nil
    unsafe slot = nil
    unsafe counters = nil
    for index in unsafe 0..<table.outputCount where unsafe table.outputs[index].linkCount > 0 {
      guard let first = unsafe table.outputs[index].links?[0] else { continue }
      unsafe link = UnsafeRawPointer(first)
      let lines = unsafe first.pointee.lines
      unsafe end = unsafe lines.end
      unsafe indices = unsafe lines.indices
      unsafe slot = unsafe lines.slot
      unsafe counters = unsafe lines.counters
      return
    }
  }
}

extension Worker {
  /// Cache line size of x86-64 and most ARM64 processors, in bytes; a different size only costs a prefetch too many or too few.
  private static var line: Int { 64 }

  /// Prefetches what a call of this cell uses; the cell itself must be in the cache.
  @inline(__always)
  func fetch(_ cell: UnsafeMutablePointer<Cell>) {
    unsafe millrace_prefetch(cell.pointee.table.inputs)
    unsafe millrace_prefetch(cell.pointee.table.outputs)
    unsafe millrace_prefetch(cell.pointee.executor.toOpaque())
    unsafe millrace_prefetch(cell.pointee.lines.node)
    unsafe Self.fetch(UnsafeRawPointer(cell.pointee.counters), MemoryLayout<CellCounters>.size)
    // Call times of one node vary by an octave or two: one histogram line before the last one's bucket and one after it.
    if let last = unsafe cell.pointee.lastCallTime { unsafe Self.fetch(last - Self.line, 3 * Self.line) }
    if let link = unsafe cell.pointee.lines.link { unsafe Self.fetch(link, MemoryLayout<Link>.size) }
    if let end = unsafe cell.pointee.lines.end { unsafe Self.fetch(end, 2 * Self.line) }
    unsafe millrace_prefetch(cell.pointee.lines.indices)
    unsafe millrace_prefetch(cell.pointee.lines.slot)
    unsafe millrace_prefetch(cell.pointee.lines.counters)
  }

  /// Prefetches for the next two cells downstream: what the nearer one uses, and the farther cell itself.
  @inline(__always)
  func fetchDownstream(_ cell: UnsafeMutablePointer<Cell>, _ strand: Strand) {
    let left = unsafe strand.cellCount &- cell.pointee.index
    if left > 1 { unsafe fetch(cell + 1) }
    if left > 2 { unsafe Self.fetch(UnsafeRawPointer(cell + 2), MemoryLayout<Cell>.size) }
  }

  @inline(__always)
  private static func fetch(_ start: UnsafeRawPointer, _ bytes: Int) {
    var offset = 0
    while offset < bytes {
      unsafe millrace_prefetch(start + offset)
      offset &+= line
    }
  }

  /// Prefetches what the first call of a turn uses.
  @inline(__always)
  func fetchFirst(_ cell: UnsafeMutablePointer<Cell>, _ strand: Strand) {
    unsafe Self.fetch(UnsafeRawPointer(cell), 2 * MemoryLayout<Cell>.stride)
    unsafe fetch(cell)
  }
}
