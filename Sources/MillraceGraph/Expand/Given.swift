/// A value with everything replaced that stood in it for something else.
struct Given: Sendable {
  /// nil: it could not be found out, and the reason is told already.
  var value: WrittenValue?
  /// How much memory it may take: bytes of its texts, and 1 for each item that is none.
  var weight = 1
  /// Where it is used.
  var place: Place
  /// The folder relative paths start in; empty for the current directory.
  var folder: String
  /// It came from the environment, or is marked as secret: it is never shown.
  var isSecret = false
  /// A part of it is secret where it is used: problems do not repeat it.
  var holdsSecret = false
  /// Where it came from when not from its place, such as `--set rate`.
  var note: String?

  /// As problems show it, with where it came from.
  func shown(_ value: WrittenValue) -> String {
    if isSecret || holdsSecret { return "a secret value" }
    return note.map { "\(value.shown) (from \($0))" } ?? value.shown
  }

  /// A value nobody can use.
  static func unknown(at place: Place) -> Given { Given(value: nil, place: place, folder: "") }
}
