public import MillraceJSON

/// What happened to a call between this client and another.
///
/// ```
/// the other end calls:   incoming ─▸ (answerCall) ─▸ established ─▸ changed … ─▸ ended
///                            └▸ elsewhere: another device of this user has answered or rejected it
/// this client calls:     (call) ─▸ ringing ─▸ accepted ─▸ established ─▸ changed … ─▸ ended
///                                     └▸ rejected, busy
/// ```
///
/// The state of the dialogue is `connecting` until a call is established. After `rejected`, `busy`, `elsewhere` and `ended` nothing more
/// can be done with it.
public struct DialogCall: Sendable, Hashable {
  /// What happened.
  public enum Change: String, Sendable, Hashable, CaseIterable {
    /// Somebody calls this client.
    case incoming
    /// The other end has received this client's call, and rings.
    case ringing
    /// The other end has accepted this client's call, has rejected it, or is in another call.
    case accepted, rejected, busy
    /// Another device of this user has answered: see `isAccepted`.
    case elsewhere
    /// Audio and video can flow.
    case established
    /// The call changes what it carries: `media` is what was asked for or agreed, and `reason` says which, in the vendor's words.
    case changed
    /// It has ended: `by` says who ended it, if anybody did.
    case ended
  }

  /// The vendor's id of the call.
  public var id: String
  /// What happened.
  public var change: Change
  /// The participant who caused it, by the vendor's id.
  public var by: String?
  /// What the call carries; empty: unknown.
  public var media: [DialogTrack]
  /// What the caller sends along.
  public var message: String?
  /// After `elsewhere`: true if it was accepted there.
  public var isAccepted: Bool?
  /// The vendor's reason.
  public var reason: String?

  /// Creates a change of a call.
  public init(
    _ id: String, _ change: Change, by: String? = nil, media: [DialogTrack] = [], message: String? = nil,
    isAccepted: Bool? = nil, reason: String? = nil
  ) {
    self.id = id
    self.change = change
    self.by = by
    self.media = media
    self.message = message
    self.isAccepted = isAccepted
    self.reason = reason
  }
}

extension DialogCall {
  var json: JSONValue {
    .object([
      "id": .string(id), "change": .string(change.rawValue), "by": by.map { .string($0) },
      "media": media.isEmpty ? nil : DialogTrack.json(media), "message": message.map { .string($0) },
      "accepted": isAccepted.map { .bool($0) }, "reason": reason.map { .string($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let json = form.json
    self.init(
      try form.string("id"), try form.word("change"), by: json["by"]?.string,
      media: try DialogTrack.list(form, "media") ?? [], message: json["message"]?.string,
      isAccepted: json["accepted"]?.bool, reason: json["reason"]?.string)
  }
}

/// A call to be made.
public struct DialogCallRequest: Sendable, Hashable {
  /// Whom to call, by the vendor's id.
  public var peer: String
  /// What the call is to carry.
  public var media: [DialogTrack]
  /// What the other end receives with the call.
  public var message: String?
  /// The vendor's own options.
  public var options: JSONValue?

  /// Creates a request; a call carries audio unless `media` says otherwise.
  public init(
    to peer: String, media: [DialogTrack] = [.audio], message: String? = nil, options: JSONValue? = nil
  ) {
    self.peer = peer
    self.media = media
    self.message = message
    self.options = options
  }
}

extension DialogCallRequest {
  var members: KeyValuePairs<String, JSONValue?> {
    [
      "peer": .string(peer), "media": DialogTrack.json(media), "message": message.map { .string($0) },
      "options": options,
    ]
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      to: try form.string("peer"), media: try DialogTrack.list(form, "media") ?? [.audio],
      message: form.json["message"]?.string, options: form.json["options"])
  }
}

/// The answer to an incoming call.
public struct DialogCallAnswer: Sendable, Hashable {
  /// The vendor's id of the call.
  public var call: String
  /// True: accepts it; false: rejects it.
  public var isAccepted: Bool
  /// What the caller receives with the answer.
  public var message: String?
  /// The vendor's own options.
  public var options: JSONValue?

  /// Creates an answer.
  public init(_ call: String, isAccepted: Bool, message: String? = nil, options: JSONValue? = nil) {
    self.call = call
    self.isAccepted = isAccepted
    self.message = message
    self.options = options
  }
}

extension DialogCallAnswer {
  var members: KeyValuePairs<String, JSONValue?> {
    [
      "call": .string(call), "accept": .bool(isAccepted), "message": message.map { .string($0) },
      "options": options,
    ]
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      try form.string("call"), isAccepted: try form.bool("accept"), message: form.json["message"]?.string,
      options: form.json["options"])
  }
}
