/// Which identifier each header extension has in a session, as `a=extmap` says it; nil: it was not negotiated.
public struct RTPExtensionIdentifiers: Sendable, Equatable {
  /// `urn:ietf:params:rtp-hdrext:ssrc-audio-level` (RFC 6464).
  public var audioLevel: UInt8?
  /// `urn:ietf:params:rtp-hdrext:sdes:mid` (RFC 9143).
  public var mid: UInt8?
  /// `http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time`.
  public var absoluteSendTime: UInt8?
  /// `http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01`.
  public var transportSequence: UInt8?

  /// No extension was negotiated.
  public static let none = RTPExtensionIdentifiers()

  /// Creates a table of identifiers, each 1 to 14 to be written, 1 to 255 to be read.
  public init(
    audioLevel: UInt8? = nil, mid: UInt8? = nil, absoluteSendTime: UInt8? = nil,
    transportSequence: UInt8? = nil
  ) {
    self.audioLevel = audioLevel
    self.mid = mid
    self.absoluteSendTime = absoluteSendTime
    self.transportSequence = transportSequence
  }
}

/// The header extensions of a packet. One without a negotiated identifier is not written.
public struct RTPExtensions: Sendable, Equatable {
  /// The level of the sound in the packet.
  public var audioLevel: RTPAudioLevel?
  /// The media section that the packet belongs to.
  public var mid: RTPMediaID?
  /// When the packet leaves this host.
  public var absoluteSendTime: RTPAbsoluteSendTime?
  /// The sequence number over all streams of the transport.
  public var transportSequence: UInt16?

  /// Creates a set of extensions.
  public init(
    audioLevel: RTPAudioLevel? = nil, mid: RTPMediaID? = nil, absoluteSendTime: RTPAbsoluteSendTime? = nil,
    transportSequence: UInt16? = nil
  ) {
    self.audioLevel = audioLevel
    self.mid = mid
    self.absoluteSendTime = absoluteSendTime
    self.transportSequence = transportSequence
  }

  /// Reads the extensions of a packet that was parsed.
  public init(_ header: RTPHeader, _ identifiers: RTPExtensionIdentifiers, in packet: Span<UInt8>) {
    if let identifier = identifiers.audioLevel { audioLevel = header.audioLevel(identifier, in: packet) }
    if let identifier = identifiers.mid { mid = header.mid(identifier, in: packet) }
    if let identifier = identifiers.absoluteSendTime {
      absoluteSendTime = header.absoluteSendTime(identifier, in: packet)
    }
    if let identifier = identifiers.transportSequence {
      transportSequence = header.transportSequence(identifier, in: packet)
    }
  }

  /// Bytes of the elements in the one-byte form, a multiple of four; 0: there is none to write.
  func size(_ identifiers: RTPExtensionIdentifiers) throws(RTPProblem) -> Int {
    var size = 0
    if audioLevel != nil { size += try Self.size(identifiers.audioLevel, data: 1) }
    if let mid { size += try Self.size(identifiers.mid, data: mid.count) }
    if absoluteSendTime != nil { size += try Self.size(identifiers.absoluteSendTime, data: 3) }
    if transportSequence != nil { size += try Self.size(identifiers.transportSequence, data: 2) }
    return (size + 3) & ~3
  }

  private static func size(_ identifier: UInt8?, data: Int) throws(RTPProblem) -> Int {
    guard let identifier else { return 0 }
    guard identifier > 0, identifier <= RTPElements.largestOneByteIdentifier else {
      throw .extensionIdentifier(identifier)
    }
    return 1 + data
  }

  /// Writes the elements and zeros up to `size`, which `size(_:)` gave.
  func write(
    _ identifiers: RTPExtensionIdentifiers, into destination: inout MutableSpan<UInt8>, at offset: Int,
    size: Int
  ) {
    var position = offset
    if let level = audioLevel, let identifier = identifiers.audioLevel {
      destination[Self.begin(identifier, data: 1, at: &position, &destination)] = level.byte
    }
    if let mid, let identifier = identifiers.mid {
      mid.write(into: &destination, at: Self.begin(identifier, data: mid.count, at: &position, &destination))
    }
    if let time = absoluteSendTime, let identifier = identifiers.absoluteSendTime {
      destination.put24(time.rawValue, at: Self.begin(identifier, data: 3, at: &position, &destination))
    }
    if let sequence = transportSequence, let identifier = identifiers.transportSequence {
      destination.put(sequence, at: Self.begin(identifier, data: 2, at: &position, &destination))
    }
    while position < offset + size {
      destination[position] = 0
      position += 1
    }
  }

  /// Writes the head of an element and gives where its data begin. No local function: one that captures a variable makes a heap request in
  /// debug builds.
  private static func begin(
    _ identifier: UInt8, data: Int, at position: inout Int, _ destination: inout MutableSpan<UInt8>
  ) -> Int {
    destination[position] = identifier << 4 | UInt8(data - 1)
    position += 1 + data
    return position - data
  }
}
