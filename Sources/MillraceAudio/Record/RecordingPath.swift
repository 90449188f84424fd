package import MillraceCore
internal import MillraceFiles

/// Checks the path of a recording.
package enum RecordingPath {
  /// Refuses pipes and paths that cannot be created or written. Changes nothing; control side.
  package static func check(_ path: String, medium: String = "audio") throws(NodeProblem) {
    try FileCheck.writing(path)
    guard FileCheck.isPipe(path) else { return }
    throw NodeProblem(
      "\"\(path)\" is a pipe, but a recording is completed by rewriting its beginning", parameter: "path",
      cure: "write to a file, or send the \(medium) to process.pipe")
  }

  /// The problem of a path that was set again while it is recorded to.
  package static func alreadyRecorded(_ path: String) -> NodeProblem {
    NodeProblem(
      "\"\(path)\" is being recorded already", parameter: "path",
      cure: "to begin it again, which replaces it, set \"path\" to \"\" first")
  }
}
