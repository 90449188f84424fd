public import MillraceGraph

/// What a service adds to the members of every scenario, or of every turn.
///
/// ```swift
/// struct ParrotMembers: ScenarioMembers {
///   static let names = ["wings"]
///   var wings = 2
///
///   mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
///     switch member.key {
///     case "wings": wings = try reader.integer(member, 0...2)
///     default: return false
///     }
///     return true
///   }
/// }
/// ```
public protocol ScenarioMembers: Sendable, Hashable {
  /// The names of the members that a file may contain, for messages.
  static var names: [String] { get }

  /// Every member at its default.
  init()

  /// Reads a member, or throws what is wrong with it and where. False when it is none of these.
  mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool
}

/// For services that add nothing.
public struct NoMembers: ScenarioMembers {
  public static var names: [String] { [] }

  /// There are none.
  public init() {}

  public mutating func read(_: JSONMember, _: ScenarioReader) throws(ScenarioProblem) -> Bool { false }
}
