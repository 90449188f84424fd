/// A picture or a file to send, without its bytes: makes the packets of its parts.
public struct TuyaBulk: Sendable {
  /// What it is.
  public enum Kind: Sendable, Hashable {
    /// A picture.
    case image(TuyaImageParameters)
    /// A file.
    case file(TuyaFileParameters)
    /// A picture of a video; true for the first one.
    case video(TuyaVideoParameters, isFirst: Bool)
  }

  /// What it is.
  public var kind: Kind
  /// The number of its data channel.
  public var dataID: UInt16
  /// Milliseconds since 1970 when it was taken.
  public var time: UInt64
  /// User data of its first packet, encoded.
  public var userData: [UInt8]?
  /// The dialect, which says how parameters are written.
  public var dialect: TuyaDialect

  /// True for a picture of a video.
  public var isVideo: Bool {
    if case .video = kind { return true }
    return false
  }

  /// A picture of a video is one packet of its stream.
  var mayBeDivided: Bool { !isVideo }
}
