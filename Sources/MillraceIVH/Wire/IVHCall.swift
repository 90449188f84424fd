internal import MillraceJSON

/// A request over HTTP.
public struct IVHCall: Sendable, Hashable {
  /// What is asked for.
  public enum Operation: Sendable, Hashable {
    /// A new session.
    case create(IVHCreation.Avatar)
    /// The opening line; from then on the avatar may be driven.
    case start
    /// The state of the session.
    case status
    /// The end of the session.
    case close
    /// A text, instead of over the command channel.
    case command
    /// The sessions that are running.
    case list(Scope)
    /// What the account allows.
    case queryConfig
    /// Another background, and another place of the avatar.
    case configure
  }

  /// Whose sessions are listed.
  public enum Scope: Sendable, Hashable {
    /// The account's.
    case account
    /// A project's; session generation only.
    case project(String)
    /// An asset's; session generation only.
    case asset(String)

    /// Its operation in the session generation.
    var operation: String {
      switch self {
      case .account: "listsessionofuin"
      case .project: "listsessionofprojectid"
      case .asset: "listsessionofassetvk"
      }
    }

    /// Its members in the session generation.
    var members: [JSONValue.Member] {
      switch self {
      case .account: []
      case .project(let id): [JSONValue.Member("VirtualmanProjectId", .string(id))]
      case .asset(let key): [JSONValue.Member("AssetVirtualmanKey", .string(key))]
      }
    }
  }

  /// What is asked for.
  public let operation: Operation
  /// The session; nil where none is concerned.
  public let session: String?
  /// The id of a text's command, which is that of its request; nil: any.
  let id: String?
  /// The members of the payload besides the session and the request's id.
  let members: [JSONValue.Member]

  private init(
    _ operation: Operation, session: String? = nil, id: String? = nil, _ members: [JSONValue.Member] = []
  ) {
    self.id = id
    self.operation = operation
    self.session = session
    self.members = members
  }

  /// Creates a session.
  public static func create(_ creation: IVHCreation, _ generation: IVHGeneration) -> IVHCall {
    IVHCall(.create(creation.avatar), creation.members(generation))
  }

  /// Starts a session whose picture is there.
  public static func start(_ session: String) -> IVHCall { IVHCall(.start, session: session) }
  /// Asks for the state of a session.
  public static func status(_ session: String) -> IVHCall { IVHCall(.status, session: session) }
  /// Ends a session.
  public static func close(_ session: String) -> IVHCall { IVHCall(.close, session: session) }
  /// Lists sessions.
  public static func list(_ scope: Scope, _ generation: IVHGeneration) -> IVHCall {
    IVHCall(.list(scope), generation == .session ? scope.members : [])
  }
  /// Asks what the account allows; stream generation only.
  public static let queryConfig = IVHCall(.queryConfig)

  /// Changes background and place of the avatar: the members of `SpaceParam` and `ImageParam`.
  public static func configure(_ session: String, _ picture: IVHPictureUpdate) -> IVHCall {
    IVHCall(.configure, session: session, picture.members)
  }

  /// Sends a text.
  public static func command(_ session: String, _ command: IVHCommand) -> IVHCall {
    IVHCall(.command, session: session, id: command.id, command.members)
  }

  /// The body of the request.
  /// - Parameter id: 32 hexadecimal digits, which the session generation requires.
  func body(_ generation: IVHGeneration, id: String) -> JSONValue {
    IVHEnvelope.make(
      session: session, generation == .session ? [JSONValue.Member("ReqId", .string(id))] : [], members)
  }
}

/// The envelope of every message, in both directions: an empty `Header`, and a `Payload`.
enum IVHEnvelope {
  static func make(
    session: String?, _ first: [JSONValue.Member], _ members: [JSONValue.Member]
  ) -> JSONValue {
    let session = session.map { [JSONValue.Member("SessionId", .string($0))] } ?? []
    return ["Header": .object([] as [JSONValue.Member]), "Payload": .object(first + session + members)]
  }
}
