package import MillraceCore
package import MillraceDialog
internal import MillraceJSON

/// An event on its way from the network thread to the node. It is serialised there, where allocating is allowed, so that the node only
/// copies.
///
/// Format: one byte with the index of the event; for each member one byte with the length of its name, the name, four bytes with the
/// length of its value, and the value as JSON.
package enum EventRecord {
  /// Serialises the members that fit into `limit` bytes; the others are omitted, which `truncated` reports.
  /// - Parameter count: of how many the event is one, as the member `count`; nil: none.
  package static func bytes(_ event: DialogEvent, count: Int? = nil, limit: Int) -> [UInt8] {
    var result = [UInt8(event.index)]
    var isShort = false
    for member in event.details.members ?? [] {
      let name = Array(member.name.utf8)
      let value = member.value.bytes
      guard result.count + name.count + value.count + 64 <= limit, name.count < 256 else {
        isShort = true
        continue
      }
      append(name, value, to: &result)
    }
    if let count { append(Array("count".utf8), Array(String(count).utf8), to: &result) }
    if isShort { append(Array("truncated".utf8), Array("true".utf8), to: &result) }
    return result
  }

  private static func append(_ name: [UInt8], _ value: [UInt8], to result: inout [UInt8]) {
    result.append(UInt8(name.count))
    result += name
    for shift in [0, 8, 16, 24] { result.append(UInt8(truncatingIfNeeded: value.count >> shift)) }
    result += value
  }

  /// Posts a record.
  package static func post(_ record: Span<UInt8>, _ ports: inout Ports) {
    ports.post(Int(record[0])) { writer in
      var place = 1
      while place < record.count {
        let name = Int(record[place])
        let start = place + 1 + name + 4
        var count = 0
        for index in 0..<4 { count |= Int(record[start - 4 + index]) << (8 * index) }
        writer.field(
          record.extracting(place + 1..<place + 1 + name), json: record.extracting(start..<start + count))
        place = start + count
      }
    }
  }
}
