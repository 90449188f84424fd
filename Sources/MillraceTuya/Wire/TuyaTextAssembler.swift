/// Puts the documents of one text channel together.
///
/// A document is usually one packet, whatever its flag. A long one comes in several, the last of which may be missing: then the event's end is
/// its end.
public struct TuyaTextAssembler: Sendable {
  /// The longest document, in bytes.
  public static let mostBytes = 1 << 20

  /// What has arrived of a document; empty: nothing.
  private var parts: [UInt8] = []

  /// Creates an assembler without parts.
  public init() {}

  /// Takes the data of a packet.
  /// - Returns: the document that is complete, if there is one.
  /// - Throws: what was collected is no document, or too long; it is discarded.
  public mutating func take(_ bytes: [UInt8], _ flag: TuyaStreamFlag) throws(TuyaTextProblem) -> [TuyaText] {
    // What was collected before a stream that begins had no end, and was no document.
    if flag.begins { parts = [] }
    return try add(bytes, isLast: flag.ends)
  }

  /// The event has ended: what was collected is complete.
  /// - Returns: the document, if there is one.
  /// - Throws: what was collected is no document.
  public mutating func finish() throws(TuyaTextProblem) -> [TuyaText] {
    guard !parts.isEmpty else { return [] }
    return try add([], isLast: true)
  }

  /// False where a document cannot end: it need not be read then, which long ones would be for each packet.
  private static func mayEnd(_ bytes: [UInt8]) -> Bool {
    bytes.last { $0 > UInt8(ascii: " ") } == UInt8(ascii: "}")
  }

  private mutating func add(_ bytes: [UInt8], isLast: Bool) throws(TuyaTextProblem) -> [TuyaText] {
    guard parts.count + bytes.count <= Self.mostBytes else {
      parts = []
      throw TuyaTextProblem("the text has more than \(Self.mostBytes) bytes")
    }
    // The end of what was collected is missing, where a packet is a document by itself.
    if !parts.isEmpty, Self.mayEnd(bytes), let text = try? TuyaText(parsing: bytes), !text.type.isEmpty {
      parts = []
      return [text]
    }
    let whole = parts + bytes
    // An empty packet ends a stream whose documents were each in one.
    guard !whole.isEmpty else { return [] }
    guard isLast || Self.mayEnd(bytes) else {
      parts = whole
      return []
    }
    do throws(TuyaTextProblem) {
      let text = try TuyaText(parsing: whole)
      parts = []
      return [text]
    } catch {
      guard isLast else {
        parts = whole
        return []
      }
      parts = []
      throw error
    }
  }
}
