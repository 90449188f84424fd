internal import MillraceCore
internal import MillraceGraph

/// A change of a running graph requested by a control command.
///
/// ```json
/// { "command": "add", "part": "recorder", "file": "recorder.json", "links": ["mic -> recorder/rec"] }
/// { "command": "add", "part": "fx", "type": "audio.gain", "parameters": { "gain": -6 }, "links": ["mic -> fx", "fx -> enc"] }
/// { "command": "remove", "part": "fx", "links": ["mic -> enc"] }
/// { "command": "relink", "links": ["mic2 -> enc"], "unlink": ["mic -> meter"] }
/// ```
///
/// A new link replaces the link that its input has.
struct ControlChange: Sendable {
  enum Kind: Sendable {
    /// Adds a part from a graph file, with values for its parameters.
    case addFile(part: String, path: String, set: [String: String])
    /// The same, when the file has been read.
    case addGraph(part: String, graph: GraphDescription, set: [String: String])
    /// Adds a part that consists of one node.
    case addNode(part: String, type: String, parameters: [String: ParameterValue])
    case remove(part: String)
    case relink
  }
  private(set) var kind: Kind
  let links: [String]
  let unlink: [String]

  /// Reads the graph file of a part, which may take time: before the change is due.
  mutating func readFile() throws(ControlError) {
    guard case .addFile(let part, let path, let set) = kind else { return }
    // A pipe whose writer is silent would hold up all commands that follow.
    if FileKind(path: path) == .pipe {
      throw ControlError(
        "cannot read the graph file \(Problem.quoted(path)): it is a named pipe", hint: "name a regular file")
    }
    do throws(Problems) {
      kind = .addGraph(part: part, graph: try GraphDescription(path: path), set: set)
    } catch {
      throw ControlError("\(error)")
    }
  }
}
