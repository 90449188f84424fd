internal import MillraceCore
internal import MillraceRTC

/// How a call over plain RTP is made, and what its node wants to know of it.
struct PlainCallSettings: Sendable {
  /// Without `remote`, which may have to be resolved.
  var session: PlainSettings
  /// Nil: packets go to where they come from, or nowhere.
  var remote: PlainEndpoint?
  /// Something is linked to the input of the medium, and to its output.
  var sends = false
  var hears = false
  /// Nil: no description is written.
  var sdpFile: String?
  /// Milliseconds of sound in a packet, for the description; nil: not said.
  var ptime: Int?
  /// How long media of the peer may be missing before that is reported; 0: for ever.
  var media: Nanoseconds = .milliseconds(3_000)
  /// Between two events `usage` and `netQuality`; 0: none.
  var stats: Nanoseconds = .milliseconds(1_000)
  /// Bytes of the largest event.
  var eventBytes = 16_384
  var secrets = Secrets()
  /// Finds the addresses of a name. Blocks; has a thread of its own.
  var resolver: ICEServerResolution.Resolver = ICEServerResolution.system
  /// How long that may take.
  var resolution: Nanoseconds = ICEServerResolution.bound

  init(_ session: PlainSettings) { self.session = session }

  /// What the parts need that calls have in common.
  var shared: RTCCallSettings {
    var shared = RTCCallSettings()
    (shared.media, shared.stats) = (media, stats)
    (shared.eventBytes, shared.secrets) = (eventBytes, secrets)
    return shared
  }
}
