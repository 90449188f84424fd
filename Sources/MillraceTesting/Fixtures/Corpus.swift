internal import Foundation

/// Finds recordings that tests use but the package does not hold.
///
/// They lie in the folder the environment variable `MILLRACE_CORPUS` names, else in `../shared` beside the package.
/// A test that needs one should say `.enabled(if: Corpus.has("audio/speech"), Corpus.skipReason)`.
public enum Corpus {
  /// The folder of the recordings. Whether it exists is another question: see `has`.
  public static let root: String = {
    if let given = ProcessInfo.processInfo.environment["MILLRACE_CORPUS"], !given.isEmpty { return given }
    // Tests run in the package's root folder, or below it when run by hand: look for the manifest upwards.
    let files = FileManager.default
    var folder = URL(fileURLWithPath: files.currentDirectoryPath).standardizedFileURL
    while folder.path != "/" {
      if files.fileExists(atPath: folder.appendingPathComponent("Package.swift").path) { break }
      folder.deleteLastPathComponent()
    }
    return folder.deletingLastPathComponent().appendingPathComponent("shared").path
  }()

  /// The path of a recording, or nil when it is not there.
  public static func path(_ relative: String) -> String? {
    let path = root + "/" + relative
    return FileManager.default.fileExists(atPath: path) ? path : nil
  }

  /// True when the recording or folder is there.
  public static func has(_ relative: String) -> Bool { path(relative) != nil }

  /// What a skipped test should say.
  public static let skipReason = "the recordings are not here: set MILLRACE_CORPUS to their folder"
}
