import MillraceJSON

/// Reads the input as a byte stream of records behind their length, cut where its own bytes say, and as Base64.
///
/// Records must not depend on where the stream was cut, must be written back to the same bytes, and stay within the limit; a stream that
/// is too long for a record ends, and takes no memory. Text that decodes must encode to itself.
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

private func checkFraming(_ bytes: [UInt8]) {
  var whole = LengthFraming(largest: largest)
  let records = try? whole.records(in: bytes)
  var cut = LengthFraming(largest: largest)
  var pieces: [[UInt8]] = []
  var isInvalid = false
  var position = 0
  while position < bytes.count, !isInvalid {
    let end = min(bytes.count, position + 1 + Int(bytes[position] & 15))
    do throws(FramingProblem) {
      pieces += try cut.records(in: Array(bytes[position..<end]))
    } catch {
      if error.text.isEmpty { fatalError("a problem without a text") }
      isInvalid = true
    }
    position = end
  }
  guard let records else {
    if !isInvalid { fatalError("invalid as a whole, and valid in pieces") }
    if whole.isInRecord { fatalError("something is kept of an invalid stream") }
    return
  }
  if isInvalid || records != pieces { fatalError("the records depend on the cuts") }
  if records.contains(where: { $0.count > largest }) { fatalError("a record beyond the limit") }
  var writer = LengthFraming(largest: largest)
  let written = records.flatMap { writer.bytes(of: $0) }
  if written != Array(bytes.prefix(written.count)) { fatalError("the records are not what was read") }
  if whole.isInRecord != (written.count < bytes.count) { fatalError("the rest of the stream is lost") }
}
