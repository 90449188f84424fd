internal import Glibc
internal import MillraceCore
internal import MillraceDSP
internal import MillraceFiles
internal import Synchronization

/// The voice detector's weights: where they are, and how they are loaded, once per process and rate, however many nodes use them.
enum VoiceModel {
  /// File name written by `Models/silero-vad.py`.
  static let fileName = "silero-vad-6.2.3.weights"

  /// The default of the parameter `model`: see `UserFolder.models`.
  static var standardPath: String { UserDirectories.models + "/" + fileName }

  /// Throws if there is no readable file. Changes nothing.
  static func check(_ path: String) throws(NodeProblem) {
    guard unsafe access(path, R_OK) != 0 else { return }
    let reason =
      errno == ENOENT || errno == ENOTDIR ? "are missing" : "cannot be read: " + SystemError.text(errno)
    throw NodeProblem(
      "the voice detector's weights \(reason): \"\(path)\"", parameter: "model",
      cure: "run make models, or set \"engine\" to \"energy\", which needs none")
  }

  /// The weights in a file for a rate. Takes milliseconds the first time.
  static func weights(_ path: String, rate: Int) throws(NodeProblem) -> SileroWeights {
    try check(path)
    let key = Key(path: path, rate: rate)
    return try known.withLock { known throws(NodeProblem) in
      if let weights = known[key]?.weights { return weights }
      let bytes = try read(path)
      do {
        let weights = try SileroWeights(file: bytes.span, rate: rate)
        known[key] = Entry(weights: weights)
        return weights
      } catch {
        throw NodeProblem(
          "\"\(path)\" \(error)", parameter: "model", cure: "delete it and run make models")
      }
    }
  }

  private struct Key: Hashable {
    let path: String
    let rate: Int
  }

  private struct Entry {
    weak var weights: SileroWeights?
  }

  private static let known = Mutex<[Key: Entry]>([:])

  private static func read(_ path: String) throws(NodeProblem) -> [UInt8] {
    func refuse() -> NodeProblem {
      NodeProblem(
        "cannot read \"\(path)\": \(SystemError.text(errno))", parameter: "model",
        cure: "name a weights file, or run make models")
    }
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw refuse() }
    defer { _ = close(descriptor) }
    var bytes: [UInt8] = []
    while true {
      var part = [UInt8](repeating: 0, count: 1 << 20)
      let count = unsafe Glibc.read(descriptor, &part, part.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw refuse() }
      if count == 0 { return bytes }
      bytes += part[..<count]
    }
  }
}
