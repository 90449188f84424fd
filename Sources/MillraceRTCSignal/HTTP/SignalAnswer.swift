internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTCWire

/// A description that a server has answered with, and its text.
struct SignalAnswer: Sendable {
  let text: String
  let description: SessionDescription

  /// The type of descriptions in HTTP. Source: RFC 8866 section 8.1.
  static let mediaType = "application/sdp"

  /// Reads the body of a response, whatever its type says: some servers send descriptions as `text/plain`.
  /// - Throws: `badAnswer` with a message. It quotes nothing of the answer.
  init(_ response: HTTPClient.Response) throws(DialogError) {
    let server = response.address.authority
    func bad(_ text: String) -> DialogError {
      RTCError.badAnswer.error("\(server) \(text)", code: response.status)
    }
    let type = (response["Content-Type"] ?? "").lowercased()
    guard let first = response.body.first(where: { $0 > 0x20 }) else {
      throw bad(
        "answered with status \(response.status) and no description; check whether the URL is an endpoint")
    }
    guard !type.hasPrefix("text/html"), first != UInt8(ascii: "<") else {
      throw bad(
        "answered with a web page instead of a description; check the URL, and whether a proxy answers for it"
      )
    }
    try self.init(response.body, of: server)
  }

  /// Reads a description that stood within a message.
  init(_ bytes: [UInt8], of server: String) throws(DialogError) {
    do throws(SDPProblem) { description = try SessionDescription(parsing: bytes) } catch {
      throw RTCError.badAnswer.error("the answer of \(server) cannot be used: \(error)")
    }
    guard !description.media.isEmpty else {
      throw RTCError.badAnswer.error("the answer of \(server) has no m-lines; check what the server supports")
    }
    text = String(decoding: bytes, as: UTF8.self)
  }

  private init(_ description: SessionDescription) {
    self.description = description
    text = description.text
  }

  /// The answer after an ICE restart: the same but for what the fragment says (RFC 9725 section 4.3.3). Nil: it has no credentials.
  func restarted(by fragment: TrickleFragment) -> SignalAnswer? {
    guard let section = fragment.sections.first(where: { fragment.credentials(of: $0) != nil }) else {
      guard let credentials = fragment.credentials else { return nil }
      return restarted(credentials, nil, [], fragment.hasEndOfCandidates)
    }
    guard let credentials = fragment.credentials(of: section) else { return nil }
    let isComplete = section.hasEndOfCandidates || fragment.hasEndOfCandidates
    return restarted(credentials, section.mid, section.candidates, isComplete)
  }

  private func restarted(
    _ credentials: ICECredentials, _ mid: String?, _ candidates: [ICECandidate], _ isComplete: Bool
  ) -> SignalAnswer {
    var answer = description
    answer.origin.version += answer.origin.version < .max ? 1 : 0
    answer.transport.credentials = nil
    answer.attributes.removeAll { $0.name == "end-of-candidates" }
    let accepted = answer.media.indices.filter { !answer.media[$0].isRejected }
    let tagged = accepted.first { mid != nil && answer.media[$0].mid == mid } ?? accepted.first
    for index in accepted {
      answer.media[index].transport.credentials = credentials
      answer.media[index].candidates = index == tagged ? candidates : []
      answer.media[index].hasEndOfCandidates = index == tagged && isComplete
    }
    return SignalAnswer(answer)
  }
}
