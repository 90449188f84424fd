/// Feeds arbitrary text to the parsers of service addresses and of proxy addresses.
///
/// They must never crash. An error must have a text and the kind `address`. An address must survive a round trip, must not contain
/// characters that end a line of HTTP, and must not show a password. The credentials of a proxy must be those of the text.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzAddress(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  checkAddress(text)
  checkProxy(text)
  return 0
}

private func checkError(_ error: NetError) {
  if error.kind != .address || error.text.isEmpty { fatalError("an error without a text: \(error)") }
}

private func checkAddress(_ text: String) {
  let address: WebAddress
  do throws(NetError) { address = try WebAddress(text) } catch { return checkError(error) }
  if address.host.isEmpty || address.host != address.host.lowercased() { fatalError("host \(address.host)") }
  if !(1...65_535).contains(address.port) { fatalError("port \(address.port)") }
  if !address.target.hasPrefix("/") || address.target.contains("#") { fatalError("path \(address.target)") }
  for part in [address.host, address.target] {
    if part.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) { fatalError("a part that ends a line") }
  }
  if address.host.contains(where: { "/?#@[]".contains($0) }) { fatalError("host \(address.host)") }
  for authority in [address.authority, address.hostHeader] {
    let whole = "\(address.scheme.rawValue)://\(authority)\(address.target)"
    do throws(NetError) {
      if try WebAddress(whole) != address { fatalError("the round trip changed \(whole)") }
    } catch {
      fatalError("an address does not parse after a round trip: \(whole): \(error)")
    }
  }
  checkProxyChoice(for: address)
}

/// Chooses a proxy from an environment.
private func checkProxyChoice(for address: WebAddress) {
  do throws(NetError) {
    let proxy = try NetProxy.server(for: address) { name in
      name == "ALL_PROXY" ? "http://proxy:3128" : name == "NO_PROXY" ? address.host : nil
    }
    if proxy != nil { fatalError("a proxy for a host that is exempt: \(address)") }
    let other = try NetProxy.server(for: address) { $0 == "ALL_PROXY" ? "http://proxy:3128" : nil }
    if (other == nil) != address.isLoopback { fatalError("the wrong choice for \(address)") }
  } catch {
    fatalError("a valid proxy is rejected: \(error)")
  }
}

private func checkProxy(_ text: String) {
  let proxy: NetProxy.Server
  do throws(NetError) { proxy = try NetProxy.Server(text) } catch { return checkError(error) }
  do throws(NetError) {
    let again = try NetProxy.Server(proxy.description)
    if again.host != proxy.host || again.port != proxy.port { fatalError("the round trip changed \(proxy)") }
    if again.credentials != nil { fatalError("a proxy shown with its password") }
  } catch {
    fatalError("a proxy does not parse after a round trip: \(proxy): \(error)")
  }
  if proxy.credentials != credentials(in: text) { fatalError("other credentials: \(text)") }
}

/// The text before the last `@`, decoded according to RFC 3986 section 2.1.
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
    let isUpperOrDigit = { (at: Int) in bytes[at] >= UInt8(ascii: "0") }
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
