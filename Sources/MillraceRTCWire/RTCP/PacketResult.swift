/// What became of a packet that was sent, as transport-wide feedback reports it.
///
/// `TransportFeedbackHistory` makes them and `BandwidthEstimator` reads them. Any values are accepted: the estimator corrects what is
/// impossible.
public struct PacketResult: Sendable, Equatable {
  /// The transport-wide sequence number, unwrapped.
  public var number: Int64
  /// Bytes that the network carries, with the headers of IP and UDP.
  public var bytes: Int
  /// When the packet was sent, in nanoseconds on the sender's clock.
  public var sent: Int64
  /// When it arrived, in nanoseconds on the receiver's clock, whose origin is not known; nil: it did not arrive.
  public var arrival: Int64?

  /// Creates a result.
  public init(number: Int64, bytes: Int, sent: Int64, arrival: Int64?) {
    self.number = number
    self.bytes = bytes
    self.sent = sent
    self.arrival = arrival
  }
}
