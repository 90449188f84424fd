import MillraceDialog
import MillraceJSON
import MillraceService

/// A message of the echo service, whose protocol is a stream of records over TLS: four bytes of length, the most significant first; one
/// byte for the kind; the payload. Audio is 16-bit mono PCM at 16 kHz, texts are UTF-8.
///
/// | the client sends | payload | the service sends | payload |
/// |---|---|---|---|
/// | 01 hello | version 1, key | 81 welcome | id of the dialogue |
/// | 02 audio | all that the microphone hears | 82 state | 0 listening, 1 thinking, 2 responding; reply |
/// | 03 say | text, one while the service listens | 83 speech | 1 began, 0 ended |
/// | 04 over | reply | 84 audio | of the reply |
/// | 05 bye | | 85 complete | |
/// | | | 86 failure | 1 key, 2 busy, 3 reply, 4 service |
/// | | | 87 beat, at least once a second; 88 goodbye | |
///
/// A reply has a number of one byte. It is what the user said before a silence, or a text that is to be said, as speech. It is over when
/// the client says so, because it was played or interrupted, or when the user speaks; then the service listens again.
enum EchoMessage: Sendable, Hashable {
  case welcome(id: String)
  case state(DialogState, reply: UInt8)
  case speech(isOn: Bool)
  case complete, beat, goodbye
  case failure(DialogError)
  case unknown(JSONValue)

  /// More bytes than any record of the service has.
  static let largestRecord = 1 << 20

  /// Parses a record. The text for an invalid one repeats nothing of it.
  static func parse(_ record: [UInt8]) -> ServiceEvent<EchoMessage> {
    guard let kind = record.first else { return .invalidMessage("a record has no kind") }
    let payload = Array(record.dropFirst())
    switch (kind, payload.count, payload.first) {
    case (0x81, 1..., _): return .message(.welcome(id: String(decoding: payload, as: UTF8.self)))
    case (0x82, 2, 0): return .message(.state(.listening, reply: payload[1]))
    case (0x82, 2, 1): return .message(.state(.thinking, reply: payload[1]))
    case (0x82, 2, 2): return .message(.state(.responding, reply: payload[1]))
    case (0x83, 1, 0), (0x83, 1, 1): return .message(.speech(isOn: payload[0] == 1))
    case (0x84, 1..., _): return .audio(payload)
    case (0x85, 0, _): return .message(.complete)
    case (0x86, 1, 1):
      return .message(.failure(.echo(.auth, .refuse, "the key is not valid; check \"key\"", code: 1)))
    case (0x86, 1, 2): return .message(.failure(.echo(.network, .reconnect, "the service is busy", code: 2)))
    case (0x86, 1, 3):
      return .message(.failure(.echo(.tts, .continue, "there is no reply", code: 3, of: .reply)))
    case (0x86, 1, 4):
      return .message(.failure(.echo(.internal, .reconnect, "the service cannot continue", code: 4)))
    case (0x87, 0, _): return .message(.beat)
    case (0x88, 0, _): return .message(.goodbye)
    case (0x81...0x88, _, _): return .invalidMessage("the payload of kind \(kind) is not valid")
    default:
      return .message(.unknown(["kind": .integer(Int(kind)), "payload": .string(Base64.encode(payload))]))
    }
  }
}

/// A message to the echo service.
enum EchoRequest: Sendable, Hashable {
  case hello, say(String), over(reply: UInt8), bye

  func record(key: String) -> [UInt8] {
    switch self {
    case .hello: [0x01, 1] + Array(key.utf8)
    case .say(let text): [0x03] + Array(text.utf8)
    case .over(let reply): [0x04, reply]
    case .bye: [0x05]
    }
  }
}

extension DialogError {
  /// An error of the echo service, with a code where the service reports it.
  static func echo(
    _ category: Category, _ reaction: Reaction, _ text: String, code: Int? = nil,
    of scope: Scope = .connection
  ) -> DialogError {
    DialogError(
      vendor: "echo", code: code, category: category, reaction: reaction, scope: scope, text: text)
  }
}
