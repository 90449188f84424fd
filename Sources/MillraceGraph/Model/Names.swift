/// The valid names of nodes and graph parameters.
package enum Names {
  /// The cure for an invalid name.
  package static let rule = "use letters, digits, \"_\" and \"-\""

  /// What is wrong with a name; nil for a valid one. Dots are reserved for ports and for nodes of included graphs.
  package static func objection(to name: String, of noun: String) -> String? {
    if name.isEmpty { return "a \(noun) name must not be empty" }
    let isPlain = name.unicodeScalars.allSatisfy { scalar in
      scalar == "_" || scalar == "-" || scalar.properties.isAlphabetic || scalar.properties.numericType != nil
    }
    return isPlain ? nil : "\(Problem.quoted(name)) is not a valid \(noun) name"
  }
}

/// Parts of sentences.
enum Wording {
  /// `"a", "b" and "c"`
  static func list(_ names: [String]) -> String { joined(names.map(Problem.quoted), by: "and") }

  /// `"a", "b" or "c"`
  static func oneOf(_ names: [String]) -> String { joined(names.map(Problem.quoted), by: "or") }

  /// The first sentence of a text, for use inside another one: without its full stop and its capital.
  static func phrase(_ text: String) -> String {
    var end = text.endIndex
    if let stop = text.indices.first(where: { index in
      let next = text.index(after: index)
      return text[index] == "." && (next == text.endIndex || text[next] == " ")
    }) {
      end = stop
    }
    var phrase = String(text[..<end])
    // A capital followed by another is an abbreviation.
    let second = phrase.dropFirst().first
    if let first = phrase.first, second?.isUppercase != true {
      phrase.replaceSubrange(phrase.startIndex...phrase.startIndex, with: first.lowercased())
    }
    return phrase
  }

  static func joined(_ words: [String], by conjunction: String) -> String {
    guard words.count > 1, let last = words.last else { return words.first ?? "" }
    return words.dropLast().joined(separator: ", ") + " \(conjunction) " + last
  }
}

/// Paths as text; none of this accesses the file system.
enum Paths {
  /// The directory part, without the last slash; empty for a plain name.
  static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "" }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// A path relative to a folder, as seen from the current directory. Absolute paths, URLs, and `-` for standard input and output
  /// are unchanged.
  static func resolve(_ path: String, in folder: String) -> String {
    if folder.isEmpty || path.isEmpty || path == "-" || path.hasPrefix("/") || path.contains("://") {
      return path
    }
    return folder.hasSuffix("/") ? folder + path : "\(folder)/\(path)"
  }

  /// The path without `.` and `x/..`, so that different spellings of it compare equal.
  static func normalized(_ path: String) -> String {
    var parts: [Substring] = []
    for part in path.split(separator: "/") where part != "." {
      if part == "..", let last = parts.last, last != ".." {
        parts.removeLast()
      } else {
        parts.append(part)
      }
    }
    return (path.hasPrefix("/") ? "/" : "") + parts.joined(separator: "/")
  }

  /// The file name without directory and extension.
  static func stem(of path: String) -> String {
    let name = path.split(separator: "/").last ?? ""
    guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return String(name) }
    return String(name[..<dot])
  }
}
