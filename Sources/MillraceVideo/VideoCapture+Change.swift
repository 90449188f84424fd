package import MillraceCore

/// Another device while the graph runs.
extension VideoCapture: DeviceChanging {
  package static var changeEvents: (changed: Int, error: Int) {
    (Event.deviceChanged.rawValue, Event.error.rawValue)
  }

  package borrowing func opening(of name: String) throws(NodeProblem) -> DeviceOpening<CaptureDevice> {
    guard place.kind != .test else {
      throw NodeProblem(
        "test pictures come from no device", parameter: "device",
        cure: "set \"source\" to screen or camera before the start")
    }
    let (place, waker) = (place, waker)
    return DeviceOpening(name, waker: waker) { () throws(NodeProblem) in
      try CaptureDevice(try place.input(from: name), waker: waker)
    }
  }

  /// Ready is a device with a picture, which wakes the node.
  package mutating func readiness(of device: CaptureDevice, _ ports: inout Ports) throws(NodeProblem)
    -> DeviceReadiness
  {
    let state = device.thread.state
    guard !state.hasPicture, let ending = state.ending else { return state.hasPicture ? .ready : .silent }
    throw NodeProblem("\(device.name) was lost before its first picture: \(ending)", parameter: "device")
  }

  package mutating func move(to device: CaptureDevice, _ ports: inout Ports) -> Bool {
    if case .device(let present) = source { postDamage(present.thread.fetch().damage, isLast: true, &ports) }
    source = .device(device)
    damaged = CountedEvent()
    hasMoved = true
    return false
  }

  /// The loss of a screen or a camera ends the node, after its last picture.
  package mutating func postLost(_ ports: inout Ports) {}
}
