import MillraceDialog
import MillraceService
import Testing

@testable import EchoService

@Suite("the records of the echo service") struct MessageTests {
  @Test("every record of the service is what its page says")
  func parses() throws {
    let messages: [([UInt8], EchoMessage)] = [
      ([0x81, 0x69, 0x64], .welcome(id: "id")), ([0x82, 0, 9], .state(.listening, reply: 9)),
      ([0x82, 1, 9], .state(.thinking, reply: 9)), ([0x82, 2, 255], .state(.responding, reply: 255)),
      ([0x83, 1], .speech(isOn: true)), ([0x83, 0], .speech(isOn: false)), ([0x85], .complete),
      ([0x87], .beat), ([0x88], .goodbye), ([0x7F], .unknown(["kind": 0x7F, "payload": ""])),
      ([0x89, 1, 2, 3], .unknown(["kind": 0x89, "payload": "AQID"])),
    ]
    for (record, message) in messages {
      guard case .message(message) = EchoMessage.parse(record) else {
        Issue.record("\(record) is \(EchoMessage.parse(record))")
        continue
      }
    }
    guard case .audio([1, 2, 3]) = EchoMessage.parse([0x84, 1, 2, 3]) else {
      Issue.record("no audio")
      return
    }
  }

  @Test("a failure of the service has the category, the reaction and the scope of its code")
  func failures() throws {
    let wanted: [(DialogError.Category, DialogError.Reaction, DialogError.Scope)] = [
      (.auth, .refuse, .connection), (.network, .reconnect, .connection), (.tts, .continue, .reply),
      (.internal, .reconnect, .connection),
    ]
    for (index, (category, reaction, scope)) in wanted.enumerated() {
      guard case .message(.failure(let error)) = EchoMessage.parse([0x86, UInt8(index + 1)]) else {
        Issue.record("code \(index + 1) is no failure")
        continue
      }
      #expect(error.category == category && error.reaction == reaction && error.scope == scope)
      #expect(error.vendor == "echo" && error.code == index + 1 && !error.text.isEmpty)
    }
  }

  @Test("an invalid record is reported without a byte of its payload")
  func invalid() {
    let secret = Array("secret".utf8)
    let records: [[UInt8]] = [
      [], [0x81], [0x82], [0x82, 0], [0x82, 3, 0], [0x82, 0, 0, 0], [0x83], [0x83, 2], [0x83, 1, 1], [0x84],
      [0x85] + secret, [0x86], [0x86, 0], [0x86, 5], [0x86, 1, 1], [0x87, 0], [0x88] + secret,
    ]
    for record in records {
      guard case .invalidMessage(let text) = EchoMessage.parse(record) else {
        Issue.record("\(record) is valid")
        continue
      }
      #expect(!text.isEmpty && !text.contains("secret"))
    }
  }

  @Test("every record of a client is what the page of the protocol says, and the key is in the first only")
  func requests() {
    #expect(EchoRequest.hello.record(key: "ab") == [0x01, 1, 0x61, 0x62])
    #expect(EchoRequest.say("hi").record(key: "ab") == [0x03, 0x68, 0x69])
    #expect(EchoRequest.over(reply: 200).record(key: "ab") == [0x04, 200])
    #expect(EchoRequest.bye.record(key: "ab") == [0x05])
  }
}
