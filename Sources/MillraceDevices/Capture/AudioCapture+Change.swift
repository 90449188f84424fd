internal import MillraceCore

/// Another device while the graph runs.
extension AudioCapture {
  /// Begins to open the device that was set. While another one is being opened, it waits for that: a device may be usable only once.
  mutating func setDevice(_ name: String, _ ports: inout Ports) {
    wish = name
    startOpening(&ports)
  }

  private mutating func startOpening(_ ports: inout Ports) {
    guard opening == nil, let name = wish else { return }
    wish = nil
    guard name != device else { return }
    do throws(NodeProblem) {
      guard open != nil else { throw DeviceName.graphClock }
      let opener = opener
      let wanted = try DeviceName.live(name, path: opener.path)
      opening = DeviceOpening(name, waker: opener.waker) { () throws(NodeProblem) in try opener.open(wanted) }
    } catch {
      postError(error, name, &ports)
    }
  }

  /// Moves to the device that was set, once it records and everything the present one has recorded was taken.
  mutating func changeDevice(_ ports: inout Ports) {
    guard let opening else { return }
    do throws(NodeProblem) {
      guard let other = try opening.device ?? nil else { return }
      // One that was set since then takes its place; this one is closed unused.
      if wish == nil {
        // Its first block wakes the node.
        guard other.line.front != nil || other.line.isOver, open?.line.front == nil else { return }
        move(to: other, opening.name, &ports)
      }
    } catch {
      postError(error, opening.name, &ports)
    }
    self.opening = nil
    startOpening(&ports)
  }

  private mutating func move(to other: OpenCapture, _ name: String, _ ports: inout Ports) {
    if let open { postDeviceEvents(open.line, &ports) }
    _ = other.line.takeOverrun()
    open = other
    device = name
    hasMoved = true
    if let lostAt { postBack(ports.now &- lostAt, &ports) }
    let text = Array(name.utf8)
    ports.post(Event.deviceChanged.rawValue) { $0.field("device", utf8: text.span) }
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

  private func postError(_ problem: NodeProblem, _ name: String, _ ports: inout Ports) {
    let (text, device) = (Array(problem.description.utf8), Array(name.utf8))
    ports.post(Event.error.rawValue) { event in
      event.field("text", utf8: text.span)
      event.field("device", utf8: device.span)
    }
  }
}
