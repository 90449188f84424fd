internal import Glibc
internal import MillraceGraph

/// Finds graph files by path or name.
enum GraphFinder {
  /// Returns a path unchanged. A name without a directory is also looked up among the graphs that come with the program: in `graphs/` of
  /// the current directory, beside the program, in `../share/millrace/graphs`, and in the directories above (for a build in a checkout).
  static func find(_ name: String) throws -> String {
    let places = candidates(name, program: program)
    if let found = places.first(where: { FileKind(path: $0) == .regular }) { return found }
    // For a path, the loader reports the error.
    if name.contains("/") || name.hasSuffix(".json") { return name }
    Output.error.write(
      "error: there is no graph \(Problem.quoted(name)); name a graph file, such as graphs/\(name).json\n"
    )
    throw ExitStatus.usage
  }

  /// The paths to try, in this order.
  static func candidates(_ name: String, program: String) -> [String] {
    guard !name.contains("/") else { return [name] }
    let file = name.hasSuffix(".json") ? name : name + ".json"
    var places = name.hasSuffix(".json") ? [name] : []
    places.append("graphs/\(file)")
    var folder = program[...]
    for level in 0..<5 {
      guard let slash = folder.lastIndex(of: "/") else { break }
      folder = folder[..<slash]
      places.append("\(folder)/graphs/\(file)")
      if level == 1 { places.append("\(folder)/share/millrace/graphs/\(file)") }
    }
    return places
  }

  /// The path of this program.
  private static var program: String {
    var buffer = [UInt8](repeating: 0, count: 4_096)
    let count = unsafe buffer.withUnsafeMutableBytes { bytes in
      unsafe readlink("/proc/self/exe", bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : ""
  }

  /// The node types of a graph, as far as they are known before its parameters are.
  struct NodeTypes {
    var types: Set<String> = []
    /// The paths of included files that depend on parameters, such as `${part}.json`: their nodes are not among the types.
    var openPaths: [String] = []
  }

  /// The types of all nodes of a graph file and of the files it includes; nil when it cannot be read, which the loader reports.
  static func nodeTypes(of path: String) -> NodeTypes? {
    var found = NodeTypes()
    var paths = [path]
    var known: Set<String> = [path]
    while let next = paths.popLast() {
      guard let root = root(of: next) else {
        if next == path { return nil }
        continue
      }
      for node in root["nodes"]?.object?.members ?? [] {
        guard let type = node.value["type"]?.string else { continue }
        found.types.insert(type)
        guard type == "graph", let include = node.value["path"]?.string else { continue }
        guard !include.contains("${") else {
          found.openPaths.append(include)
          continue
        }
        let folder = include.hasPrefix("/") ? "" : folder(of: next)
        if known.insert(folder + include).inserted { paths.append(folder + include) }
      }
    }
    return found
  }

  /// The folder of a file, with the slash at its end; empty for the current one.
  private static func folder(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
  }

  private static func root(of path: String) -> JSONNode? {
    guard let source = try? SourceFile.read(path: path) else { return nil }
    return (try? JSONDocument.scan(source))?.root
  }

  /// The names of a graph file's parameters; nil when the file cannot be read, which the loader reports.
  static func parameters(of path: String) -> Set<String>? {
    guard let root = root(of: path) else { return nil }
    return Set((root["parameters"]?.object?.members ?? []).map(\.key))
  }
}
