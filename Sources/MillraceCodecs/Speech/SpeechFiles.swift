internal import Glibc
internal import MillraceCore
internal import MillraceFiles

/// The files behind the parameter `path` of `speech.read`.
enum SpeechFiles {
  private static let endings = [".mp3", ".opus", ".ogg"]
  /// Bytes read at a time.
  private static let piece = 16_384

  /// The file, or the encoded files of the folder, sorted by name. Control side.
  static func paths(_ path: String) throws(NodeProblem) -> [String] {
    guard isFolder(path) else {
      try FileCheck.reading(path)
      guard isCoded(path) else {
        throw NodeProblem(
          "\"\(path)\" does not end in .mp3, .opus or .ogg", parameter: "path",
          cure: "use audio.read for other formats; its parameter \"reply\" makes it a reply")
      }
      return [path]
    }
    let names = names(in: path).filter(isCoded).sorted()
    guard !names.isEmpty else {
      throw NodeProblem(
        "\"\(path)\" contains no .mp3, .opus or .ogg file", parameter: "path", cure: "name another folder")
    }
    let paths = names.map { path.hasSuffix("/") ? path + $0 : path + "/" + $0 }
    for path in paths { try FileCheck.reading(path) }
    return paths
  }

  /// Throws the reason if a file, or with `arePieces` all files together, contains no audio. Control side.
  static func check(_ paths: [String], arePieces: Bool) throws(NodeProblem) {
    var scan = ReplyScan(isMP3: isMP3(paths[0]))
    var (total, head) = (0, [UInt8]())
    for (index, path) in paths.enumerated() {
      if !arePieces {
        scan = ReplyScan(isMP3: isMP3(path))
        (total, head) = (0, [])
      }
      try scanFile(path, &scan, &total, &head)
      if scan.hasSound && arePieces { return }
      // The end of the file may confirm a frame.
      guard !scan.hasSound, !arePieces || index == paths.count - 1 else { continue }
      let problem = scan.problem(path, bytes: total, head: head)
      _ = scan.finish()
      if !scan.hasSound { throw problem }
    }
  }

  /// Reads a file until audio is found, or to its end.
  private static func scanFile(
    _ path: String, _ scan: inout ReplyScan, _ total: inout Int, _ head: inout [UInt8]
  ) throws(NodeProblem) {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw FileMessages.problem(errno, path, for: .reading) }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: piece)
    while !scan.hasSound {
      let count = unsafe read(file, &bytes, bytes.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw FileMessages.problem(errno, path, for: .reading) }
      if count == 0 { return }
      if total == 0 { head = Array(bytes.prefix(min(count, 64))) }
      total += count
      scan.feed(bytes.span.extracting(first: count))
    }
  }

  static func isMP3(_ path: String) -> Bool { path.hasSuffix(".mp3") }

  private static func isCoded(_ name: String) -> Bool { endings.contains { name.hasSuffix($0) } }

  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  private static func names(in folder: String) -> [String] {
    guard let stream = unsafe opendir(folder) else { return [] }
    defer { _ = unsafe closedir(stream) }
    var names: [String] = []
    while let entry = unsafe readdir(stream) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { start in
        unsafe start.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      names.append(name)
    }
    return names
  }
}
