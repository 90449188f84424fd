internal import MillraceCore

/// Parameters shared by pulling and pushing a live stream.
extension ParameterContract {
  static let streamRoots = ParameterContract(
    "roots", .path, text: "with `rtmps:`, a file of trusted certificates (PEM) that replaces the system's")
  static let streamReconnect = ParameterContract(
    "reconnect", .bool, default: true, text: "reconnect after a loss")
  static let streamFirst = ParameterContract(
    "first", .number(1...600_000), unit: "ms", default: 500, text: "first backoff")
  static let streamMost = ParameterContract(
    "most", .number(1...600_000), unit: "ms", default: 8_000, text: "longest backoff")
  static let streamGiveUp = ParameterContract(
    "giveUp", .number(0...86_400_000), unit: "ms", default: 0,
    text: "fail after this time without a stream; 0: never")
}

extension Backoff {
  /// The backoff in a stream's parameters, with its own jitter.
  init(_ values: ParameterValues) {
    self.init(
      first: values.nanoseconds("first"), most: values.nanoseconds("most"),
      giveUp: values.nanoseconds("giveUp"), seed: UInt64(bitPattern: Clock(.realtime).now))
  }
}
