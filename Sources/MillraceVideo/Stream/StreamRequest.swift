internal import MillraceCore
internal import MillraceJSON

/// What a packet at the input `address` of a node asks for.
enum StreamRequest {
  /// To play from this address, or to push to it.
  case begin(StreamAddress)
  /// To stop.
  case end
  /// The sound from here on belongs to the next reply.
  case nextReply
  /// Nothing: another event of a service.
  case nothing
  /// It cannot be understood. The problem shows nothing of the address.
  case refused(NodeProblem)

  /// Reads a packet: an address as text, or an event of a service.
  ///
  /// The address is learnt as a secret before this returns, also one that is refused, except one that is refused for its length.
  /// - Parameters:
  ///   - isEvent: whether the packet is an event and not text.
  ///   - roots: trusted certificates of the node.
  init(_ packet: borrowing Packet, isEvent: Bool, roots: String?, learning secrets: Secrets) {
    let content = packet.samples(of: UInt8.self)
    let bytes = content.indices.map { content[$0] }
    guard isEvent else {
      self.init(url: String(decoding: bytes, as: UTF8.self), roots, secrets)
      return
    }
    // A service's output of events may be linked as a whole. Each of them is parsed, so that what is no event is noticed.
    guard let event = try? JSONValue(parsing: bytes), event.members != nil else {
      self = .refused(
        NodeProblem("the event is not a JSON object", cure: #"send {"event":"stream","url":"rtmp://…"}"#))
      return
    }
    switch event["event"]?.string {
    case "stream":
      let url = event["url"]
      guard let text = url?.string else {
        let isAbsent = url == nil || url?.isNull == true
        self = isAbsent ? .end : .refused(NodeProblem("the event's \"url\" is not a text"))
        return
      }
      self.init(url: text, roots, secrets)
    case "streamEnded": self = .end
    // Not `replyStarted`, the word of every dialogue: it comes when the service begins to speak, ahead of the stream.
    case "streamReplyStarted": self = .nextReply
    default: self = .nothing
    }
  }

  /// Reads an address, which may have white space around it; an empty one asks for the end.
  init(url: String, _ roots: String?, _ secrets: Secrets) {
    let url = Self.trimmed(url)
    guard !url.isEmpty else {
      self = .end
      return
    }
    // Every text is searched for every secret.
    if url.utf8.count <= StreamAddress.longest { secrets.learn(url, as: .address) }
    do throws(NodeProblem) { self = .begin(try StreamAddress(url, roots: roots)) } catch {
      self = .refused(error)
    }
  }

  /// The text without the white space around it, such as the line break of a program that writes lines.
  private static func trimmed(_ text: String) -> String {
    let rest = text.drop { $0.isWhitespace }
    guard let last = rest.lastIndex(where: { !$0.isWhitespace }) else { return "" }
    return String(rest[...last])
  }
}

extension PortContract {
  /// The input `address` of nodes that play or push a live stream.
  static func streamAddress(_ text: String) -> PortContract {
    PortContract("address", .kind(.text).or(.kind(.event)), text: text, required: false)
  }
}

extension Resolution {
  /// Checks the address of a node that has an input `address`, too.
  mutating func checkStreamAddress() {
    do throws(NodeProblem) {
      let address = try StreamAddress.given(in: parameters)
      guard address == nil, !linkedInputs.contains("address") else { return }
      refuse(
        "url", "there is no address: neither \"url\" nor a link to the input \"address\"",
        cure: "set \"url\", or link what tells the address while the graph runs")
    } catch { refuse(error.parameter, error.text, cure: error.cure) }
  }
}
