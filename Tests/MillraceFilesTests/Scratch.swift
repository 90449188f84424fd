import MillraceCore
import TestSystem

/// A folder for one test's files, gone with the test.
struct Scratch {
  private let place = TemporaryFolder()

  var folder: String { place.path }

  func path(_ name: String) -> String { place.file(name) }

  /// A file that holds a text.
  func file(_ name: String, _ text: String = "text") -> String {
    put(text.utf8, at: path(name))
    return path(name)
  }

  /// What a file holds; nil where there is none.
  func text(_ name: String) -> String? {
    place.names.contains(name) ? String(decoding: contents(path(name)), as: UTF8.self) : nil
  }
}

/// What was said against something; "nothing" when nothing was.
func refusal(_ body: () throws(NodeProblem) -> Void) -> String {
  do { try body() } catch { return error.text }
  return "nothing"
}
