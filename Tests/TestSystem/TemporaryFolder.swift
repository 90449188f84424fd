import Glibc

/// A folder of its own for a test, removed with all in it when nobody holds it any more.
public final class TemporaryFolder: Sendable {
  public let path: String

  /// Makes one in a folder that is there.
  public init(in parent: String = "/tmp") {
    var name = Array("\(parent)/millrace-test-XXXXXX".utf8CString)
    path = name.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
  }

  deinit { Self.remove(path) }

  /// Path of a file in it, there or not.
  public func file(_ name: String) -> String { path + "/" + name }

  /// Names of what is in it, sorted.
  public var names: [String] { Self.names(in: path) }

  private static func names(in folder: String) -> [String] {
    guard let stream = opendir(folder) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  /// Removes a file, or a folder with all in it. What a link points at stays.
  private static func remove(_ path: String) {
    if unlink(path) == 0 { return }
    for name in names(in: path) { remove(path + "/" + name) }
    rmdir(path)
  }
}

/// All bytes of a file; none where it cannot be read.
public func contents(_ path: String) -> [UInt8] {
  guard let file = fopen(path, "r") else { return [] }
  defer { fclose(file) }
  var bytes: [UInt8] = []
  var part = [UInt8](repeating: 0, count: 65_536)
  while true {
    let count = fread(&part, 1, part.count, file)
    if count == 0 { return bytes }
    bytes += part[..<count]
  }
}

/// Makes or replaces a file.
public func put(_ bytes: some Sequence<UInt8>, at path: String) {
  let file = fopen(path, "w")!
  let bytes = Array(bytes)
  fwrite(bytes, 1, bytes.count, file)
  fclose(file)
}
