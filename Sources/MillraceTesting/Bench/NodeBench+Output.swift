public import MillraceCore

extension NodeBench {
  /// Takes every packet emitted by an output since the last call.
  public func packets(_ output: String = "out") -> [CapturedPacket] {
    collect()
    let index = self.output(output)
    let packets = captured[index]
    captured[index] = []
    return packets
  }

  /// Takes the samples emitted by an s16 output, concatenated.
  public func int16(_ output: String = "out") -> [Int16] {
    expect(.s16, at: output)
    return packets(output).flatMap(\.int16)
  }

  /// Takes the samples emitted by an f32 output, concatenated.
  public func float(_ output: String = "out") -> [Float] {
    expect(.f32, at: output)
    return packets(output).flatMap(\.float)
  }

  /// Takes the packets emitted by an output, each as text.
  public func texts(_ output: String = "out") -> [String] { packets(output).map(\.text) }

  /// Takes the events posted since the last call.
  public func events() -> [BenchEvent] {
    guard outputNames.contains(NodeContract.eventsPort) else { return [] }
    return packets(NodeContract.eventsPort).map { BenchEvent(json: $0.text) }
  }

  /// Stops draining an output, so that its link fills up and the node gets back-pressure.
  public func hold(_ output: String = "out") {
    collect()
    isHeld[self.output(output)] = true
  }

  /// Drains a held output again.
  public func release(_ output: String = "out") {
    isHeld[self.output(output)] = false
    collect()
  }

  /// Takes one packet with its block from a held output; nil when none waits. It must be released before the bench.
  public func take(_ output: String = "out") -> Packet? {
    let index = self.output(output)
    guard isHeld[index] else {
      fatalError("call hold(\"\(output)\") first: a bench drains outputs that are not held")
    }
    unsafe wiring.drain.pointee.generation = wiring.node.pointee.generation
    var outside = unsafe Ports(drainTable)
    return outside.next(index)
  }

  /// The statistics of an output's link; nil when it is unlinked.
  public func linkCounts(_ output: String = "out") -> LinkCounts? {
    wiring.outputLinks[self.output(output)]?.counts
  }

  /// Copies what the node has emitted.
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
