public import MillraceNet

extension WebSocketLimits {
  /// For sockets of tests, without pings: a machine that runs all tests at once may take longer to open or close one, or to answer a
  /// ping, than a user would wait.
  public static var patient: WebSocketLimits {
    var limits = WebSocketLimits()
    limits.open = 600_000
    limits.close = 600_000
    limits.ping = 0
    return limits
  }
}
