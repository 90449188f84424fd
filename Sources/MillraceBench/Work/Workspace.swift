import Glibc

/// A temporary folder for the files of one suite, removed with the value.
struct Workspace: ~Copyable {
  let path: String

  /// Creates the folder in `TMPDIR`, or in /tmp.
  init() throws {
    let parent = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/millrace-bench.XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else {
      throw MeasurementProblem("cannot create a folder in \"\(parent)\" (errno \(errno))")
    }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The path of a file in the folder.
  func file(_ name: String) -> String { "\(path)/\(name)" }

  deinit {
    guard let folder = unsafe opendir(path) else { return }
    while let entry = unsafe readdir(folder) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
        unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      if name != "." && name != ".." { unsafe unlink(file(name)) }
    }
    unsafe closedir(folder)
    unsafe rmdir(path)
  }
}

/// Reads a whole file.
func readBytes(_ path: String) throws(MeasurementProblem) -> [UInt8] {
  guard let file = unsafe fopen(path, "rb") else {
    throw MeasurementProblem("cannot read \"\(path)\" (errno \(errno))")
  }
  defer { unsafe fclose(file) }
  unsafe fseek(file, 0, SEEK_END)
  let count = unsafe ftell(file)
  unsafe rewind(file)
  return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
    filled = unsafe fread(buffer.baseAddress, 1, count, file)
  }
}

/// Creates or replaces a file.
func replaceFile(_ path: String, with bytes: [UInt8]) throws(MeasurementProblem) {
  guard let file = unsafe fopen(path, "wb") else { throw unwritable(path) }
  let written = unsafe fwrite(bytes, 1, bytes.count, file)
  guard unsafe fclose(file) == 0, written == bytes.count else { throw unwritable(path) }
}

/// Throws unless a file can be written and rewritten. Its content stays.
func checkWritable(_ path: String) throws(MeasurementProblem) {
  var status = stat()
  if unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFIFO {
    throw MeasurementProblem(
      "cannot write \"\(path)\": it is a pipe, and the file is rewritten after every suite; name a regular file, or use --json"
    )
  }
  guard let file = unsafe fopen(path, "ab") else { throw unwritable(path) }
  unsafe fclose(file)
}

/// The system's last error, for a file that cannot be written.
private func unwritable(_ path: String) -> MeasurementProblem {
  let reason = unsafe String(cString: strerror(errno))
  let text = reason.prefix(1).lowercased() + reason.dropFirst()
  return MeasurementProblem("cannot write \"\(path)\": \(text); choose another file")
}

/// The files of a folder with a suffix, sorted; empty when the folder does not exist.
func files(in folder: String, endingIn suffix: String) -> [String] {
  guard let stream = unsafe opendir(folder) else { return [] }
  defer { unsafe closedir(stream) }
  var names: [String] = []
  while let entry = unsafe readdir(stream) {
    let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
      unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
    }
    if name.hasSuffix(suffix) { names.append("\(folder)/\(name)") }
  }
  return names.sorted()
}
