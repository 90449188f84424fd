import Foundation
import TestSystem

/// A temporary directory for one test, removed with the last reference to it.
struct Scratch: Sendable {
  private let folder = TemporaryFolder()

  var path: String { folder.path }

  /// The path of a file in the directory, which need not exist.
  func file(_ name: String) -> String { folder.file(name) }

  /// Writes a file and returns its path.
  func write(_ bytes: some Sequence<UInt8>, to name: String) throws -> String {
    try Data(bytes).write(to: URL(fileURLWithPath: file(name)))
    return file(name)
  }

  /// The content of a file in the directory.
  func bytes(_ name: String) throws -> [UInt8] {
    try Array(Data(contentsOf: URL(fileURLWithPath: file(name))))
  }
}

/// The package these tests are part of.
enum Package {
  static let root = String(#filePath.prefix(upTo: #filePath.range(of: "/Tests/MillraceTests/")!.lowerBound))

  /// A graph that comes with the package.
  static func graph(_ name: String) -> String { "\(root)/graphs/\(name).json" }

  /// Every graph that comes with the package, by its file's name without the ending.
  static let graphs: [String] = {
    let files = (try? FileManager.default.contentsOfDirectory(atPath: root + "/graphs")) ?? []
    return files.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
  }()
}
