internal import MillraceCore

extension GraphPlan.Node {
  /// Bytes of the channel between a source or sink of the program and the program: its ring, and blocks for queued packets. 0 for any
  /// other node.
  var channelBytes: Int {
    switch contract.appEnd {
    case .source:
      guard let shape = outputs.first?.shape else { return 0 }
      let settings = SourceSettings(parameters, shape.format)
      return SourceChannel.byteCount(packetBytes: shape.packetBytes, capacity: settings.capacity)
    case .sink:
      guard let shape = inputs.first?.shape else { return 0 }
      return SinkChannel.byteCount(shape, capacity: SinkChannel.capacity(parameters, shape.format))
    case nil: return 0
    }
  }
}
