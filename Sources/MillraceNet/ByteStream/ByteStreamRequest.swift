/// Where and how to open a byte stream.
public struct ByteStreamRequest: Sendable {
  /// The address, `tcp://host:port` or `tls://host:port`.
  public var address: WebAddress
  /// Size limits and timeouts.
  public var limits = ByteStreamLimits()
  /// The proxy. The environment's proxy for `https:` is used for `tls:`, and that for `http:` for `tcp:`.
  public var proxy = NetProxy.environment
  /// Which certificates are trusted.
  public var trust = NetTrust.system
  /// The loop that owns the stream: that of its session (`NetLoop.assign`). Nil: `NetLoop.shared`.
  public var loop: NetLoop?

  /// Creates a request.
  public init(_ address: WebAddress) { self.address = address }

  /// What is wrong with the request, or nil. A stream opened with it ends with this error.
  public var problem: NetError? {
    guard address.scheme.isStream else {
      return NetError(.address, "the address of a byte stream must begin with tcp: or tls:")
    }
    return limits.problem
  }
}

extension ByteStreamRequest: CustomStringConvertible {
  /// Scheme, host and port.
  public var description: String { "\(address.scheme)://\(address.authority)" }
}

/// Size limits and timeouts of a byte stream.
public struct ByteStreamLimits: Sendable, Hashable {
  /// Bytes that may wait to be sent; beyond that `send` refuses, except when nothing else waits.
  public var backlog = 1 << 20
  /// Milliseconds to open: DNS lookup, TCP, proxy, TLS. For a server: the client's time for the TLS handshake.
  public var open = 10_000
  /// Milliseconds without a byte from the peer after which the stream ends as `unresponsive`; 0: the peer may be silent for ever, and
  /// one that has lost its network is not detected unless something is sent. Only for a protocol that has a heartbeat. The time does
  /// not run while reading is paused, nor after the peer has ended its direction.
  public var silence = 0
  /// Milliseconds that `close` gives the peer: to take the bytes that wait to be sent, and to end its own direction. After `finish` they
  /// run from when the peer has ended its direction too.
  public var close = 2_000
  /// Bytes that the system may hold without having sent them (`TCP_NOTSENT_LOWAT`, tcp(7)); nil: as many as its send buffer takes, which
  /// are megabytes on a slow network.
  ///
  /// With it, bytes that the peer's window does not take wait in `backlog` instead: a sender who looks at `backlog` decides late what goes
  /// next, and urgent bytes follow fewer others. `backlog` falls, and `drained` comes, as the network takes bytes, not as the system's
  /// buffer does: on a slow network both come later, and `send` refuses earlier. The system completes the segment it has begun: up to
  /// 64 KiB more within a machine. With TLS the bytes are those of the encrypted records.
  ///
  /// Source of the option: linux/tcp.h, since Linux 3.12.
  public var unsent: Int?

  /// Creates the defaults.
  public init() {}

  /// What is wrong with the limits, or nil.
  var problem: NetError? {
    if let unsent, !(1...Int(Int32.max)).contains(unsent) {
      return NetError(
        .address, "the unsent bytes of a byte stream must be at least 1, and at most 2147483647")
    }
    guard backlog > 0 && open > 0 && silence >= 0 && close > 0 else {
      return NetError(
        .address, "the backlog and the times of a byte stream must be at least 1; only silence may be 0")
    }
    return nil
  }
}
