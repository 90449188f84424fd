internal import MillraceCore

/// Another device while the graph runs.
extension AudioPlay {
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
      guard let route, route.line != nil else { throw DeviceName.graphClock }
      let opener = route.opener
      let wanted = try DeviceName.live(name, path: opener.path)
      opening = DeviceOpening(name, waker: opener.waker) { () throws(NodeProblem) in try opener.open(wanted) }
    } catch {
      postError(error, name, &ports)
    }
  }

  /// Moves to the device that was set, once it runs.
  mutating func changeDevice(_ route: DeviceRoute, _ ports: inout Ports) {
    guard let opening else { return }
    do throws(NodeProblem) {
      guard let open = try opening.device ?? nil else { return }
      // One that was set since then takes its place; this one is closed unused.
      if wish == nil {
        switch open.line.clock.reading {
        // Its first reading wakes the node.
        case .none: return
        case .busy: return ports.wake(at: ports.now &+ Self.retry)
        case .line: break
        }
        move(to: open, opening.name, route, &ports)
      }
    } catch {
      postError(error, opening.name, &ports)
    }
    self.opening = nil
    startOpening(&ports)
  }

  /// How soon a clock is read again that was being written, in nanoseconds.
  private static let retry: Nanoseconds = 1_000_000

  private mutating func move(
    to open: OpenPlayback, _ name: String, _ route: DeviceRoute, _ ports: inout Ports
  ) {
    if let line = route.line { postDeviceEvents(line, &ports) }
    route.replace(by: open)
    device = name
    // Devices number their restarts each for itself. Without a clock, what was queued is final, as on a device that disappeared.
    _ = schedule.follow(.none, offset: 0)
    if let lostAt { postBack(ports.now &- lostAt, &ports) }
    let text = Array(name.utf8)
    ports.post(Event.deviceChanged.rawValue) { $0.field("device", utf8: text.span) }
  }

  private func postError(_ problem: NodeProblem, _ name: String, _ ports: inout Ports) {
    let (text, device) = (Array(problem.description.utf8), Array(name.utf8))
    ports.post(Event.error.rawValue) { event in
      event.field("text", utf8: text.span)
      event.field("device", utf8: device.span)
    }
  }
}
