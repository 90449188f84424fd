internal import MillraceCore

/// What the parameters of `video.encode`, commands and the network ask for. A value; no heap but for the names at the beginning.
struct EncoderWishes {
  /// Bit/s; nil: by the size.
  private var bitrate: Int?
  /// What the network carries in bit/s; 0: not known.
  private var target = 0
  /// Highest frame rate; nil: that of the input.
  private(set) var rate: Double?
  /// 0: key frames on request only.
  private(set) var keyInterval: Nanoseconds
  private var maxWidth: Int
  private var maxHeight: Int
  private let indices = Indices()

  /// Default bits per pixel, as of `video.record`.
  private static let bitsPerPixel = 0.1

  /// The live parameters by their index in the contract.
  private struct Indices {
    let bitrate = Indices.index("bitrate")
    let rate = Indices.index("rate")
    let keyInterval = Indices.index("keyInterval")
    let maxWidth = Indices.index("maxWidth")
    let maxHeight = Indices.index("maxHeight")

    private static func index(_ name: String) -> Int { VideoEncode.contract.parameterIndex(name) ?? -1 }
  }

  init(_ values: ParameterValues) {
    bitrate = values.has("bitrate") ? values.integer("bitrate") : nil
    rate = values.has("rate") ? values.number("rate") : nil
    keyInterval = values.nanoseconds("keyInterval")
    maxWidth = values.integer("maxWidth")
    maxHeight = values.integer("maxHeight")
  }

  /// Takes the value of a live parameter.
  mutating func set(_ parameter: Int, _ value: LiveValue) {
    let number = value.asNumber
    switch parameter {
    case indices.bitrate: bitrate = Int(number)
    case indices.rate: rate = number
    case indices.keyInterval: keyInterval = Nanoseconds((number * 1e6).rounded())
    case indices.maxWidth: maxWidth = Int(number)
    case indices.maxHeight: maxHeight = Int(number)
    default: break
    }
  }

  /// Takes what was asked for at the input `control`.
  mutating func follow(_ requests: EncoderControl.Requests) {
    target = requests.target ?? target
    bitrate = requests.bitrate ?? bitrate
    rate = requests.rate ?? rate
    if let interval = requests.keyInterval { keyInterval = Nanoseconds((interval * 1e6).rounded()) }
    maxWidth = requests.maxWidth ?? maxWidth
    maxHeight = requests.maxHeight ?? maxHeight
  }

  /// The settings of an encoder that fulfils them.
  /// - Parameters:
  ///   - width: of the source.
  ///   - height: of the source.
  ///   - sourceRate: pictures a second of the source.
  func settings(
    _ coding: PictureCoding, width: Int, height: Int, rate sourceRate: Double, speed: EncoderSpeed,
    threads: Int
  ) -> LivePictureEncoder.Settings {
    let size = EncodedSize(of: width, height, within: maxWidth, maxHeight)
    let rate = min(sourceRate, rate ?? sourceRate)
    return LivePictureEncoder.Settings(
      coding: coding, size: size, rate: rate, bitrate: heldBitrate(size, rate), speed: speed, threads: threads
    )
  }

  /// The bitrate to hold: the one asked for, or 0.1 bit per pixel, and not more than the network carries.
  private func heldBitrate(_ size: EncodedSize, _ rate: Double) -> Int {
    let limits = VideoEncode.bitrates
    let usual = min(Self.bitsPerPixel * Double(size.width * size.height) * rate, Double(limits.upperBound))
    let wanted = bitrate ?? Int(usual)
    let held = target > 0 ? min(wanted, target) : wanted
    return min(max(held, limits.lowerBound), limits.upperBound)
  }
}
