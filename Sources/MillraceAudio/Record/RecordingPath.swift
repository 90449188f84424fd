package import MillraceCore
internal import MillraceFiles

/// What a recording may be written to.
package enum RecordingPath {
  /// Refuses what cannot be created or written, and pipes. Looks, changes nothing; control side.
  package static func check(_ path: String, medium: String = "sound") throws(NodeProblem) {
    try FileCheck.writing(path)
    guard FileCheck.isPipe(path) else { return }
    throw NodeProblem(
      "\"\(path)\" is a pipe; a recording is completed by going back to its beginning", parameter: "path",
      cure: "write to a file, or send the \(medium) to process.pipe")
  }
}
