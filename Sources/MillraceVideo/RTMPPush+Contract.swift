internal import MillraceAudio
public import MillraceCore

extension RTMPPush {
  public static let contract = NodeContract(
    "rtmp.push", "sends a live stream: pictures and sound to an RTMP server",
    text: """
      H.264 and AAC, as every RTMP server takes them. Pictures go by their times and sound stays with them. A connection that is lost is \
      made again; what cannot be sent meanwhile waits, but not for long. The source has to be live or paced.
      """,
    inputs: [
      PortContract("in", .video(), text: "the pictures"),
      PortContract(
        "audio", .pcm(rates: .range(AudioLimits.rates), channels: .range(1...2), samples: [.s16, .f32]),
        text: "the sound", required: false, holds: 1),
    ],
    parameters: [
      ParameterContract(
        "url", .string, required: true, secret: .address,
        text: "where to: `rtmp:` or `rtmps:`, host, application, name (the stream's key)"),
      .streamRoots,
      ParameterContract(
        "bitrate", .integer(16_000...100_000_000), unit: "bit/s",
        text: "of the pictures; absent: a tenth of a bit for each pixel"),
      .filmSoundBitrate, .filmKeyInterval, .filmThreads,
      ParameterContract(
        "patience", .number(0...10_000), unit: "ms", default: 300,
        text: "how long one of pictures and sound waits for the other, before it goes on without"),
      ParameterContract(
        "queue", .number(100...60_000), unit: "ms", default: 2_000,
        text: "how much waits while there is no connection, or a slow one"),
      ParameterContract(
        "timeout", .number(100...600_000), unit: "ms", default: 5_000,
        text: "longest time without anything from the server where it has to answer, or to take a packet"),
      .streamReconnect, .streamFirst, .streamMost, .streamGiveUp,
      ParameterContract(
        "progress", .number(100...60_000), unit: "ms", default: 5_000,
        text: "stream one `progress` event stands for"),
    ],
    events: [
      EventContract(
        "connected",
        text:
          "the server takes the stream: `ms` the attempt took, `attempts` since it was last there, `again` true after a loss"
      ),
      EventContract("lost", text: "the server does not take it any more: `reason`"),
      EventContract("refused", text: "an attempt has failed: `reason`"),
      EventContract("reconnecting", text: "another attempt comes in `ms`"),
      EventContract(
        "dropped",
        text:
          "what waited for too long was left out, up to the next key frame, and sound of before the picture that a connection began with: `pictures` and packets of `sound` so far; at most once a second"
      ),
      EventContract(
        "progress",
        text: "so much is encoded: `seconds`; of it are sent `pictures` and `bytes`, and `waiting` ms are not"
      ),
      .filmLate, .filmMoved,
      EventContract("completed", text: "the end of the stream was sent: `seconds`, `pictures`, `bytes`"),
    ],
    lane: .bulk, budget: 100_000, drive: .itself, followsVirtualClock: false,
    examples: [
      #"{ "type": "rtmp.push", "url": "${env:STREAM_URL}" }"#,
      #"{ "type": "rtmp.push", "url": "rtmp://127.0.0.1/live/test", "bitrate": 800000, "keyInterval": 1000 }"#,
    ],
    resolve: resolve)

  enum Event: Int {
    case connected, lost, refused, reconnecting, dropped, progress, late, moved, completed
  }

  private static func resolve(_ resolution: inout Resolution) {
    do throws(NodeProblem) { _ = try StreamAddress(resolution.parameters) } catch {
      resolution.refuse(error.parameter, error.text, cure: error.cure)
    }
    // Room for what a library says.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(.event, packetDuration: nil, packetBytes: 1_024)
    FilmCheck.pictures(.h264, &resolution)
    FilmCheck.sound("RTMP", rates: RecordingFormat.m4a.rates, &resolution)
  }
}
