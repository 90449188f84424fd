/// Why a file of weights cannot be used: what is wrong with it, in words that follow its name.
public enum VoiceModelProblem: Error, Equatable, Sendable, CustomStringConvertible {
  /// It does not begin as a file of weights does.
  case notWeights
  /// It is laid out in a way of another version of this program.
  case unknownLayout(Int)
  /// It ends too soon; `of` is its length as it says itself, nil when not even that is there.
  case cutShort(bytes: Int, of: Int?)
  /// Its check sum is not that of its content.
  case damaged
  /// It holds no network for a sample rate.
  case noNetwork(rate: Int)
  /// It holds a network of another size.
  case wrongShape(rate: Int, floats: Int, of: Int)

  public var description: String {
    switch self {
    case .notWeights: "is no file of voice detector weights"
    case .unknownLayout(let version): "is laid out in version \(version), and this program reads version 1"
    case .cutShort(let bytes, let whole?): "is cut short: \(bytes) of \(whole) bytes"
    case .cutShort(let bytes, nil): "is cut short: \(bytes) bytes, less than its header"
    case .damaged: "is damaged: its content does not match its check sum"
    case .noNetwork(let rate): "holds no network for \(rate) Hz"
    case .wrongShape(let rate, let floats, let count):
      "holds a network of \(floats) numbers for \(rate) Hz, and this program knows one of \(count)"
    }
  }
}
