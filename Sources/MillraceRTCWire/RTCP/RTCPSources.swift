/// SDES: items that describe sources (RFC 3550, section 6.5).
public struct RTCPSourceDescription: ~Escapable {
  /// The number of sources that are described, 0 to 31.
  public let count: Int
  /// The chunks.
  private let bytes: Span<UInt8>

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>, _ count: Int, at start: Int) throws(RTCPProblem) {
    self.count = count
    self.bytes = bytes.extracting(RTCPReader.headerSize...)
    var items = RTCPSourceItems(self.bytes, count)
    while items.next() != nil {}
    guard items.isComplete else { throw .contentCut(type: RTCPType.sourceDescription.rawValue, at: start) }
  }

  /// The items of all sources, from the first.
  public var items: RTCPSourceItems {
    @_lifetime(copy self) get { RTCPSourceItems(bytes, count) }
  }

  /// The canonical name of a source as a text; nil: the packet does not contain it. Makes a string, so not for every packet.
  public func canonicalName(of ssrc: UInt32) -> String? {
    var items = items
    while let item = items.next() {
      if item.ssrc == ssrc, item.kind == RTCPSourceItem.canonicalName { return String(rtcp: item.text) }
    }
    return nil
  }
}

/// One item of a source's description.
public struct RTCPSourceItem: ~Escapable {
  /// CNAME, the name that all sources of one sender share (RFC 3550, section 6.5.1).
  public static let canonicalName: UInt8 = 1

  /// The source.
  public let ssrc: UInt32
  /// What the item is, 1 to 255; see RFC 3550, section 6.5.
  public let kind: UInt8
  /// Its text in UTF-8, at most 255 bytes.
  public let text: Span<UInt8>

  @_lifetime(copy text)
  fileprivate init(ssrc: UInt32, kind: UInt8, text: Span<UInt8>) {
    self.ssrc = ssrc
    self.kind = kind
    self.text = text
  }
}

/// Gives the items of a description in the order of the wire.
public struct RTCPSourceItems: ~Escapable {
  private let bytes: Span<UInt8>
  private var chunks: Int
  private var offset = 0
  private var ssrc: UInt32?

  @_lifetime(copy bytes)
  fileprivate init(_ bytes: Span<UInt8>, _ count: Int) {
    self.bytes = bytes
    chunks = count
  }

  /// True when the items ended where the chunks end, and were not cut off.
  fileprivate var isComplete: Bool { chunks == 0 && ssrc == nil }

  /// The next item; nil: there is no other.
  @_lifetime(copy self)
  public mutating func next() -> RTCPSourceItem? {
    while true {
      guard let source = ssrc else {
        guard chunks > 0, offset + 4 < bytes.count else { return nil }
        ssrc = bytes.uint32(at: offset)
        (chunks, offset) = (chunks - 1, offset + 4)
        continue
      }
      guard offset < bytes.count else { return nil }
      let kind = bytes[offset]
      if kind == 0 {
        // The chunk ends with zeros up to a multiple of four.
        (ssrc, offset) = (nil, (offset + 4) & ~3)
        continue
      }
      guard offset + 2 <= bytes.count, offset + 2 + Int(bytes[offset + 1]) <= bytes.count else { return nil }
      let start = offset + 2
      offset = start + Int(bytes[offset + 1])
      return RTCPSourceItem(ssrc: source, kind: kind, text: bytes.extracting(start..<offset))
    }
  }
}

/// BYE: sources that leave, and why (RFC 3550, section 6.6).
public struct RTCPGoodbye: ~Escapable {
  private let sources: Span<UInt8>
  /// The reason in UTF-8; empty: none was given.
  public let reason: Span<UInt8>

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>, _ count: Int, at start: Int) throws(RTCPProblem) {
    let end = RTCPReader.headerSize + 4 * count
    guard end <= bytes.count else { throw .contentCut(type: RTCPType.goodbye.rawValue, at: start) }
    sources = bytes.extracting(RTCPReader.headerSize..<end)
    let length = end < bytes.count ? Int(bytes[end]) : 0
    guard end + length <= bytes.count - (length > 0 ? 1 : 0) else {
      throw .contentCut(type: RTCPType.goodbye.rawValue, at: start)
    }
    reason = length > 0 ? bytes.extracting(end + 1..<end + 1 + length) : bytes.extracting(first: 0)
  }

  /// The number of sources that leave.
  public var count: Int { sources.count / 4 }

  /// The source at an index from 0 to `count` - 1.
  public subscript(index: Int) -> UInt32 { sources.uint32(at: 4 * index) }

  /// True: this source leaves.
  public func contains(_ ssrc: UInt32) -> Bool {
    for index in 0..<count where self[index] == ssrc { return true }
    return false
  }

  /// The reason as a text; nil: none was given. Makes a string.
  public var reasonText: String? { reason.isEmpty ? nil : String(rtcp: reason) }
}

extension String {
  /// The text of an RTCP item; bytes that are not UTF-8 are replaced.
  init(rtcp bytes: Span<UInt8>) {
    self = unsafe bytes.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
  }
}
