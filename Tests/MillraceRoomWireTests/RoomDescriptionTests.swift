import MillraceRoomWire
import Testing

@Suite("Room wire: what is printed of messages") struct RoomSecretTests {
  private let secret = "a-secret-token"

  @Test("logins, joins, servers, tickets and requests print no secret")
  func secrets() throws {
    let ann = try #require(RoomName("ann"))
    let login = RoomLogin(ann, token: secret)
    let join = RoomJoin(ann, token: secret)
    let server = RoomServer("turn:relay", user: secret, password: secret)
    let ticket = RoomFileTicket(ann, ticket: secret, path: "/files/ann")
    let joined = RoomJoined(
      ann, room: ann, role: .host, rights: [], peers: [], media: nil, servers: [server])
    #expect("\(login)" == "login of ann" && "\(join)" == "join of ann")
    #expect("\(server)" == "turn:relay" && "\(ticket)" == "ticket for /files/ann")
    let texts = [
      "\(RoomOperation.login(login))", "\(RoomRequest(1, .join(join)))", "\(joined)",
      String(reflecting: RoomRequest(1, .login(login))), String(reflecting: [server]),
      "\(RoomOperation.message(secret))",
    ]
    for text in texts { #expect(!text.contains(secret), "\(text)") }
  }
}
