package import MillraceCore
package import MillraceNet

/// Where and how `WHIPClient` publishes or plays.
package struct WHIPSettings: Sendable {
  /// The endpoint: `https:`, or `http:` on this machine or with `plain`. Its query may be a secret.
  package var url: WebAddress
  /// Sent as `Authorization: Bearer …`; nil or empty: none. A secret.
  package var bearer: String?
  /// Sent with every request to the host of `url`. Their values may be secrets.
  package var headers: [(name: String, value: String)] = []
  /// WHEP: this side receives. False: WHIP.
  package var isPlayback: Bool
  /// What the session carries.
  package var media: SignalMedia
  /// STUN and TURN servers that an earlier attempt has learnt; see `WHIPClient.servers`.
  package var servers: [SignalServer] = []
  /// Milliseconds in which a request must be answered, redirects included.
  package var timeout = 5_000
  /// A file of certificates (PEM) to trust in place of the system's.
  package var roots: String?
  package var proxy = NetProxy.environment
  /// False: any certificate is accepted; only for this machine.
  package var verify = true
  /// Allows `http:` beyond this machine.
  package var plain = false

  package init(url: WebAddress, media: SignalMedia, isPlayback: Bool = false) {
    self.url = url
    self.media = media
    self.isPlayback = isPlayback
  }

  /// What is wrong with the settings, and the cure; nil: nothing. For the check of a graph; `begin` looks again.
  package var problem: NodeProblem? { access.problem }

  var access: SignalAccess {
    SignalAccess(
      url: url, bearer: bearer, headers: headers, timeout: timeout, roots: roots, proxy: proxy,
      verify: verify, plain: plain)
  }
}

extension WHIPSettings: CustomStringConvertible {
  /// The protocol and the host; the rest may be secret.
  package var description: String { "\(isPlayback ? "WHEP" : "WHIP") at \(url.scheme)://\(url.authority)" }
}
