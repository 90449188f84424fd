internal import MillraceJSON

/// Whose one-shot signalling is spoken. The fields of both are in `RTSFields`.
package enum RTSDialect: String, Sendable, Hashable, CaseIterable {
  /// RTS of Alibaba Cloud's live service: the offer goes to the stream's own address.
  case aliyun
  /// RTD of NetEase: the offer goes to a fixed address, with an app key.
  case netease
}

/// Which way the sound and the pictures go.
package enum RTSDirection: String, Sendable, Hashable, CaseIterable {
  /// This side receives.
  case play
  /// This side sends.
  case push
}

/// The fields of the messages, by dialect: the only table of them.
///
/// Sources: for NetEase the open-source player GrowthEase/LLS-Player (`rtd_signaling.cc`); for aliyun the page "specifications of WebRTC
/// signaling used to access GRTN" names `version`, `sdk_version` and the reply's `jsep`. Its other fields are taken to be those of NetEase.
struct RTSFields: Sendable {
  /// The value of `version`.
  let version: Int
  /// An app key is sent as `appkey`.
  let hasAppKey: Bool
  /// An id of the request is sent as the header `RequestId`.
  let hasRequestID: Bool

  static func of(_ dialect: RTSDialect) -> RTSFields {
    switch dialect {
    case .aliyun: RTSFields(version: 2, hasAppKey: false, hasRequestID: false)
    case .netease: RTSFields(version: 1, hasAppKey: true, hasRequestID: true)
    }
  }

  static let requestID = "RequestId"
  static let code = "code"
  static let success = 200
  static let trace = "trace_id"
  static let jsep = "jsep"
  static let sdp = "sdp"
  static let type = "type"

  /// The request with an offer.
  func request(_ settings: RTSSettings, sdp: String) -> JSONValue {
    let stream = JSONValue.object(["url": .string(settings.url)])
    return .object([
      "version": .integer(version),
      "appkey": hasAppKey ? settings.appKey.map { JSONValue.string($0) } : nil,
      "sdk_version": .string(settings.sdkVersion),
      "mode": .string("live"),
      "pull_stream": settings.direction == .play ? stream : nil,
      "push_stream": settings.direction == .push ? stream : nil,
      Self.jsep: .object([Self.type: .string("offer"), Self.sdp: .string(sdp)]),
    ])
  }
}
