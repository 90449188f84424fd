internal import MillraceService

extension TuyaSession {
  /// Creates a session that has not started. The ids of sessions and events are random.
  public init(_ rules: TuyaRules) { self.init(rules) { RandomID.uuid() } }
}
