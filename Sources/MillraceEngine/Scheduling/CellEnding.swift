internal import MillraceCore

/// How a cell ends, by itself or by a fault, and what happens to its links.
extension Worker {
  /// Ends a cell: it is never called again, and its outputs end after their last packet.
  @inline(never)
  func end(_ cell: UnsafeMutablePointer<Cell>, _ strand: Strand) {
    threadOwner.assertIsCurrent()
    unsafe cell.pointee.phase = .ended
    unsafe forgetTimer(of: cell)
    unsafe endOutputs(of: cell)
    unsafe refuseInputs(of: cell, strand)
    unsafe discardInputs(of: cell)
    // A writer that is still active must not wait for this reader.
    if unsafe hasOpenInputs(cell) { unsafe cell.pointee.phase = .discarding }
    unsafe cell.pointee.mailbox.close()
    unsafe loseMail(of: cell, strand)
    if unsafe cell.pointee.hasDependents { unsafe strand.run.endDependents(of: cell.pointee.nodeIndex) }
    unsafe strand.run.cellEnded(cell.pointee.nodeIndex)
  }

  /// Discards the mail of a cell that is over and reports the loss, since it had been accepted.
  @inline(never)
  func loseMail(of cell: UnsafeMutablePointer<Cell>, _ strand: Strand) {
    var count = 0
    while let message = unsafe cell.pointee.mailbox.receive() {
      _ = consume message
      count += 1
    }
    guard count > 0 else { return }
    unsafe strand.run.mailLost(cell, count)
    if isVirtual { unsafe strand.run.decisions.waitUntilNone() }
  }

  private func hasOpenInputs(_ cell: UnsafeMutablePointer<Cell>) -> Bool {
    for index in unsafe 0..<cell.pointee.table.inputCount {
      if let link = unsafe cell.pointee.table.inputs[index].link, unsafe !link.pointee.isOver() {
        return true
      }
    }
    return false
  }

  @inline(never)
  func fail(_ cell: UnsafeMutablePointer<Cell>, _ strand: Strand, _ fault: NodeFault) {
    threadOwner.assertIsCurrent()
    unsafe cell.pointee.phase = .failed
    unsafe forgetTimer(of: cell)
    unsafe cell.pointee.table.wakeAt = Nanoseconds.max
    unsafe strand.run.cellFailed(cell, fault)
    if isVirtual { unsafe strand.run.decisions.waitUntilNone() }
  }

  func endOutputs(of cell: UnsafeMutablePointer<Cell>) {
    for index in unsafe 0..<cell.pointee.table.outputCount {
      for link in unsafe 0..<cell.pointee.table.outputs[index].linkCount {
        unsafe cell.pointee.table.outputs[index].links.unsafelyUnwrapped[link].pointee.end()
      }
    }
  }

  @inline(never)
  func discardInputs(of cell: UnsafeMutablePointer<Cell>) {
    for index in unsafe 0..<cell.pointee.table.inputCount {
      if let link = unsafe cell.pointee.table.inputs[index].link { unsafe link.pointee.discard() }
    }
  }
}
