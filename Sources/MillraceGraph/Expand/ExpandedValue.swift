/// A value whose placeholders are replaced.
struct ExpandedValue: Sendable {
  /// nil when it is unknown for a reason already reported.
  var value: WrittenValue?
  /// The memory it may use: bytes of its strings, and 1 for each other item.
  var weight = 1
  /// Where it is used.
  var place: Place
  /// The folder that relative paths start at; empty for the current directory.
  var folder: String
  /// It comes from the environment or is marked as secret, and is never shown.
  var isSecret = false
  /// A part of it is secret where it is used, and problems do not repeat it.
  var holdsSecret = false
  /// Where it comes from when not from its place, such as `--set rate`.
  var note: String?

  /// The value as problems show it, with its origin.
  func shown(_ value: WrittenValue) -> String {
    if isSecret || holdsSecret { return "a secret value" }
    return note.map { "\(value.shown) (from \($0))" } ?? value.shown
  }

  /// An unknown value.
  static func unknown(at place: Place) -> ExpandedValue {
    ExpandedValue(value: nil, place: place, folder: "")
  }
}
