import Foundation

/// A folder that is removed at the end of a test.
final class AgentScratch {
  /// Its path.
  let path: String

  init() {
    path = FileManager.default.temporaryDirectory.appending(path: "tuya-\(UUID().uuidString)").path()
    try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Writes a file; returns its path.
  func write(_ bytes: some Sequence<UInt8>, to name: String) -> String {
    let file = path + "/" + name
    _ = FileManager.default.createFile(atPath: file, contents: Data(bytes))
    return file
  }

  /// True when there is such a file.
  func has(_ file: String) -> Bool { FileManager.default.fileExists(atPath: file) }
}
