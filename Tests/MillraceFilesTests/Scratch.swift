import MillraceCore
import TestSystem

/// A directory for one test's files, removed after the test.
struct Scratch {
  private let place = TemporaryFolder()

  var folder: String { place.path }

  func path(_ name: String) -> String { place.file(name) }

  /// A file with the given content.
  func file(_ name: String, _ text: String = "text") -> String {
    put(text.utf8, at: path(name))
    return path(name)
  }

  /// The content of a file; nil if there is none.
  func text(_ name: String) -> String? {
    place.names.contains(name) ? String(decoding: contents(path(name)), as: UTF8.self) : nil
  }
}

/// The error a body throws; "nothing" if it throws none.
func refusal(_ body: () throws(NodeProblem) -> Void) -> String {
  do { try body() } catch { return error.text }
  return "nothing"
}
