/// Why a weights file cannot be used; the message follows the file's name.
public enum VoiceModelProblem: Error, Equatable, Sendable, CustomStringConvertible {
  /// It does not begin like a weights file.
  case notWeights
  /// Its layout belongs to another version of this program.
  case unknownLayout(Int)
  /// It is truncated; `of` is its stated length, nil when not even that is there.
  case cutShort(bytes: Int, of: Int?)
  /// Its checksum does not match its content.
  case damaged
  /// It holds no network for a sample rate.
  case noNetwork(rate: Int)
  /// It holds a network of another size.
  case wrongShape(rate: Int, floats: Int, of: Int)

  public var description: String {
    switch self {
    case .notWeights: "is not a voice detector weights file"
    case .unknownLayout(let version): "has layout version \(version); this program reads version 1"
    case .cutShort(let bytes, let whole?): "is truncated: \(bytes) of \(whole) bytes"
    case .cutShort(let bytes, nil): "is truncated: \(bytes) bytes, less than its header"
    case .damaged: "is damaged: its checksum does not match"
    case .noNetwork(let rate): "holds no network for \(rate) Hz"
    case .wrongShape(let rate, let floats, let count):
      "holds a network of \(floats) values for \(rate) Hz; this program needs \(count)"
    }
  }
}
