internal import MillraceJSON

/// A message of a hub: an answer or a push. What a member reads.
public enum RoomHubMessage: Sendable, Hashable {
  /// To a request of this member.
  case answer(RoomAnswer)
  /// Unasked.
  case push(RoomPush)

  /// Reads a text frame. A problem with an `id` is about the answer to that request, which then has failed; one without concerns nothing
  /// that this member asked.
  public init(parsing bytes: [UInt8]) throws(RoomReadProblem) {
    let form = try JSONForm.message(bytes)
    if form["answer"] != nil {
      self = .answer(try RoomAnswer(form))
    } else if form["event"] != nil {
      self = .push(try RoomPush(form))
    } else {
      throw RoomReadProblem(.badMessage, "the message must have an \"answer\" or an \"event\"")
    }
  }
}
