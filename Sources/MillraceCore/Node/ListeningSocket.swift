/// Where a node listens: what a parameter opens whose value is the number of a TCP port of this machine. 0 is any free port, and never
/// taken; without a value the node does not listen.
package struct ListeningSocket: Sendable, Hashable {
  /// Nodes of one program that listen on one port together, each at a path of its own. They must name the same address.
  package struct Sharing: Sendable, Hashable {
    /// Nodes share with those of the same group, whatever their types.
    package var group: String
    /// The parameter, a text, that is the path of the node.
    package var path: String
    /// The parameters of which all nodes of a port must have the same values.
    package var rules: [String]

    package init(group: String, path: String, rules: [String]) {
      self.group = group
      self.path = path
      self.rules = rules
    }
  }

  /// The parameter, a text, that is the address to listen on; nil: the node listens on 127.0.0.1.
  package var host: String?
  /// Nil: the node shares its port with nobody.
  package var sharing: Sharing?

  package init(host: String?, sharing: Sharing? = nil) {
    self.host = host
    self.sharing = sharing
  }
}

extension ParameterContract {
  /// The same parameter, an integer, as the port of a socket.
  package func opening(_ socket: ListeningSocket) -> ParameterContract {
    var parameter = self
    parameter.socket = socket
    return parameter
  }
}
