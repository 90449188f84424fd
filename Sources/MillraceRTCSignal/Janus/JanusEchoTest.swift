internal import MillraceJSON

/// The plugin `echotest`: one session, offered by this side; what is sent comes back.
struct JanusEchoTest: JanusPlugin {
  private let media: SignalMedia

  init(_ media: SignalMedia) { self.media = media }

  mutating func handle(_ input: JanusInput) -> [JanusAction] {
    switch input {
    case .attached: [.report(.wantsOffer(SignalSessionID(0), media, servers: []))]
    case .describe(let session, let sdp), .restart(let session, let sdp):
      [
        .send(
          session, ["audio": true, "video": true], JanusDescription(.offer, sdp), .describe)
      ]
    case .event, .refused, .command, .ended, .hungUp: []
    }
  }
}
