/// The two generations of the service's interface: same host, signature and envelope, other paths and fields.
public enum IVHGeneration: String, Sendable, Hashable, CaseIterable {
  /// The one of the vendor's iOS SDK: `newsession`, `speak_start`.
  case stream
  /// The present one: `createsession`, `TextStart`.
  case session

  /// The path of an operation over HTTP.
  func path(of operation: IVHCall.Operation) -> String {
    let manager =
      self == .stream
      ? "/v2/ivh/streammanager/streamservice/" : "/v2/ivh/sessionmanager/sessionmanagerservice/"
    return switch (self, operation) {
    case (.session, .command): "/v2/ivh/interactdriver/interactdriverservice/command"
    default: manager + name(of: operation)
    }
  }

  /// The path of the command channel.
  var channelPath: String {
    switch self {
    case .stream: "/v2/ws/ivh/streammanager/streamservice/commandchannel"
    case .session: "/v2/ws/ivh/interactdriver/interactdriverservice/commandchannel"
    }
  }

  /// The vendor's name of an operation.
  func name(of operation: IVHCall.Operation) -> String {
    switch operation {
    case .create(let avatar):
      self == .stream ? "newsession" : avatar.isAsset ? "createsessionbyasset" : "createsession"
    case .start: "startsession"
    case .status: "statsession"
    case .close: "closesession"
    case .command: "command"
    case .list(let scope): self == .stream ? "listsession" : scope.operation
    case .queryConfig: "queryconfig"
    case .configure: self == .stream ? "configsession" : "updatesessionconfig"
    }
  }
}
