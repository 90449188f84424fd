/// Feeds arbitrary text to the parsers of `Location` and of `Range`.
///
/// They must never crash. A reference that resolves must give an address that survives a round trip, holds no character that ends a line of
/// HTTP, and no segment `..` where the path was relative; only an absolute one may lead to another host. A range must lie within the file.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTP(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  for base in ["http://a.example/b/c/d?q", "https://[::1]:8443/", "http://a.example:81?x"] {
    checkReference(text, base)
  }
  for size in [0, 1, 10, Int.max] { checkRange(text, size) }
  return 0
}

private func checkReference(_ text: String, _ base: String) {
  guard let base = try? WebAddress(base) else { fatalError("the base is not an address") }
  let address: WebAddress
  do throws(NetError) { address = try base.resolving(text) } catch {
    if error.kind != .address || error.text.isEmpty { fatalError("an error without a text: \(error)") }
    return
  }
  if !address.target.hasPrefix("/") { fatalError("path \(address.target)") }
  if address.target.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) {
    fatalError("a path that ends a line")
  }
  let isAbsolute = text.contains(":") || text.hasPrefix("//")
  if !isAbsolute && address.authority != base.authority { fatalError("another host: \(address.authority)") }
  let path = address.target.utf8.prefix { $0 != UInt8(ascii: "?") }
  let segments = path.split(separator: UInt8(ascii: "/"))
  if !isAbsolute && segments.contains(where: { $0.elementsEqual("..".utf8) }) {
    fatalError("path \(address.target)")
  }
  let whole = "\(address.scheme.rawValue)://\(address.authority)\(address.target)"
  guard let again = try? base.resolving(whole), again == address else {
    fatalError("the round trip changed \(whole)")
  }
}

private func checkRange(_ text: String, _ size: Int) {
  for header in [text, "bytes=" + text] {
    guard case .part(let range) = HTTPRange(header, of: size) else { continue }
    if range.isEmpty || range.lowerBound < 0 || range.upperBound > size {
      fatalError("range \(range) of \(size)")
    }
  }
}
