internal import Glibc
internal import MillraceCore
internal import MillraceDSP
internal import MillraceFiles
internal import Synchronization

/// Where the voice detector's weights lie, and how they are read: once for the process and rate, however many nodes use them.
enum VoiceModel {
  /// The name `Models/silero-vad.py` gives the file.
  static let fileName = "silero-vad-6.2.3.weights"

  /// The file a node without the parameter `model` uses: see `UserFolder.models`.
  static var standardPath: String { UserFolder.models + "/" + fileName }

  /// Says what is wrong when no file is there to be read. Looks only.
  static func check(_ path: String) throws(NodeProblem) {
    guard unsafe access(path, R_OK) != 0 else { return }
    let reason =
      errno == ENOENT || errno == ENOTDIR ? "are not there" : "cannot be read: " + SystemError.text(errno)
    throw NodeProblem(
      "the voice detector's weights \(reason): \"\(path)\"", parameter: "model",
      cure: "get them with make models, or choose the engine \"energy\", which needs none")
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
          "\"\(path)\" \(error)", parameter: "model", cure: "delete it and get it anew with make models")
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
        "\"\(path)\" cannot be read: \(SystemError.text(errno))", parameter: "model",
        cure: "name a file of weights, or get one with make models")
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
