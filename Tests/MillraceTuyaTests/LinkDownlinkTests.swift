import MillraceDialog
import MillraceJSON
import MillraceService
import Testing

@testable import MillraceTuya

/// The packets of one session, read as the wire does.
private final class Reader {
  private var downlink: TuyaDownlink
  /// Files to store.
  private(set) var files: [TuyaReceivedFile] = []

  init(cache: String? = nil, largest: Int = 1_000, _ dialect: TuyaDialect = .v21) {
    var settings = TuyaWireSettings(voice: TuyaVoice(.pcm), cache: cache)
    settings.largestFile = largest
    downlink = TuyaDownlink(dialect, settings)
    downlink.begin(
      TuyaChannels(
        sends: [], receives: [2, 4, 6, 8].map { TuyaChannels.Channel(kind: .audio, id: $0) }))
  }

  func breakOff() { downlink.breakOff() }

  /// The events of packets, in short words.
  func take(_ packets: TuyaPacket...) -> [String] {
    packets.flatMap { packet in
      let (events, files) = downlink.take(packet)
      self.files += files
      return events.map(word)
    }
  }

  private func word(_ event: ServiceEvent<TuyaNotice>) -> String {
    switch event {
    case .audio(let bytes): "audio \(bytes.count)"
    case .image(let bytes): "image \(bytes.count)"
    case .invalidMessage: "invalid"
    case .message(.streamBegan(.audio(let format))): "began \(format.codecNumber)"
    case .message(.streamBegan(.image(let format))): "image began \(format.width)"
    case .message(.streamBegan(.video(let format))): "video began \(format.codec)"
    case .message(.streamEnded(let kind)): "\(kind.rawValue) ended"
    case .message(.text(let text)): "text \(text.raw["n"]?.integer ?? -1)"
    case .message(.unreadableText): "unreadable"
    case .message(.event(let event)):
      "event \(event.type.rawValue) \(event.id)" + (event.data.map { " \($0.text)" } ?? "")
        + (event.userData.map { " + \($0.text)" } ?? "")
    case .message(.sessionAnswered(let status)): "answered \(status.rawValue)"
    case .message(.sessionClosed(let status)): "closed \(status.rawValue)"
    case .message(.sessionState(let status)): "state \(status.rawValue)"
    case .message(.unknown(let json)): "unknown \(json.text)"
    case .message(.progress(let progress)): "progress \(progress.bytes ?? 0)"
    default: "other"
    }
  }
}

/// The attributes of a picture, a video or a file.
private func parameters(_ add: (inout TuyaAttributes) -> Void) -> TuyaAttributes {
  var attributes = TuyaAttributes()
  add(&attributes)
  return attributes
}

private func image(
  _ flag: TuyaStreamFlag, _ bytes: [UInt8], payload: TuyaPayloadForm = .raw
) -> TuyaPacket {
  .media(
    .image, 4, flag, bytes,
    parameters {
      if flag.begins {
        TuyaImageParameters(payload: payload, format: 1, width: 640, height: 480).add(to: &$0, .v21)
      }
    })
}

private let jpeg: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0, 0, 0]

private func text(_ flag: TuyaStreamFlag, _ text: String) -> TuyaPacket {
  .media(.text, 4, flag, Array(text.utf8))
}

@Suite("Tuya: what a session receives") struct LinkDownlinkTests {
  @Test("sound is passed on as it comes, between its format and its end")
  func sound() {
    let reader = Reader()
    #expect(
      reader.take(.sound(2, .start, [1]), .sound(2, .streaming, [1, 2]), .sound(2, .end, [])) == [
        "began 109", "audio 1", "audio 2", "audio ended",
      ])
    #expect(reader.take(.sound(2, .onlyOne, [1])) == ["began 109", "audio 1", "audio ended"])
  }

  @Test("sound without a beginning is dropped, and so is what follows it")
  func orphan() {
    let reader = Reader()
    #expect(reader.take(.sound(2, .streaming, [1]), .sound(2, .end, [1])) == [])
    #expect(reader.take(.media(.audio, 2, .start, [1]), .sound(2, .streaming, [1])) == ["invalid"])
  }

  @Test(
    "sound that began before something was broken off is dropped up to the next stream",
    arguments: [true, false])
  func stale(_ isCloud: Bool) {
    let reader = Reader()
    _ = reader.take(.sound(2, .start, [1]))
    if isCloud {
      #expect(reader.take(.event(.chatBreak, "s", "e")) == ["event 4 e"])
    } else {
      reader.breakOff()
    }
    #expect(reader.take(.sound(2, .streaming, [1]), .sound(2, .end, [1])) == [])
    #expect(reader.take(.sound(2, .start, [1])) == ["began 109", "audio 1"])
  }

  @Test("a picture is passed on when it is complete")
  func pictures() {
    let reader = Reader()
    #expect(reader.take(image(.onlyOne, jpeg)) == ["image began 640", "image 6", "image ended"])
    #expect(reader.take(image(.start, jpeg), image(.streaming, [1, 2])) == [])
    #expect(reader.take(image(.end, [3])) == ["image began 640", "image 9", "image ended"])
  }

  @Test("a picture in Base64 is decoded, and an address passed on")
  func payloads() {
    let reader = Reader()
    let encoded = Array(Base64.encode(jpeg).utf8)
    #expect(
      reader.take(image(.onlyOne, encoded, payload: .base64)) == [
        "image began 640", "image 6", "image ended",
      ])
    #expect(reader.take(image(.onlyOne, [1, 2], payload: .base64)) == ["invalid"])
    let words = reader.take(image(.onlyOne, Array("https://a".utf8), payload: .url))
    #expect(words == [#"unknown {"kind":"image","url":"https://a"}"#])
  }

  @Test("a picture of another format is stored where there is a folder, and its loss told where not")
  func formats() {
    let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    #expect(Reader().take(image(.onlyOne, png)) == ["invalid"])
    let reader = Reader(cache: "/folder")
    #expect(reader.take(image(.onlyOne, png)) == [])
    #expect(reader.files.map(\.suffix) == ["png"])
    #expect(reader.files.map(\.kind) == [.image])
  }

  @Test("Motion JPEG is passed on picture by picture, another video stored")
  func video() {
    func packet(_ flag: TuyaStreamFlag, _ codec: Int, _ bytes: [UInt8]) -> TuyaPacket {
      .media(
        .video, 6, flag, bytes,
        parameters {
          if flag.begins {
            TuyaVideoParameters(codec: codec, width: 1, height: 1, fps: 5).add(to: &$0, .v21)
          }
        })
    }
    let reader = Reader(cache: "/folder")
    #expect(
      reader.take(packet(.start, 3, jpeg), packet(.streaming, 3, jpeg), packet(.end, 3, [])) == [
        "video began 3", "image 6", "image 6", "video ended",
      ])
    #expect(reader.take(packet(.start, 2, [1]), packet(.end, 2, [2])) == [])
    #expect(reader.files.map(\.bytes) == [[1, 2]])
    #expect(reader.files.map(\.suffix) == ["h264"])
  }

  @Test("a file is stored when it is complete; one that is too large is reported once")
  func files() {
    func packet(_ flag: TuyaStreamFlag, _ count: Int) -> TuyaPacket {
      .media(
        .file, 8, flag, [UInt8](repeating: 1, count: count),
        parameters { if flag.begins { TuyaFileParameters(format: 3, name: "a.pdf").add(to: &$0, .v21) } })
    }
    let reader = Reader(cache: "/folder", largest: 1_000)
    #expect(reader.take(packet(.start, 500), packet(.streaming, 400), packet(.end, 100)) == [])
    #expect(reader.files.map(\.name) == ["a.pdf"])
    #expect(
      reader.take(packet(.start, 900), packet(.streaming, 101), packet(.streaming, 900), packet(.end, 1))
        == ["invalid"])
    #expect(reader.files.count == 1)
  }

  @Test("data on ids that the session has not listed is dropped, and the first is reported")
  func unlisted() {
    let reader = Reader(cache: "/folder")
    #expect(reader.take(.sound(3, .start, [1])) == ["invalid"])
    for id: UInt16 in 10..<2_000 {
      #expect(reader.take(.sound(id, .start, [1]), .sound(id, .streaming, [1])) == [])
      #expect(reader.take(.media(.text, id, .onlyOne, Array(#"{"n": 1}"#.utf8))) == [])
    }
    #expect(reader.take(.sound(8, .start, [1])) == ["began 109", "audio 1"])
  }

  @Test("texts are documents, put together where they come in parts, at the latest when their event ends")
  func texts() {
    let reader = Reader()
    #expect(reader.take(text(.onlyOne, #"{"n": 1}"#)) == ["text 1"])
    #expect(reader.take(text(.start, #"{"n":"#), text(.end, "2}")) == ["text 2"])
    #expect(reader.take(text(.onlyOne, "no json")) == ["unreadable"])
    #expect(reader.take(text(.start, #"{"n":"#), text(.streaming, "3")) == [])
    #expect(reader.take(.event(.end, "s", "e")) == ["unreadable", "event 2 e"])
  }

  @Test("what an event that was broken off has begun to say is dropped")
  func brokenText() {
    let reader = Reader()
    #expect(reader.take(text(.start, #"{"n":"#)) == [])
    #expect(reader.take(.event(.chatBreak, "s", "e")) == ["event 4 e"])
    #expect(reader.take(.event(.end, "s", "e")) == ["event 2 e"])
  }

  @Test("an event has its data and its user data", arguments: [TuyaDialect.v21, .v1])
  func events(_ dialect: TuyaDialect) {
    let reader = Reader(dialect)
    var packet = TuyaPacket.event(.mcpCommand, "s", "e", #"{"id":1}"#)
    packet.attributes.add(
      .userData, bytes: TuyaUserData.bytes(["sessionAttributes": ["a": 1]], dialect))
    #expect(reader.take(packet) == [#"event 1000 e {"id":1} + {"sessionAttributes":{"a":1}}"#])
    #expect(reader.take(.event(.mcpCommand, "s", "e", "{")) == ["invalid"])
    #expect(reader.take(.event(TuyaEventType(rawValue: 9_999), "s", "e", "x")) == ["event 9999 e"])
  }

  @Test("the state of a session has its code; 0 and 200 are both success")
  func states() {
    func packet(_ type: TuyaPacketType, _ id: TuyaAttributeID, _ code: UInt64) -> TuyaPacket {
      TuyaPacket(type, parameters { $0.add(id, code) })
    }
    let reader = Reader()
    #expect(reader.take(packet(.sessionNew, .sessionStatus, 0)) == ["answered 200"])
    #expect(reader.take(packet(.sessionNew, .sessionStatus, 404)) == ["answered 404"])
    #expect(reader.take(packet(.sessionState, .sessionState, 1_001)) == ["state 1001"])
    #expect(reader.take(TuyaPacket(.sessionState)) == ["invalid"])
    #expect(reader.take(packet(.sessionClose, .sessionCloseCode, 607)) == ["closed 607"])
    #expect(reader.take(TuyaPacket(TuyaPacketType(rawValue: 77))) == [#"unknown {"packet":77}"#])
  }
}
