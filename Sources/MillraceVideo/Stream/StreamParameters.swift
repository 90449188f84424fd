internal import MillraceCore

/// Parameters that pulling and pushing a live stream have in common.
extension ParameterContract {
  static let streamRoots = ParameterContract(
    "roots", .path, text: "with `rtmps:`, certificates (PEM) to believe in place of the system's")
  static let streamReconnect = ParameterContract(
    "reconnect", .bool, default: true, text: "true: connect again after a loss")
  static let streamFirst = ParameterContract(
    "first", .number(1...600_000), unit: "ms", default: 500, text: "first wait before that")
  static let streamMost = ParameterContract(
    "most", .number(1...600_000), unit: "ms", default: 8_000, text: "longest wait")
  static let streamGiveUp = ParameterContract(
    "giveUp", .number(0...86_400_000), unit: "ms", default: 0,
    text: "fail after so long without a stream; 0: never")
}

extension Backoff {
  /// What a stream's parameters say about its attempts; not in step with any other's.
  init(_ values: ParameterValues) {
    self.init(
      first: values.nanoseconds("first"), most: values.nanoseconds("most"),
      giveUp: values.nanoseconds("giveUp"), seed: UInt64(bitPattern: Clock(.realtime).now))
  }
}
