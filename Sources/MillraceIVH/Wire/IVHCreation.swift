internal import MillraceJSON

/// What a session is created with: every field of `newsession`, `createsession` and `createsessionbyasset`.
public struct IVHCreation: Sendable, Hashable {
  /// What drives the avatar.
  public enum Driver: Int, Sendable, Hashable, CaseIterable {
    /// Text.
    case text = 1
    /// Audio whose voice the service converts; stream generation only.
    case convertedVoice = 2
    /// Audio as it is; in the session generation text, too.
    case originalVoice = 3
  }

  /// How the picture is delivered.
  public enum Delivery: String, Sendable, Hashable, CaseIterable {
    /// RTMP, which `rtmp.pull` plays.
    case rtmp
    /// A room of Tencent's RTC, or its live player's WebRTC: for other players.
    case trtc, webrtc
  }

  /// The avatar, by the id of a project, or of an asset.
  public enum Avatar: Sendable, Hashable {
    /// Chosen by the account's application: stream generation.
    case account
    /// A project of the platform.
    case project(String)
    /// An asset, with its voice (`TimbreKey`).
    case asset(String, timbre: String? = nil)

    /// True for an asset.
    var isAsset: Bool { if case .asset = self { true } else { false } }
  }

  /// A room for `trtc`.
  public struct Room: Sendable, Hashable {
    /// How a room is named.
    public enum Name: Sendable, Hashable {
      /// By a number.
      case number(Int)
      /// By a text; session generation only.
      case text(String)
      /// By the service, in either way; session generation only.
      case automatic(isText: Bool)
    }

    /// Your own application; nil: the platform's, which is for debugging only.
    public var application: String?
    /// The avatar's signature and permission key, which your own application needs.
    public var userSignature, privateMapKey: String?
    /// The room; nil: the service's choice.
    public var name: Name?

    /// A room of the platform, chosen by the service.
    public init() {}
  }

  /// Identifies the user. A new session ends an older one of the same user.
  public var user: String
  /// What drives the avatar.
  public var driver = Driver.text
  /// How the picture is delivered.
  public var delivery = Delivery.rtmp
  /// The avatar.
  public var avatar: Avatar
  /// The session's id: private deployments only.
  public var session: String?
  /// Where the service pushes the picture by RTMP, instead of to its own server.
  public var pushAddress: String?
  /// The room for `trtc`.
  public var room: Room?
  /// Initial information on the user, passed to the platform's dialogue.
  public var userInfo: String?
  /// A picture with an alpha channel; session generation only.
  public var hasAlpha = false
  /// After this long without a packet an utterance of voice ends, in milliseconds; session generation only.
  public var streamInterval: Int?

  /// A creation with the vendor's defaults.
  public init(user: String, avatar: Avatar) {
    self.user = user
    self.avatar = avatar
  }

  /// The members of the request's payload.
  func members(_ generation: IVHGeneration) -> [JSONValue.Member] {
    let isSession = generation == .session
    let common: JSONValue = .object([
      "UserId": .string(user), "DriverType": .integer(driver.rawValue),
      "Protocol": .string(delivery.rawValue),
      "SessionId": isSession ? nil : session.map { .string($0) }, "ProtocolOption": option(generation),
      "ExtraInfo": extra(generation),
      "StreamMaxInterval": isSession ? streamInterval.map { .integer($0) } : nil,
    ])
    return (isSession ? avatarMembers : []) + (common.members ?? [])
  }

  private var avatarMembers: [JSONValue.Member] {
    switch avatar {
    case .account: []
    case .project(let id): [JSONValue.Member("VirtualmanProjectId", .string(id))]
    case .asset(let key, let timbre):
      [JSONValue.Member("AssetVirtualmanKey", .string(key))]
        + (timbre.map { [JSONValue.Member("SpeechParam", ["TimbreKey": .string($0)])] } ?? [])
    }
  }

  private func option(_ generation: IVHGeneration) -> JSONValue? {
    let pushName = generation == .stream ? "RtmpPushAddr" : "CssCustomPushUrl"
    var members = pushAddress.map { [JSONValue.Member(pushName, .string($0))] } ?? []
    if let room { members += room.members }
    return members.isEmpty ? nil : .object(members)
  }

  private func extra(_ generation: IVHGeneration) -> JSONValue? {
    let value: JSONValue = .object([
      "UserInfo": userInfo.map { .string($0) },
      "AlphaChannelEnable": generation == .session && hasAlpha ? true : nil,
    ])
    return value.members?.isEmpty == false ? value : nil
  }
}

extension IVHCreation.Room {
  fileprivate var members: [JSONValue.Member] {
    var number: Int?
    var text: String?
    var automatic: Int?
    switch name {
    case .number(let value): number = value
    case .text(let value): text = value
    case .automatic(let isText): automatic = isText ? 1 : 0
    case nil: break
    }
    let value: JSONValue = .object([
      "TrtcUseExternalApp": .bool(application != nil), "TrtcAppId": application.map { .string($0) },
      "TrtcUserSig": userSignature.map { .string($0) },
      "TrtcPrivateMapKey": privateMapKey.map { .string($0) }, "TrtcRoomId": number.map { .integer($0) },
      "TrtcStrRoomId": text.map { .string($0) }, "TrtcAutoGenRoomIdType": automatic.map { .integer($0) },
    ])
    return value.members ?? []
  }
}
