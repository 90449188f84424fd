/// How much a hub reads of its connections before it leaves the rest to TCP: reading costs time, also where the answer is no.
///
/// It counts in units: a message is one, and each 2 KB of it another. A member that keeps to `requestsPerSecond`, with messages of less
/// than 4 KB, never reaches it.
enum ReadingLimit {
  private static let bytesOfUnit = 2_048
  /// Units a second: the largest message has 65, so that six of them are read in a second.
  private static let least = 400
  /// For each 25 connections that an address may have, it gets as much as one of them; by default, four times as much.
  private static let share = 25

  static func units(_ bytes: Int) -> Int { 1 + bytes / bytesOfUnit }

  static func ofConnection(_ settings: RoomHubSettings) -> RateLimit { RateLimit(perSecond: rate(settings)) }

  static func ofAddress(_ settings: RoomHubSettings) -> RateLimit {
    RateLimit(perSecond: rate(settings) * max(4, settings.connectionsPerAddress / share))
  }

  private static func rate(_ settings: RoomHubSettings) -> Int { max(least, 2 * settings.requestsPerSecond) }
}
