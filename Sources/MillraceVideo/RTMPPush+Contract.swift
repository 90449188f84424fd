internal import MillraceAudio
public import MillraceCore

extension RTMPPush {
  public static let contract = NodeContract(
    "rtmp.push", "sends a live stream of pictures and audio to an RTMP server",
    text: """
      H.264 and AAC, which every RTMP server accepts. Pictures keep their timestamps, and audio stays in sync. A lost connection is \
      re-established; meanwhile the stream is queued for a limited time. The source has to be live or paced. Where to send may come \
      while the graph runs: link the input `address` to the output of a service or a program.
      """,
    inputs: [
      PortContract("in", .video(), text: "pictures to send"),
      PortContract(
        "audio", .pcm(rates: .range(AudioLimits.rates), channels: .range(1...2), samples: [.s16, .f32]),
        text: "audio to send", required: false, holds: 1),
      .streamAddress(
        """
        where to send from now on: text, or events `stream` with `url`; an empty text, `stream` without `url` and `streamEnded` stop; \
        other events are ignored
        """),
      PortContract(
        "sei", .kind(.event).or(.kind(.text)),
        text: """
          messages for pictures (H.264 SEI, user data unregistered), each sent with the first picture at its time or later: events `sei`, as `rtmp.pull` posts \
          them, with `text` or `base64` of at most 2,048 bytes and possibly `uuid`, or texts; other events are ignored
          """,
        required: false),
    ],
    parameters: [
      ParameterContract(
        "url", .string, secret: .address,
        text: """
          destination: `rtmp:` or `rtmps:`, host, application, stream name (the stream key); required without the input `address`
          """),
      .streamRoots,
      ParameterContract(
        "bitrate", .integer(16_000...100_000_000), unit: "bit/s",
        text: "video bitrate; default: 0.1 bit per pixel"),
      .soundBitrate, .keyInterval, .encoderThreads,
      ParameterContract(
        "patience", .number(0...10_000), unit: "ms", default: 300,
        text: "longest wait of pictures for audio, and of audio for pictures"),
      ParameterContract(
        "queue", .number(100...60_000), unit: "ms", default: 2_000,
        text: "how much of the stream is queued while there is no connection, or a slow one"),
      ParameterContract(
        "timeout", .number(100...600_000), unit: "ms", default: 5_000,
        text: "longest wait for an answer of the server, or for it to accept a packet"),
      .streamReconnect, .streamFirst, .streamMost, .streamGiveUp,
      ParameterContract(
        "progress", .number(100...60_000), unit: "ms", default: 5_000,
        text: "length of stream between `progress` events"),
    ],
    events: [
      EventContract(
        "connected",
        text:
          "the server accepted the stream: `ms` the attempt took, `attempts` since the last connection, `again` is true after a loss"
      ),
      EventContract("lost", text: "the connection was lost: `reason`"),
      EventContract("refused", text: "an attempt failed: `reason`"),
      EventContract("reconnecting", text: "the next attempt follows in `ms`"),
      EventContract(
        "dropped",
        text: """
          data that was queued too long was dropped, up to the next key frame; so were audio from before the first picture of a \
          connection, and what was queued when the end had waited for a connection in vain: `pictures` and packets of `sound` so far; at \
          most once a second
          """),
      EventContract(
        "progress",
        text: "progress: `seconds` encoded, `pictures` and `bytes` sent, `waiting` ms queued"
      ),
      .videoLate, .soundMoved,
      EventContract(
        "completed",
        text: """
          the stream is over, and what was not `dropped` was sent: `seconds` encoded, `pictures` and `bytes` sent
          """),
      EventContract(
        "ended",
        text: """
          nothing more is taken for this stream: `why` is `stopped`, `replaced` or, after the last attempt, `lost`; only with `address` \
          linked. After `stopped` and `replaced`, what is queued is still sent, up to `completed`, or up to another `ended` with `lost`: \
          when that fails for good, there is no connection for `timeout`, or four later streams have ended meanwhile
          """),
      EventContract(
        "error",
        text: """
          what came at the input `address` is no address, or cannot be used, or a message for a picture cannot be sent: `text`, `cure`; \
          the present stream continues
          """),
    ],
    lane: .bulk, budget: 100_000, drive: .itself,
    asynchronousPaths: [AsynchronousPath(from: "address", to: NodeContract.eventsPort)],
    followsVirtualClock: false,
    examples: [
      #"{ "type": "rtmp.push", "url": "${env:STREAM_URL}" }"#,
      #"{ "type": "rtmp.push", "url": "rtmp://127.0.0.1/live/test", "bitrate": 800000, "keyInterval": 1000 }"#,
    ],
    resolve: resolve)

  enum Event: Int {
    case connected, lost, refused, reconnecting, dropped, progress, late, moved, completed,
      ended, error
  }

  private static func resolve(_ resolution: inout Resolution) {
    resolution.checkStreamAddress()
    // Room for a library's message.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(.event, packetDuration: nil, packetBytes: 1_024)
    let (pictures, sound) = (resolution.input?.format, resolution.inputs["audio"]?.format)
    if let problem = VideoInputCheck.pictures(.h264, pictures) { resolution.refuse(problem) }
    if let problem = VideoInputCheck.sound("RTMP", rates: RecordingFormat.m4a.rates, sound) {
      resolution.refuse(problem)
    }
  }
}
