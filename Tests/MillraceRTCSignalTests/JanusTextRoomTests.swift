import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceRTCSignal

@Suite("Janus: the text room's messages") struct JanusTextRoomTests {
  private func room() throws -> TextRoom {
    var settings = try JanusTexts.settings(.textroom)
    settings.pin = "0000"
    settings.user = "bot"
    settings.display = "Bot"
    return TextRoom(settings)
  }

  private func read(_ room: inout TextRoom, _ text: String) -> [TextRoom.Outcome] {
    room.read(Array(text.utf8))
  }

  @Test("join, message and leave are written with the room and a transaction each")
  func writing() throws {
    var room = try room()
    #expect(
      room.join()
        == #"{"textroom":"join","transaction":"1","room":1234,"pin":"0000","username":"bot","display":"Bot"}"#
    )
    #expect(
      room.message("hello \"you\"").text
        == #"{"textroom":"message","transaction":"2","room":1234,"text":"hello \"you\"","ack":true}"#)
    #expect(room.message("psst", to: "ann").text.contains(#""to":"ann""#))
    #expect(room.leave() == #"{"textroom":"leave","transaction":"4","room":1234}"#)
  }

  @Test("the answer to join says who is there")
  func joined() throws {
    var room = try room()
    _ = room.join()
    let text =
      #"{"textroom":"success","transaction":"1","participants":[{"username":"ann","display":"Ann"},{"username":"bot"}]}"#
    #expect(read(&room, text) == [.joined, .event(.peer(DialogPeer("ann", .joined, name: "Ann")))])
    #expect(read(&room, text) == [], "a repeated answer is none")
  }

  @Test("a join that is refused ends the session; a message that is refused only itself")
  func refused() throws {
    var room = try room()
    _ = room.join()
    let (_, number) = room.message("hello")
    let join = read(
      &room, #"{"textroom":"error","transaction":"1","error_code":419,"error":"Unauthorized (wrong pin)"}"#)
    guard case .failed(let error)? = join.first else {
      Issue.record("\(join)")
      return
    }
    #expect(error.category == .auth && error.reaction == .refuse && error.code == 419)
    #expect(!error.text.contains("0000"))
    let message = read(
      &room,
      #"{"textroom":"error","transaction":"2","error_code":423,"error":"No such user ann in room 1234"}"#)
    guard case .sent(let answered, let refusal?)? = message.first else {
      Issue.record("\(message)")
      return
    }
    #expect(answered == number && refusal.reaction == .continue && refusal.scope == .command)
  }

  @Test("messages, announcements, and those who come and go are events")
  func events() throws {
    var room = try room()
    #expect(
      read(&room, #"{"textroom":"message","room":1234,"from":"ann","date":"d","text":"hi"}"#)
        == [.event(.data(DialogData(.text("hi"), peer: "ann")))])
    #expect(
      read(&room, #"{"textroom":"announcement","room":1234,"text":"hi all"}"#)
        == [.event(.data(DialogData(.text("hi all"))))])
    #expect(
      read(&room, #"{"textroom":"join","room":1234,"username":"ann"}"#)
        == [.event(.peer(DialogPeer("ann", .joined)))])
    #expect(read(&room, #"{"textroom":"join","room":1234,"username":"bot"}"#) == [])
    #expect(
      read(&room, #"{"textroom":"leave","room":1234,"username":"ann"}"#)
        == [.event(.peer(DialogPeer("ann", .left)))])
    #expect(
      read(&room, #"{"textroom":"kicked","room":1234,"username":"ann"}"#)
        == [.event(.peer(DialogPeer("ann", .left, reason: "kicked")))])
  }

  @Test("removal and the end of the room end the session")
  func ends() throws {
    for text in [#"{"textroom":"kicked","username":"bot"}"#, #"{"textroom":"destroyed","room":1234}"#] {
      var room = try room()
      let outcomes = read(&room, text)
      guard case .event(.kicked)? = outcomes.first, case .failed(let error)? = outcomes.last else {
        Issue.record("\(outcomes)")
        return
      }
      #expect(error.reaction == .ended)
    }
  }

  @Test(
    "what is no message of the room is an error event that quotes nothing",
    arguments: ["", "hush", "{}", "[]", #"{"textroom":7}"#, #"{"textroom":"message","from":"ann"}"#])
  func invalid(text: String) throws {
    var room = try room()
    let outcomes = read(&room, text)
    guard case .event(.error(let error))? = outcomes.first, outcomes.count == 1 else {
      Issue.record("\(outcomes)")
      return
    }
    #expect(error.reaction == .continue && error.scope == .command && !error.text.contains("hush"))
    #expect(room.read([UInt8](repeating: 0x20, count: TextRoom.mostBytes + 1)).count == 1)
  }

  @Test("without a name each client makes one of its own")
  func names() throws {
    let settings = try JanusTexts.settings(.textroom)
    #expect(TextRoom(settings).user != TextRoom(settings).user)
  }
}
