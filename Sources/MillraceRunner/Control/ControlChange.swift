internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// A change of a running graph, as a control command asks for it.
///
/// ```json
/// { "command": "add", "part": "recorder", "file": "recorder.json", "links": ["mic -> recorder/rec"] }
/// { "command": "add", "part": "fx", "type": "audio.gain", "parameters": { "gain": -6 }, "links": ["mic -> fx", "fx -> enc"] }
/// { "command": "remove", "part": "fx", "links": ["mic -> enc"] }
/// { "command": "relink", "links": ["mic2 -> enc"], "unlink": ["mic -> meter"] }
/// ```
///
/// A link takes the place of what feeds its input.
struct ControlChange: Sendable {
  enum Kind: Sendable {
    /// A part from a graph file, with values for its parameters.
    case addFile(part: String, path: String, set: [String: String])
    /// A part of one node.
    case addNode(part: String, type: String, parameters: [String: ParameterValue])
    case remove(part: String)
    case relink
  }
  let kind: Kind
  let links: [String]
  let unlink: [String]

  /// Carries it out. Any thread; a part's nodes are made meanwhile.
  func carryOut(on run: GraphRun) throws(ControlProblem) {
    do throws(EditProblem) {
      switch kind {
      case .addFile(let part, let path, let set): try add(part, from: path, set, to: run)
      case .addNode(let part, let type, let parameters):
        try run.add(part, type, parameters, links: edit)
      case .remove(let name):
        guard let part = run.currentParts.first(where: { $0.name == name }) else {
          throw EditProblem(
            .unknownNode, "there is no part \(Problem.quoted(name))", cure: "name a part that runs")
        }
        try part.remove(edit)
      case .relink: try run.edit(edit)
      }
    } catch {
      throw ControlProblem(error.description)
    }
  }

  private func add(_ part: String, from path: String, _ set: [String: String], to run: GraphRun)
    throws(EditProblem)
  {
    let graph: GraphDescription
    do throws(Problems) {
      graph = try GraphDescription(path: path)
    } catch {
      throw EditProblem(.badGraph, "\(error)")
    }
    try run.add(graph, named: part, settings: GraphSettings(set: set), links: edit)
  }

  private func edit(_ edit: inout GraphEdit) {
    for link in unlink { edit.unlink(link) }
    for link in links { edit.relink(link) }
  }
}
