/// A status of the cloud, in answers and when it closes a connection or a session. Source: the vendor's list of codes.
public struct TuyaStatus: RawRepresentable, Sendable, Hashable {
  /// The number on the wire.
  public var rawValue: UInt16

  /// Creates a status from its number.
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Success.
  public static let ok = TuyaStatus(rawValue: 200)
  /// The request is invalid.
  public static let badRequest = TuyaStatus(rawValue: 400)
  /// The identity or the token was refused.
  public static let unauthenticated = TuyaStatus(rawValue: 401)
  /// What was asked for does not exist.
  public static let notFound = TuyaStatus(rawValue: 404)
  /// The cloud waited too long.
  public static let timeout = TuyaStatus(rawValue: 408)
  /// The cloud failed.
  public static let internalError = TuyaStatus(rawValue: 500)
  /// A part of the cloud did not answer.
  public static let gatewayTimeout = TuyaStatus(rawValue: 504)
  /// Closed by this side.
  public static let closedByClient = TuyaStatus(rawValue: 601)
  /// The same identity is connected elsewhere.
  public static let reused = TuyaStatus(rawValue: 602)
  /// The connection failed.
  public static let connectionFailed = TuyaStatus(rawValue: 603)
  /// No sign of life in time.
  public static let keepAliveTimeout = TuyaStatus(rawValue: 604)
  /// The connection's time is over.
  public static let expired = TuyaStatus(rawValue: 605)
  /// The connection has as many sessions as it may have.
  public static let sessionsFull = TuyaStatus(rawValue: 607)
  /// The agent token has expired.
  public static let tokenExpired = TuyaStatus(rawValue: 1_001)
}
