public import MillraceDialog
public import MillraceNet

extension DialogError {
  /// What the end of a connection means, the same for every service: RFC 9110 section 15, RFC 6455 section 7.4.
  ///
  /// | end | category | reaction |
  /// |---|---|---|
  /// | 401, 403; 407 of a proxy; close code 1008 | auth | refuse |
  /// | 429 | quota | reconnect |
  /// | 408, 5xx; any loss | network | reconnect |
  /// | any other status | request | refuse |
  /// | certificate not trusted, no TLS; no valid address | network | refuse |
  /// | cancelled here; close code 1000; a byte stream that this side ended | network | ended |
  /// | a byte stream that the peer ended: it has no code that says why | network | reconnect |
  ///
  /// - Parameters:
  ///   - end: the end of a WebSocket, or of its opening.
  ///   - vendor: of the error.
  ///   - cure: appended to the text of a refused key (401, 403).
  public init(_ end: WebSocketEnd, vendor: String, cure: String = "") {
    if let problem = end.problem {
      self.init(problem, vendor: vendor, cure: cure)
    } else {
      let (category, reaction): (Category, Reaction) =
        switch end.code {
        case 1000: (.network, .ended)
        case 1008: (.auth, .refuse)
        default: (.network, .reconnect)
        }
      self.init(vendor: vendor, category: category, reaction: reaction, text: end.description)
    }
    code = end.problem?.status ?? end.code
  }

  /// What the end of a byte stream means: the table above.
  public init(_ end: ByteStreamEnd, vendor: String) {
    if let problem = end.problem {
      self.init(problem, vendor: vendor)
    } else {
      self.init(
        vendor: vendor, category: .network, reaction: end.isLocal ? .ended : .reconnect,
        text: end.description)
    }
  }

  /// What the failure of a connection or a call means: the table above.
  public init(_ problem: NetError, vendor: String, cure: String = "") {
    var category = Category.network
    var reaction = Reaction.reconnect
    var text = problem.text
    switch (problem.kind, problem.status) {
    case (.refused, 401?), (.refused, 403?):
      (category, reaction) = (.auth, .refuse)
      text += cure
    case (.proxy, 407?): (category, reaction) = (.auth, .refuse)
    case (.refused, 429?): category = .quota
    case (.refused, 408?): break
    case (.refused, let status?) where (200..<500).contains(status):
      // Neither a page nor a redirect becomes what was asked for when the request is repeated.
      (category, reaction) = (.request, .refuse)
    case (.tls, _), (.address, _): reaction = .refuse
    case (.cancelled, _): reaction = .ended
    default: break
    }
    self.init(
      vendor: vendor, code: problem.status, name: problem.kind.rawValue, category: category,
      reaction: reaction, text: text)
  }
}
