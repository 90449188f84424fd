import MillraceIVH
import MillraceJSON
import Testing

@Suite("signatures of IVH") struct SignatureTests {
  struct Vector: Sendable {
    var key, token: String
    var time: Int
    var session: String?
    var signature: String
  }

  /// Of the vendor's documents, the second computed from its example with a `requestid`.
  static let vectors = [
    Vector(
      key: "example_appkey", token: "example_accesstoken", time: 1_717_639_699,
      signature: "aCNWYzZdplxWVo+JsqzZc9+J9XrwWWITfX3eQpsLVno="),
    Vector(
      key: "example_appkey", token: "example_accesstoken", time: 1_717_639_699, session: "example_requestid",
      signature: "QVenICk0VHtHGYZKXM6IC+W1CjZC1joSr/x0gfKKYT4="),
    Vector(
      key: "e38267c0e86411ebb02aed82acb0ed99", token: "f68f2d10ae9e4604b76fb05cf46bccec", time: 1_646_636_485,
      signature: "BfWuaC9kmaicCggXc693uK+sZQ8qe88O4HVQNTdwZuo="),
  ]

  @Test("are those of the vendor's documents", arguments: vectors)
  func vector(vector: Vector) {
    let query = IVHAccount(appKey: vector.key, token: vector.token).query(
      at: vector.time, session: vector.session)
    let session = vector.session.map { "&requestid=\($0)" } ?? ""
    let signature = PercentEncoding.encode(vector.signature)
    #expect(query == "appkey=\(vector.key)\(session)&timestamp=\(vector.time)&signature=\(signature)")
    // What a query cannot hold is escaped: a "+" would arrive as a space.
    #expect(!signature.contains("+") && !signature.contains("/") && !signature.contains("="))
  }

  @Test("change with the second, and contain no token")
  func fresh() {
    let account = IVHAccount(appKey: "key", token: "secret-token")
    #expect(account.query(at: 1) != account.query(at: 2))
    #expect(!account.query(at: 1).contains("secret-token"))
    #expect(!"\(account)".contains("secret-token"))
  }
}
