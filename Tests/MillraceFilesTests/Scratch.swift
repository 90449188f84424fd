import Foundation
import MillraceCore

/// A folder for one test's files, gone with the test.
final class Scratch {
  let folder = NSTemporaryDirectory() + "millrace-files-\(UUID().uuidString)"

  init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  func path(_ name: String) -> String { folder + "/" + name }

  /// A file that holds a text.
  func file(_ name: String, _ text: String = "text") -> String {
    FileManager.default.createFile(atPath: path(name), contents: Data(text.utf8))
    return path(name)
  }

  func text(_ name: String) -> String? {
    FileManager.default.contents(atPath: path(name)).map { String(decoding: $0, as: UTF8.self) }
  }
}

/// What was said against something; "nothing" when nothing was.
func refusal(_ body: () throws(NodeProblem) -> Void) -> String {
  do { try body() } catch { return error.text }
  return "nothing"
}
