internal import Glibc
internal import MillraceGraph

/// Where a graph file is that was named.
enum GraphPlace {
  /// A path as it is; a name without a folder also where graphs come with the program: `graphs/` here, beside the program, in
  /// `../share/millrace/graphs` of it, and in the folders above it (a checkout's build folder).
  static func find(_ name: String) throws -> String {
    let places = candidates(name, program: program)
    if let found = places.first(where: { FileKind(path: $0) == .regular }) { return found }
    // Named as a path it is not looked for elsewhere; the loader tells what is wrong with it.
    if name.contains("/") || name.hasSuffix(".json") { return name }
    Output.error.write(
      "error: there is no graph \(Problem.quoted(name)); name a file, such as graphs/\(name).json of the checkout\n"
    )
    throw ExitStatus.usage
  }

  /// In the order they are tried.
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

  /// The names of a graph file's parameters; nil of a file that cannot be read, of which the loader tells.
  static func parameters(of path: String) -> Set<String>? {
    guard let source = try? SourceFile.read(path: path), let root = (try? JSONDocument.scan(source))?.root
    else { return nil }
    return Set((root["parameters"]?.object?.members ?? []).map(\.key))
  }
}
