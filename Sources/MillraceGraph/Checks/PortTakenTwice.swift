import MillraceCore

enum PortTakenTwice: Check {
  static let rule =
    "No two nodes listen on one port of this machine, unless they share it: with the same address and rules, and with different paths."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    var ports: [Int: TakenPort] = [:]
    // What is wrong with other values is reported already.
    for node in graph.nodes where !node.hasUnknownValues && node.mismatches.isEmpty {
      for parameter in node.contract?.parameters ?? [] {
        guard let socket = parameter.socket, case .integer(let port)? = node.values[parameter.name], port != 0
        else { continue }
        let listener = Listener(node, parameter.name, socket)
        guard let clash = ports[port, default: TakenPort()].add(listener) else { continue }
        report(clash, on: port, of: listener, &problems)
      }
    }
  }

  private static func report(
    _ clash: Clash, on port: Int, of listener: Listener, _ problems: inout Problems
  ) {
    let other = clash.other
    let names = Wording.list([other.node.name, listener.node.name])
    let place = "port \(port) of \(Problem.quoted(listener.host))"
    // The key of the port is another one in nodes of other families.
    let keys = other.key == listener.key ? [listener.key] : [other.key, listener.key]
    let otherPort = "another \(Wording.oneOf(keys)) in one of them"
    let text: String
    let hint: String
    switch clash.reason {
    case .port:
      text = "\(names) both listen on \(place)"
      hint = "set \(otherPort)"
    case .path(let key, let path):
      text = "\(names) both serve the path \(Problem.quoted(path)) on \(place)"
      hint = "set another \(Problem.quoted(key)) in one of them, or \(otherPort)"
    case .rules(let rules):
      text = "\(names) share \(place), and have different values of \(Wording.list(rules))"
      hint = "give both the same, or set \(otherPort)"
    case .address(let key):
      let hosts = Wording.list([other.host, listener.host])
      text = "\(names) both listen on port \(port), at \(hosts), which overlap"
      let shares = key.map { "set the same \(Problem.quoted($0)) in both, or \(otherPort)" }
      hint = shares ?? "set \(otherPort)"
    }
    problems.append(listener.node.place(of: listener.key).error(.nodeRejected, text, hint: hint))
  }
}

/// A node that listens.
private struct Listener {
  let node: DraftNode
  /// The parameter that is its port.
  let key: String
  /// In lower case.
  let host: String
  let socket: ListeningSocket

  init(_ node: DraftNode, _ key: String, _ socket: ListeningSocket) {
    self.node = node
    self.key = key
    self.socket = socket
    host = Self.text(socket.host, of: node)?.lowercased() ?? "127.0.0.1"
  }

  /// Where those are kept apart that share the port; empty: nowhere.
  var path: String { Self.text(socket.sharing?.path, of: node) ?? "" }

  /// An IPv4 address in digits. A name may mean an address of either family.
  var isIPv4: Bool { host.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") } }

  private static func text(_ parameter: String?, of node: DraftNode) -> String? {
    guard let parameter, case .string(let text)? = node.values[parameter] else { return nil }
    return text
  }

  /// Parameters of which both must have the same values, and have not.
  func rules(differingFrom other: Listener) -> [String] {
    (socket.sharing?.rules ?? []).filter { node.values[$0] != other.node.values[$0] }
  }
}

/// Two nodes that cannot both listen.
private struct Clash {
  enum Reason {
    /// They do not share ports.
    case port
    /// They share the port, and have one path.
    case path(key: String, String)
    /// They would share the port, but for these parameters.
    case rules([String])
    /// One address includes the other; with the parameter that is the address, if they share ports.
    case address(key: String?)
  }

  let other: Listener
  let reason: Reason
}

/// The nodes on one port, by address. Takes the same time for each node, however many there are.
private struct TakenPort {
  private struct Address {
    let first: Listener
    var paths: [String: Listener]
  }

  /// The addresses that stand for all of this machine. Linux has a socket at the second take connections over IPv4, too (ip(7),
  /// ipv6(7): `IPV6_V6ONLY` is off by default), and lets nobody else listen at an address that is included.
  private static let wholeIPv4 = "0.0.0.0"
  private static let whole = "::"

  private var addresses: [String: Address] = [:]
  private var first: Listener?
  private var firstIPv4: Listener?

  /// Adds a node; returns with which one it cannot be, and why.
  mutating func add(_ listener: Listener) -> Clash? {
    if let address = addresses[listener.host] {
      if let clash = Self.clash(address.first, listener) { return clash }
      let path = listener.path
      if let other = address.paths[path] {
        return Clash(other: other, reason: .path(key: listener.socket.sharing?.path ?? "", path))
      }
      addresses[listener.host]?.paths[path] = listener
      return nil
    }
    if let other = overlapping(listener) {
      let key = Self.share(other, listener) ? listener.socket.host : nil
      return Clash(other: other, reason: .address(key: key))
    }
    addresses[listener.host] = Address(first: listener, paths: [listener.path: listener])
    first = first ?? listener
    if listener.isIPv4 { firstIPv4 = firstIPv4 ?? listener }
    return nil
  }

  /// Why two nodes cannot share the port of one address.
  private static func clash(_ other: Listener, _ listener: Listener) -> Clash? {
    guard share(other, listener) else { return Clash(other: other, reason: .port) }
    let rules = listener.rules(differingFrom: other)
    return rules.isEmpty ? nil : Clash(other: other, reason: .rules(rules))
  }

  private static func share(_ other: Listener, _ listener: Listener) -> Bool {
    guard let sharing = listener.socket.sharing else { return false }
    return sharing.group == other.socket.sharing?.group
  }

  /// A node at another address that includes this one's, or is included in it.
  private func overlapping(_ listener: Listener) -> Listener? {
    if listener.host == Self.whole { return first }
    if listener.host == Self.wholeIPv4, let firstIPv4 { return firstIPv4 }
    if let other = addresses[Self.whole] { return other.first }
    return listener.isIPv4 ? addresses[Self.wholeIPv4]?.first : nil
  }
}
