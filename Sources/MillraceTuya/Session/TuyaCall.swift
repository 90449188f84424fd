public import MillraceJSON

/// What a session asks its connection for. Ids of events are the session's; ids of data channels are the connection's own affair.
public enum TuyaCall: Sendable, Hashable {
  /// Asks for a token, which is answered by the notice `token` with this number; a rejected one is not given out again.
  case requestToken(Int, rejectsPresent: Bool)
  /// Creates the session, with the latest token.
  case createSession(TuyaCreation)
  /// Closes the session.
  case closeSession(TuyaStatus)
  /// Begins an event.
  case startEvent(String, userData: JSONValue?)
  /// The user's audio from now on belongs to this event: a stream of it begins with its first frame.
  case beginVoice(event: String)
  /// The stream of the user's audio ends. `isCut`: what was kept of it is not sent.
  case endVoice(isCut: Bool)
  /// All data of a channel was sent.
  case endPayloads(event: String, TuyaChannelName, userData: JSONValue?)
  /// Ends an event; its time is filled in when it is sent.
  case endEvent(String, userData: JSONValue?)
  /// Breaks an event off.
  case breakEvent(String, userData: JSONValue?)
  /// An event of its own: JSON-RPC of a tool, an update of the context, a trigger.
  case event(TuyaEventType, id: String, data: JSONValue?, userData: JSONValue?)
  /// A text.
  case text(String, TuyaChannelName, userData: JSONValue?)
  /// An image of a question, with the number under which its end (`sent`) or failure is reported.
  case image([UInt8], format: TuyaImageFormat, TuyaChannelName, userData: JSONValue?, call: Int)
  /// The image that the endpoint holds; nothing where there is none.
  case heldImage(TuyaChannelName, userData: JSONValue?)
  /// A file on this machine, with the number under which its end (`sent`) or failure is reported. On a channel for images it is sent as a
  /// picture.
  case file(path: String, name: String?, TuyaChannelName, userData: JSONValue?, call: Int)
}

/// The name of a data channel: its kind, and which of several.
public struct TuyaChannelName: Sendable, Hashable {
  /// The kind of data.
  public var kind: TuyaDataKind
  /// Which channel of the kind, from 0; nil: the only one, and an error where there are several.
  public var index: Int?

  /// Names the only channel of a kind, or one of several.
  public init(_ kind: TuyaDataKind, _ index: Int? = nil) {
    self.kind = kind
    self.index = index
  }
}

/// The format of a picture.
public enum TuyaImageFormat: UInt8, Sendable, Hashable {
  /// The formats that the cloud reads; the numbers are the vendor's.
  case jpeg = 1, png = 2
}

/// What a session is created with, besides its token and its channels.
public struct TuyaCreation: Sendable, Hashable {
  /// The session's id.
  public var id: String
  /// True: it uses the ids reserved for sharing, so that several sessions take the same data, which is sent once.
  public var isShared: Bool
  /// User data: `sessionAttributes` and others.
  public var userData: JSONValue?

  /// Creates the description of a session.
  public init(id: String, isShared: Bool, userData: JSONValue?) {
    self.id = id
    self.isShared = isShared
    self.userData = userData
  }
}
