package import MillraceCore
internal import MillraceNet

/// Where a WHIP or WHEP server listens, and for whom.
package struct ResourceServerSettings: Sendable {
  /// What the server is for its clients.
  package enum Role: String, Sendable, Hashable, CaseIterable {
    /// WHIP: one client publishes.
    case ingest
    /// WHEP: many clients play.
    case playback
  }

  package var role: Role
  /// The address to listen on.
  package var host = "127.0.0.1"
  /// 0: any free port, which is shared with nobody.
  package var port: Int
  /// The path of the endpoint; those of sessions lie below it.
  package var path: String
  /// Clients must send it as `Authorization: Bearer …`; nil: none. A secret.
  package var bearer: String?
  /// See `ServerAdmission.origins`; pages of these may use the server.
  package var origins: [String] = []
  /// See `ServerAdmission.hosts`.
  package var hosts: [String] = []
  /// Allows to do without TLS where other machines reach the server.
  package var plain = false
  /// The paths of certificate chain and private key (PEM); nil: no TLS.
  package var certificate: String?
  package var key: String?
  /// The most viewers at once.
  package var viewers = 100
  /// What a session may carry, seen from this side.
  package var media: SignalMedia
  /// STUN and TURN servers that are offered to clients. Their passwords reach every client that is admitted.
  package var servers: [SignalServer] = []
  /// The server has had its port before, which it waits for when another program has taken it since. Without this a port that is in use is
  /// a mistake, and refused at once.
  package var hasHadPort = false
  /// Milliseconds in which an offer must be answered by this side.
  package var timeout = 5_000

  package init(role: Role, port: Int, path: String, media: SignalMedia) {
    self.role = role
    self.port = port
    self.path = path
    self.media = media
  }

  // MARK: Checks

  /// What is wrong with the settings, and the cure; nil: nothing. For the check of a graph, which may not read the certificate.
  package var problem: NodeProblem? {
    guard (0...65_535).contains(port) else {
      return NodeProblem("port \(port) does not exist", parameter: "listen", cure: "choose one up to 65535")
    }
    guard isPath else {
      return NodeProblem(
        "\"\(ServerText.shown(path))\" is not the path of an endpoint", parameter: "path",
        cure: "begin it with a slash, and leave out spaces, queries and a slash at its end: /whip")
    }
    guard (certificate == nil) == (key == nil) else {
      return NodeProblem(
        "a certificate needs its key, and a key its certificate",
        parameter: key == nil ? "certificate" : "key",
        cure: "set both, or neither")
    }
    guard viewers > 0 else { return NodeProblem("there must be room for a viewer", parameter: "viewers") }
    guard timeout > 0 else { return NodeProblem("a timeout must be at least 1 ms", parameter: "signal") }
    return admissionProblem
  }

  private var admissionProblem: NodeProblem? {
    // As for the token of the admission rules.
    var admission = admission
    admission.token = bearer
    if let problem = admission.problem { return NodeProblem(problem.text) }
    guard admission.problem(listeningAt: host, hasTLS: certificate != nil) != nil else { return nil }
    return NodeProblem(
      "other machines could reach \"\(ServerText.shown(host))\" without TLS", parameter: "host",
      cure: "set \"certificate\" and \"key\", or set \"plain\" to true behind a proxy that terminates TLS")
  }

  private var isPath: Bool {
    path == "/"
      || path.hasPrefix("/") && !path.hasSuffix("/") && path.utf8.count <= 256
        && path.utf8.allSatisfy {
          (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
        }
        && !path.split(separator: "/").contains { $0 == "." || $0 == ".." }
  }

  // MARK: Of the port

  /// The rules of the port. The bearer is not among them: it belongs to a path, and preflights of browsers have none.
  var admission: ServerAdmission {
    var admission = ServerAdmission()
    admission.origins = origins
    admission.hosts = hosts
    admission.allowsPlaintext = plain
    return admission
  }

  var identity: NetIdentity? {
    guard let certificate, let key else { return nil }
    return NetIdentity(certificate: certificate, key: key)
  }

  /// The path of a session.
  func path(of id: String) -> String { path == "/" ? "/\(id)" : "\(path)/\(id)" }

  /// "publisher" or "viewer".
  var client: String { role == .ingest ? "publisher" : "viewer" }
}

extension ResourceServerSettings: CustomStringConvertible {
  /// Protocol and place; the rest may be secret.
  package var description: String {
    "\(role == .ingest ? "WHIP" : "WHEP") server at \(host):\(port)\(path)"
  }
}
