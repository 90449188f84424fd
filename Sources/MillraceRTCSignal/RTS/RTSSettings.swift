package import MillraceCore
package import MillraceNet

/// Where and how `RTSClient` plays or pushes a stream.
package struct RTSSettings: Sendable {
  /// The stream: `artc://`, `https://`, or `http://` on this machine or with `plain`. Its query may be a secret.
  package var url: String
  package var direction: RTSDirection
  package var dialect: RTSDialect
  /// Where the offer goes; nil: the address of the stream by `https:`, as aliyun wants it. NetEase has an address of its own.
  package var endpoint: WebAddress?
  /// Told to the server as `sdk_version`.
  package var sdkVersion = "0.0.1"
  /// For NetEase. A secret.
  package var appKey: String?
  /// What the session carries.
  package var media: SignalMedia
  /// Milliseconds in which the server must answer, redirects included.
  package var timeout = 5_000
  /// A file of certificates (PEM) to trust in place of the system's.
  package var roots: String?
  package var proxy = NetProxy.environment
  /// False: any certificate is accepted; only for this machine.
  package var verify = true
  /// Allows `http:` beyond this machine.
  package var plain = false

  package init(
    url: String, media: SignalMedia, direction: RTSDirection = .play, dialect: RTSDialect = .aliyun
  ) {
    self.url = url
    self.media = media
    self.direction = direction
    self.dialect = dialect
  }

  /// What is wrong with the settings, and the cure; nil: nothing. For the check of a graph; `begin` looks again.
  package var problem: NodeProblem? {
    do throws(NodeProblem) { _ = try access() } catch { return error }
    return nil
  }

  /// How the server is reached.
  func access() throws(NodeProblem) -> SignalAccess {
    let scheme = Self.overHTTP(url).prefix { $0 != ":" }.lowercased()
    guard scheme == "https" || scheme == "http" else {
      throw NodeProblem(
        "the address of a stream must begin with artc:, https: or http:", parameter: "url",
        cure: "write it as artc://domain/app/stream")
    }
    let stream: WebAddress
    do throws(NetError) { stream = try WebAddress(Self.overHTTP(url)) } catch {
      throw NodeProblem(error.text, parameter: "url", cure: "write it as artc://domain/app/stream")
    }
    if dialect == .netease {
      guard endpoint != nil else {
        throw NodeProblem(
          "NetEase takes offers at an address of its own, which is not set", parameter: "endpoint",
          cure: "set it to the address ending in /v1/live/play")
      }
      guard let appKey, !appKey.isEmpty else {
        throw NodeProblem("NetEase wants an app key", parameter: "appKey", cure: "set it")
      }
    }
    let access = SignalAccess(
      url: endpoint ?? stream, bearer: nil, headers: [], timeout: timeout, roots: roots, proxy: proxy,
      verify: verify, plain: plain)
    if let problem = access.problem { throw problem }
    return access
  }

  /// The address over which a stream's offer goes: `artc:` is `https:`.
  static func overHTTP(_ url: String) -> String {
    let scheme = url.prefix { $0 != ":" }
    return scheme.lowercased() == "artc" ? "https" + url.dropFirst(scheme.count) : url
  }
}

extension RTSSettings: CustomStringConvertible {
  /// Direction and dialect; the rest may be secret.
  package var description: String { "RTS \(direction.rawValue), \(dialect.rawValue)" }
}
