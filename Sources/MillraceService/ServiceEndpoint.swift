public import MillraceDialog
public import MillraceNet

/// What a service's wire needs beside its session: how to open it, how messages look on it, and in which words it fails.
///
/// Owned by the connection, and used on its event loop only.
public protocol ServiceEndpoint: Sendable {
  /// The session of the service.
  associatedtype Session: ServiceSession
  /// What its messages go over.
  associatedtype Wire: ServiceWire

  /// The vendor's name in errors.
  static var vendor: String { get }

  /// Opens a new connection, with the latest credential.
  /// - Parameters:
  ///   - loop: owns the sockets of the session.
  ///   - receive: called with every event of the connection on that loop, never from within this call.
  mutating func open(
    on loop: NetLoop, _ receive: @escaping @Sendable (ServiceEvent<Session.Message>) -> Void
  ) -> Wire

  /// Sends a message over the current connection.
  /// - Returns: false when nothing more can be sent: the network is stalled, or the connection has ended.
  mutating func send(_ request: Session.Request, from session: Session, over wire: Wire) -> Bool

  /// What a message means for the user's audio: those before it belong to another stream.
  func boundary(of request: Session.Request) -> VoiceBoundary?

  /// The message that ends the dialogue without waiting for an answer; nil: closing the wire is enough.
  func closingMessage(of session: Session) -> Session.Request?

  /// Uses another credential for the next connection.
  mutating func use(_ credential: String)

  /// What becomes of an image of the input `image`. Called only while the session's `takesPictures` is true.
  mutating func command(forImage jpeg: [UInt8]) -> ImageCommand

  /// The command that sends a file of the input `file`, or why it cannot be sent.
  /// - Parameter path: of the file, as the graph wrote it; it may not exist.
  mutating func command(forFile path: String) -> FileCommand

  /// Why audio of a reply is discarded, or nil.
  func problem(withAudio bytes: [UInt8]) -> String?

  /// Why an image of a reply is discarded, or nil.
  func problem(withImage bytes: [UInt8]) -> String?
}

/// Where a stream of the user's audio begins or ends.
public enum VoiceBoundary: Sendable, Hashable {
  /// What follows is a new stream.
  case begin
  /// The stream ends: what was kept of it is sent before the message, at its pace.
  case end
  /// The stream is cut off: what was kept of it is discarded.
  case cut
}

/// What becomes of an image of the input `image`.
public enum ImageCommand: Sendable, Hashable {
  /// It is sent with this command, at once.
  case send(DialogCommand)
  /// The endpoint keeps it, and discards the one it held: the session gets `ServiceInput.imageHeld`, and decides by its own rules when to
  /// send the message that refers to it.
  case hold
  /// It is discarded; the text says why.
  case refuse(String)
}

/// What becomes of a file of the input `file`.
public enum FileCommand: Sendable, Hashable {
  /// It is sent with this command.
  case send(DialogCommand)
  /// It is not sent; the text says why, and does not repeat the path.
  case refuse(String)
}

extension ServiceEndpoint {
  /// Streams have no boundaries.
  public func boundary(of request: Session.Request) -> VoiceBoundary? { nil }
  /// Closing the wire is enough.
  public func closingMessage(of session: Session) -> Session.Request? { nil }
  /// The service takes no images.
  public mutating func command(forImage jpeg: [UInt8]) -> ImageCommand {
    .refuse("the service takes no images")
  }
  /// The service takes no files.
  public mutating func command(forFile path: String) -> FileCommand { .refuse("the service takes no files") }
  /// A JPEG is valid: it begins with the marker SOI (ITU-T T.81, annex B.1.1.3).
  public func problem(withImage bytes: [UInt8]) -> String? {
    bytes.starts(with: [0xFF, 0xD8]) ? nil : "the image is not a JPEG"
  }
  /// Every audio is valid.
  public func problem(withAudio bytes: [UInt8]) -> String? { nil }
}
