package import MillraceCore

/// Another device while the graph runs.
extension AudioCapture: DeviceChanging {
  package static var changeEvents: (changed: Int, error: Int) {
    (Event.deviceChanged.rawValue, Event.error.rawValue)
  }

  package borrowing func opening(of name: String) throws(NodeProblem) -> DeviceOpening<OpenCapture> {
    guard open != nil else { throw DeviceName.graphClock }
    let opener = opener
    let wanted = try DeviceName.live(name, path: opener.path)
    return DeviceOpening(name, waker: opener.waker) { () throws(NodeProblem) in
      guard let open = try opener.open(wanted) else { throw DeviceName.graphClock }
      return open
    }
  }

  /// Ready is a device that records, once everything the present one has recorded was taken. Its first block wakes the node.
  package mutating func readiness(of device: OpenCapture, _ ports: inout Ports) -> DeviceReadiness {
    guard device.line.front != nil || device.line.isOver else { return .silent }
    return open?.line.front == nil ? .ready : .running
  }

  package mutating func move(to other: OpenCapture, _ ports: inout Ports) -> Bool {
    if let open { postDeviceEvents(open.line, &ports) }
    _ = other.line.takeOverrun()
    let isLost = DeviceEvent.drain(other.line.nextEvent)
    open = other
    hasMoved = true
    if let lostAt { postBack(ports.now &- lostAt, &ports) }
    return isLost
  }

  /// Places the first block of another device where its time is, behind the last one of the device before. Blocks that begin before the end of
  /// that were recorded by both, and are dropped.
  mutating func join(_ line: CaptureLine) {
    guard hasMoved, let end else { return }
    while let block = line.front, block.time < end.time { line.drop() }
    guard let block = line.front else { return }
    let gap = Int64((Double(block.time &- end.time) * Double(rate) / 1e9).rounded())
    origin = block.position &- end.position &- gap
  }
}
