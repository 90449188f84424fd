package import MillraceCore

/// Another device while the graph runs.
extension AudioPlay: DeviceChanging {
  package static var changeEvents: (changed: Int, error: Int) {
    (Event.deviceChanged.rawValue, Event.error.rawValue)
  }

  package borrowing func opening(of name: String) throws(NodeProblem) -> DeviceOpening<OpenPlayback> {
    guard let route, route.line != nil else { throw DeviceName.graphClock }
    let opener = route.opener
    let wanted = try DeviceName.live(name, path: opener.path)
    return DeviceOpening(name, waker: opener.waker) { () throws(NodeProblem) in
      guard let open = try opener.open(wanted) else { throw DeviceName.graphClock }
      return open
    }
  }

  /// Ready is a device with a clock, whose first reading wakes the node.
  package mutating func readiness(of device: OpenPlayback, _ ports: inout Ports) -> DeviceReadiness {
    switch device.line.clock.reading {
    case .none: return .silent
    case .busy:
      ports.wake(at: ports.now &+ Self.retry)
      return .running
    case .line: return .ready
    }
  }

  /// How soon a clock is read again that was being written, in nanoseconds.
  static let retry: Nanoseconds = 1_000_000

  package mutating func move(to open: OpenPlayback, _ ports: inout Ports) -> Bool {
    guard let route else { return false }
    if let line = route.line { postDeviceEvents(line, &ports) }
    let isLost = DeviceEvent.drain(open.line.nextEvent)
    route.replace(by: open)
    // Devices number their restarts each for itself. Without a clock, what was queued is final, as on a device that disappeared.
    _ = schedule.follow(.none, offset: 0)
    hasMoved = true
    if let lostAt { postBack(ports.now &- lostAt, &ports) }
    return isLost
  }
}
