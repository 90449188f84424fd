import MillraceCore
import Testing

@testable import MillraceVideo

@Suite("What comes at the input for a stream's address")
struct StreamRequestTests {
  /// The end of an address with so many bytes.
  private static func key(_ length: Int) -> String { String(repeating: "hush", count: length / 4) }

  @Test("an address is a secret from the moment it is read, also one that is refused")
  func learnt() {
    for scheme in ["rtmp", "http"] {
      let secrets = Secrets()
      let request = StreamRequest(url: "\(scheme)://user:\(Self.key(16))@host/app/stream", nil, secrets)
      if case .refused = request { #expect(scheme == "http") } else { #expect(scheme == "rtmp") }
      let shown = secrets.redacting("it is \(Self.key(16)).")
      #expect(shown == "it is \(Secrets.mark).")
    }
  }

  @Test("an address that is refused for its length is not: no text is searched for it")
  func long() {
    let secrets = Secrets()
    let request = StreamRequest(
      url: "rtmp://host/app/" + Self.key(StreamAddress.longest), nil, secrets)
    guard case .refused(let problem) = request else {
      Issue.record("\(request)")
      return
    }
    #expect(problem.text == "the address has more than 2048 bytes")
    #expect(secrets.isEmpty)
  }
}
