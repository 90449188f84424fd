public import MillraceCore

extension NodeBench {
  /// Takes every packet that came out of an output since the last look.
  public func packets(_ output: String = "out") -> [CapturedPacket] {
    collect()
    let index = self.output(output)
    let packets = captured[index]
    captured[index] = []
    return packets
  }

  /// Takes what came out of a s16 output, joined.
  public func int16(_ output: String = "out") -> [Int16] {
    expect(.s16, at: output)
    return packets(output).flatMap(\.int16)
  }

  /// Takes what came out of an f32 output, joined.
  public func float(_ output: String = "out") -> [Float] {
    expect(.f32, at: output)
    return packets(output).flatMap(\.float)
  }

  /// Takes what came out of an output, each packet as text.
  public func texts(_ output: String = "out") -> [String] { packets(output).map(\.text) }

  /// Takes the events the node posted since the last look.
  public func events() -> [BenchEvent] {
    guard outputNames.contains(NodeContract.eventsPort) else { return [] }
    return packets(NodeContract.eventsPort).map { BenchEvent(json: $0.text) }
  }

  /// Stops taking packets away from an output, so that its link fills up and the node is held back.
  public func hold(_ output: String = "out") {
    collect()
    isHeld[self.output(output)] = true
  }

  /// Takes packets away from a held output again.
  public func release(_ output: String = "out") {
    isHeld[self.output(output)] = false
    collect()
  }

  /// Takes one packet itself, blocks and all, from a held output; nil when none waits. It must be gone before the bench is.
  public func take(_ output: String = "out") -> Packet? {
    let index = self.output(output)
    guard isHeld[index] else { fatalError("hold(\"\(output)\") first: a bench copies out what is not held") }
    unsafe wiring.drain.pointee.generation = wiring.node.pointee.generation
    var outside = unsafe Ports(drainTable)
    return outside.next(index)
  }

  /// What happened on the link behind an output; nil when it is unlinked.
  public func linkCounts(_ output: String = "out") -> LinkCounts? {
    wiring.outputLinks[self.output(output)]?.counts
  }

  /// Copies out what the node has emitted.
  func collect() {
    unsafe wiring.drain.pointee.generation = wiring.node.pointee.generation
    var outside = unsafe Ports(drainTable)
    for index in captured.indices where !isHeld[index] {
      while let packet = outside.next(index) { captured[index].append(CapturedPacket(packet)) }
    }
  }

  private func expect(_ sample: SampleType, at output: String) {
    guard shape(output).format.sample == sample else {
      fatalError("output \"\(output)\" carries \(shape(output).format), not \(sample) samples")
    }
  }
}
