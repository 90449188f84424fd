/// Feeds arbitrary bytes to the readers of session descriptions, trickle fragments and candidates. The low two bits of the first byte
/// select which.
///
/// None may crash, and every error must have a text and a line of the input. What is read is the same after it was written and read again.
/// A description is answered, taken for an answer to an offer of this side, restarted, and read as one of plain RTP.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRTCSDP(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  let content = Array(bytes.dropFirst())
  switch first & 3 {
  case 0, 1: checkDescription(content)
  case 2: checkFragment(content)
  default: checkCandidate(content)
  }
  return 0
}

func checkText(_ text: String) {
  if text.isEmpty { fatalError("an error without a text") }
}
