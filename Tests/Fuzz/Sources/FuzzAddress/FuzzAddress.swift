/// Feeds any text to the readers of addresses: of services, and of proxies.
///
/// They must never crash. A refusal is in words, and of the kind `address`. What was taken apart and is put together again must be
/// taken apart the same; nothing in it may end a line of HTTP or hold a password; and credentials of a proxy are those that were
/// written.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzAddress(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  checkAddress(text)
  checkProxy(text)
  return 0
}

private func checkRefusal(_ problem: NetProblem) {
  if problem.kind != .address || problem.text.isEmpty { fatalError("a refusal without words: \(problem)") }
}

private func checkAddress(_ text: String) {
  let address: WebAddress
  do throws(NetProblem) { address = try WebAddress(text) } catch { return checkRefusal(error) }
  if address.host.isEmpty || address.host != address.host.lowercased() { fatalError("host \(address.host)") }
  if !(1...65_535).contains(address.port) { fatalError("port \(address.port)") }
  if !address.target.hasPrefix("/") || address.target.contains("#") { fatalError("path \(address.target)") }
  for part in [address.host, address.target] {
    if part.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) { fatalError("a part that ends a line") }
  }
  if address.host.contains(where: { "/?#@[]".contains($0) }) { fatalError("host \(address.host)") }
  for place in [address.place, address.hostHeader] {
    let whole = "\(address.scheme.rawValue)://\(place)\(address.target)"
    do throws(NetProblem) {
      if try WebAddress(whole) != address { fatalError("another address: \(whole)") }
    } catch {
      fatalError("an address that is none any more: \(whole): \(error)")
    }
  }
  checkWay(to: address)
}

/// Through the proxies of an environment.
private func checkWay(to address: WebAddress) {
  do throws(NetProblem) {
    let proxy = try NetProxy.place(for: address) { name in
      name == "ALL_PROXY" ? "http://proxy:3128" : name == "NO_PROXY" ? address.host : nil
    }
    if proxy != nil { fatalError("a proxy for a host that is exempt: \(address)") }
    let other = try NetProxy.place(for: address) { $0 == "ALL_PROXY" ? "http://proxy:3128" : nil }
    if (other == nil) != address.isLoopback { fatalError("the wrong way to \(address)") }
  } catch {
    fatalError("a proxy that is none: \(error)")
  }
}

private func checkProxy(_ text: String) {
  let proxy: NetProxy.Place
  do throws(NetProblem) { proxy = try NetProxy.Place(text) } catch { return checkRefusal(error) }
  do throws(NetProblem) {
    let again = try NetProxy.Place(proxy.description)
    if again.host != proxy.host || again.port != proxy.port { fatalError("another proxy: \(proxy)") }
    if again.credentials != nil { fatalError("a proxy shown with its password") }
  } catch {
    fatalError("a proxy that is none any more: \(proxy): \(error)")
  }
  if proxy.credentials != credentials(in: text) { fatalError("other credentials: \(text)") }
}

/// What stands before the last `@`, by RFC 3986 section 2.1.
private func credentials(in text: String) -> String? {
  let bytes = Array(text.utf8)
  guard let end = bytes.lastIndex(of: UInt8(ascii: "@")) else { return nil }
  var start = 0
  for index in bytes.indices.dropLast(2) where Array(bytes[index...(index + 2)]) == Array("://".utf8) {
    start = index + 3
    break
  }
  guard start <= end else { return nil }
  func digit(_ index: Int) -> UInt8? {
    guard index < end else { return nil }
    return Array("0123456789abcdef".utf8).firstIndex(of: bytes[index] | 0x20).map(UInt8.init)
      ?? Array("0123456789".utf8).firstIndex(of: bytes[index]).map(UInt8.init)
  }
  var result: [UInt8] = []
  var index = start
  while index < end {
    let isUpperOrDigit = { (place: Int) in bytes[place] >= UInt8(ascii: "0") }
    if bytes[index] == UInt8(ascii: "%"), let high = digit(index + 1), let low = digit(index + 2),
      isUpperOrDigit(index + 1), isUpperOrDigit(index + 2)
    {
      result.append(high << 4 | low)
      index += 3
    } else {
      result.append(bytes[index])
      index += 1
    }
  }
  return String(decoding: result, as: UTF8.self)
}
