import MillraceJSON

/// Reads the input as a byte stream of records behind their length, cut where its own bytes say, and as Base64.
///
/// Records, and the place where the stream becomes invalid, must not depend on where it was cut. Records must be written back to the same
/// bytes, and stay within the limit; a stream that is too long for a record ends, and takes no memory. Text that decodes must encode to
/// itself.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFraming(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  checkFraming(bytes)
  let text = String(decoding: bytes, as: UTF8.self)
  if let decoded = Base64.decode(text), Base64.encode(decoded) != text { fatalError("not the same Base64") }
  if Base64.decode(Base64.encode(bytes)) != bytes { fatalError("Base64 changed the bytes") }
  return 0
}

private let largest = 300

/// What was read of a stream.
private struct Reading: Equatable {
  var records: [[UInt8]] = []
  var isValid = true
  var isInRecord = false

  init(_ pieces: [[UInt8]]) {
    var framing = LengthFraming(largest: largest)
    do throws(FramingProblem) {
      for piece in pieces {
        var found = try framing.records(in: piece)
        while !found.isEmpty {
          records += found
          found = try framing.records(in: [])
        }
      }
    } catch {
      isValid = false
      if error.text.isEmpty { fatalError("a problem without a text") }
      // An empty record.
      if (try? framing.records(in: [0, 0, 0, 0])) != nil { fatalError("an invalid stream is read on") }
    }
    isInRecord = framing.isInRecord
  }
}

private func checkFraming(_ bytes: [UInt8]) {
  let whole = Reading([bytes])
  var pieces: [[UInt8]] = []
  var position = 0
  while position < bytes.count {
    let end = min(bytes.count, position + 1 + Int(bytes[position] & 15))
    pieces.append(Array(bytes[position..<end]))
    position = end
  }
  if Reading(pieces) != whole { fatalError("what is read depends on the cuts") }
  if whole.records.contains(where: { $0.count > largest }) { fatalError("a record beyond the limit") }
  var writer = LengthFraming(largest: largest)
  let written = whole.records.flatMap { writer.bytes(of: $0) }
  if written != Array(bytes.prefix(written.count)) { fatalError("the records are not what was read") }
  guard whole.isValid else {
    if whole.isInRecord { fatalError("something is kept of an invalid stream") }
    return
  }
  if whole.isInRecord != (written.count < bytes.count) { fatalError("the rest of the stream is lost") }
}
