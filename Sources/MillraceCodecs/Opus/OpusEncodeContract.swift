public import MillraceCore

extension OpusEncode {
  public static var contract: NodeContract {
    NodeContract(
      "opus.encode", "encodes PCM to Opus, one packet per frame",
      text: """
        Packets of any length are re-cut into frames. The first packet has the position -look-ahead, and the last declares its \
        padding in trimEnd, so that decoding restores exactly the input's samples at their positions.

        For speech, constant bitrate costs 2.3 times the CPU time of variable bitrate (16 kHz, 24 kbit/s, complexity 5) and \
        sounds no better; use it only where packet sizes must not reveal anything.
        """,
      inputs: [
        PortContract(
          "in", .pcm(rates: .oneOf(OpusRates.all), channels: .range(1...2), samples: [.s16, .f32]),
          text: "PCM, in packets of any length",
          holds: 1)
      ],
      outputs: [
        PortContract(
          "out", .opus(rates: .oneOf(OpusRates.all), channels: .range(1...2)),
          text:
            "one packet per frame, at the input's rate; untransmitted silence and gaps appear as jumps of the position"
        )
      ],
      parameters: parameters,
      budget: 500,
      examples: [
        #"{ "type": "opus.encode", "bitrate": 24000 }"#,
        #"{ "type": "opus.encode", "bitrate": 20000, "fec": true, "loss": 10, "dtx": true }"#,
      ],
      resolve: resolve)
  }

  private static var parameters: [ParameterContract] {
    [
      ParameterContract(
        "bitrate", .integer(6000...510_000), unit: "bit/s", default: 24_000, live: true,
        text:
          "average bitrate; libopus allows at most 300,000 per channel and 1276 bytes per packet"),
      ParameterContract(
        "complexity", .integer(0...10), default: 5, live: true,
        text: "encoder effort, 0 to 10; for 16 kHz speech, 5 costs half as much as 10 and twice as much as 0"),
      ParameterContract(
        "application", .choice(LibopusEncoder.Application.allCases.map(\.rawValue)), default: "voip",
        text:
          "voip favours speech and filters rumble, audio favours fidelity, lowdelay has a look-ahead of 2.5 ms and no SILK layer"
      ),
      ParameterContract(
        "frame", .number(2.5...60), unit: "ms", default: 20,
        text: "length of a packet: 2.5, 5, 10, 20, 40 or 60 ms; below 10 ms there is no SILK layer"),
      ParameterContract(
        "rateControl", .choice(LibopusEncoder.RateControl.allCases.map(\.rawValue)), default: "cvbr",
        text:
          "vbr varies freely, cvbr within one frame's worth, cbr not at all, at 2.3 times the CPU time for speech"
      ),
      ParameterContract(
        "fec", .bool, default: false, live: true,
        text:
          "send a low-bitrate copy of each frame in the next packet; SILK layer only, and reduces audio bandwidth at low bitrates; an expected loss below 10 % counts as 10 %"
      ),
      ParameterContract(
        "dtx", .bool, default: false,
        text: "discontinuous transmission: frames of 2 bytes or less are not sent in silence"),
      ParameterContract(
        "loss", .integer(0...100), unit: "%", default: 0, live: true,
        text: "expected packet loss: trades quality for robustness"),
      ParameterContract(
        "signal", .choice(LibopusEncoder.Signal.allCases.map(\.rawValue)), default: "auto",
        text: "kind of signal, if known"),
      ParameterContract(
        "bandwidth", .choice(LibopusEncoder.Bandwidth.allCases.map(\.rawValue)), default: "auto",
        text:
          "the audio bandwidth to encode: narrow 4 kHz, medium 6, wide 8, superwide 12, full 20; auto lets the encoder choose"
      ),
    ]
  }

  private static func resolve(_ resolution: inout Resolution) {
    let settings = OpusEncodeSettings(resolution.parameters)
    guard settings.hasValidFrame else {
      resolution.refuse(
        "frame", "an Opus packet cannot last \(settings.frameMilliseconds) ms",
        cure: "use 2.5, 5, 10, 20, 40 or 60")
      return
    }
    if settings.errorCorrection && (settings.application == .lowdelay || settings.frameMilliseconds < 10) {
      let reason =
        settings.application == .lowdelay
        ? "application \"lowdelay\" has" : "packets of \(settings.frameMilliseconds) ms have"
      resolution.refuse(
        "fec", "\(reason) no SILK layer, and only that carries error correction",
        cure: "use application \"voip\" with packets of 10 ms or more, or remove \"fec\"")
    }
    guard case .pcm(let rate, let channels, _)? = resolution.input?.format else { return }
    guard OpusRates.all.contains(rate) else {
      resolution.refuse(
        nil, "Opus cannot encode \(rate) Hz",
        cure: "add audio.resample (rate \(OpusRates.holding(rate))) before it")
      return
    }
    guard channels <= 2 else {
      resolution.refuse(
        nil, "Opus packets hold 1 or 2 channels, not \(channels)",
        cure: "add audio.convert (channels 1) before it")
      return
    }
    let frame = settings.frame(rate: rate)
    let lookahead = settings.application.lookahead(rate: rate)
    resolution.outputs["out"] = OutputShape(
      .opus(rate: rate, channels: channels), packetDuration: .samples(Int64(frame), rate: rate),
      packetBytes: settings.packetBytes)
    resolution.latency = .samples(Int64(frame + lookahead), rate: rate)
    resolution.budget = settings.budget(rate: rate, channels: channels)
  }
}

/// The checked parameters of `opus.encode`.
struct OpusEncodeSettings {
  /// Frame lengths of this encoder's packets, in milliseconds (RFC 6716 table 2; 40 and 60 ms for speech).
  static let frames = [2.5, 5, 10, 20, 40, 60]

  /// Packets of up to this many bytes need not be sent (libopus, `opus_encode`).
  static let unsentBytes = 2

  /// The least expected loss, in percent, used with error correction: up to 5 % libopus omits the copies at speech bitrates (`decide_fec`
  /// in libopus 1.3).
  static let leastLoss = 10

  let bitrate: Int
  let complexity: Int
  let application: LibopusEncoder.Application
  let frameMilliseconds: Double
  let rateControl: LibopusEncoder.RateControl
  let errorCorrection: Bool
  let isDiscontinuous: Bool
  let expectedLoss: Int
  let signal: LibopusEncoder.Signal
  let bandwidth: LibopusEncoder.Bandwidth

  init(_ values: ParameterValues) {
    bitrate = values.integer("bitrate")
    complexity = values.integer("complexity")
    application = LibopusEncoder.Application(rawValue: values.string("application")) ?? .voip
    frameMilliseconds = values.number("frame")
    rateControl = LibopusEncoder.RateControl(rawValue: values.string("rateControl")) ?? .cvbr
    errorCorrection = values.bool("fec")
    isDiscontinuous = values.bool("dtx")
    expectedLoss = values.integer("loss")
    signal = LibopusEncoder.Signal(rawValue: values.string("signal")) ?? .auto
    bandwidth = LibopusEncoder.Bandwidth(rawValue: values.string("bandwidth")) ?? .auto
  }

  var hasValidFrame: Bool { Self.frames.contains(frameMilliseconds) }

  /// Samples per frame; exact, because every Opus rate is a multiple of 400 Hz.
  func frame(rate: Int) -> Int { Int(frameMilliseconds * Double(rate) / 1000) }

  /// Size of the largest packet: one full frame and its TOC byte. libopus limits longer packets to it too, which bounds 60 ms at
  /// 170 kbit/s.
  var packetBytes: Int { OpusRates.frameBytes + 1 }

  /// Budget of a call in microseconds: twice the highest cost of 20 ms on the slowest machine measured, per 20 ms and channel.
  func budget(rate: Int, channels: Int) -> Int {
    let pieces = max(1, Int(frameMilliseconds / 20))
    let each = 150 + 50 * complexity
    let width = rate > 16_000 ? 2 : 1
    let control = rateControl == .cbr ? 2 : 1
    return pieces * each * width * control * channels
  }
}
