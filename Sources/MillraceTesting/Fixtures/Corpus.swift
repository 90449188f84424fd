internal import Foundation

/// Finds recordings that tests use but the package does not contain.
///
/// They are in the directory named by the environment variable `MILLRACE_CORPUS`, or else in `../shared` beside the package.
/// A test that needs one has the trait `.enabled(if: Corpus.has("audio/speech"), Corpus.skipReason)`.
public enum Corpus {
  /// The directory of the recordings. It may not exist; see `has`.
  public static let root: String = {
    if let given = ProcessInfo.processInfo.environment["MILLRACE_CORPUS"], !given.isEmpty { return given }
    // Tests run in the package's root directory, or below it when started by hand: search upwards for the manifest.
    let files = FileManager.default
    var folder = URL(fileURLWithPath: files.currentDirectoryPath).standardizedFileURL
    while folder.path != "/" {
      if files.fileExists(atPath: folder.appendingPathComponent("Package.swift").path) { break }
      folder.deleteLastPathComponent()
    }
    return folder.deletingLastPathComponent().appendingPathComponent("shared").path
  }()

  /// The path of a recording; nil when it does not exist.
  public static func path(_ relative: String) -> String? {
    let path = root + "/" + relative
    return FileManager.default.fileExists(atPath: path) ? path : nil
  }

  /// True when the recording or directory exists.
  public static func has(_ relative: String) -> Bool { path(relative) != nil }

  /// The reason to give for a skipped test.
  public static let skipReason = "the recordings are missing; set MILLRACE_CORPUS to their directory"
}
