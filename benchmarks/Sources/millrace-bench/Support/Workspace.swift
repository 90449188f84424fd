import Glibc

/// What a suite could not do, in words, for the last line of a failed measurement.
struct BenchProblem: Error, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}

/// A folder for the files of one suite, removed with the value.
struct Workspace: ~Copyable {
  let path: String

  /// Makes the folder below `TMPDIR`, or below /tmp.
  init() throws {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/millrace-bench.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw BenchProblem("cannot make a folder in \"\(parent)\" (errno \(errno))")
    }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The path of a file in the folder.
  func file(_ name: String) -> String { "\(path)/\(name)" }

  deinit {
    guard let folder = opendir(path) else { return }
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != "." && name != ".." { unlink(file(name)) }
    }
    closedir(folder)
    rmdir(path)
  }
}

/// Reads a whole file.
func readBytes(_ path: String) throws -> [UInt8] {
  guard let file = fopen(path, "rb") else { throw BenchProblem("cannot read \"\(path)\" (errno \(errno))") }
  defer { fclose(file) }
  fseek(file, 0, SEEK_END)
  let count = ftell(file)
  rewind(file)
  return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
    filled = fread(buffer.baseAddress, 1, count, file)
  }
}

/// Replaces a file.
func writeBytes(_ bytes: [UInt8], to path: String) throws {
  guard let file = fopen(path, "wb") else { throw BenchProblem("cannot write \"\(path)\" (errno \(errno))") }
  let written = fwrite(bytes, 1, bytes.count, file)
  guard fclose(file) == 0, written == bytes.count else {
    throw BenchProblem("cannot write \"\(path)\" (errno \(errno))")
  }
}

/// The files of a folder whose names end so, sorted; none when there is no such folder.
func files(in folder: String, endingIn suffix: String) -> [String] {
  guard let stream = opendir(folder) else { return [] }
  defer { closedir(stream) }
  var names: [String] = []
  while let entry = readdir(stream) {
    let name = withUnsafePointer(to: &entry.pointee.d_name) {
      $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    if name.hasSuffix(suffix) { names.append("\(folder)/\(name)") }
  }
  return names.sorted()
}
