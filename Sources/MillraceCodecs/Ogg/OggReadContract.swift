public import MillraceCore
internal import MillraceFiles

extension OggRead {
  public static var contract: NodeContract {
    NodeContract(
      "ogg.read", "reads the Opus packets of an Ogg Opus file",
      text: """
        The pre-skip lies at negative positions and the end is declared by trimEnd, so opus.decode restores the file's \
        samples exactly. Damaged ranges become gaps that the decoder conceals.
        """,
      outputs: [
        PortContract(
          "out", .opus(rates: .oneOf(OpusRates.all), channels: .range(1...2)),
          text: "the packets of the file, unchanged")
      ],
      parameters: [
        ParameterContract("path", .path, required: true, text: "the file to read"),
        ParameterContract(
          "rate", .integer(8000...48_000), unit: "Hz", default: 48_000,
          text: "rate at which positions count: 8000, 12000, 16000, 24000 or 48000"),
        ParameterContract(
          "pace", .bool, default: false,
          text:
            "emit packets in real time instead of as fast as possible; gaps of more than ten minutes are not waited for"
        ),
        ParameterContract("loop", .bool, default: false, text: "start again at the end, without a gap"),
        .truncated,
      ],
      events: [
        EventContract(
          "opened",
          text:
            "a stream starts: channels, preskip (samples at 48 kHz), input_rate (Hz, 0 if unknown), gain_db to set on opus.decode"
        ),
        EventContract(
          "damaged",
          text: """
            data is missing or invalid: `what`, `position` (s) of the audio before the first occurrence, invalid `bytes`, `count` of that \
            kind so far; each kind at most once a second, and the rest at the end of the file
            """),
        EventContract(
          "truncated",
          text: """
            the file ends inside a page or without its last page: `position` (s) of the end of the audio, `bytes` of the incomplete page; \
            once, even with `loop`
            """),
      ],
      lane: .bulk, drive: .itself,
      examples: [
        #"{ "type": "ogg.read", "path": "reply.opus" }"#,
        #"{ "type": "ogg.read", "path": "mic.opus", "pace": true, "loop": true }"#,
      ],
      resolve: resolve)
  }

  private static func resolve(_ resolution: inout Resolution) {
    let rate = resolution.parameters.integer("rate")
    guard OpusRates.all.contains(rate) else {
      resolution.refuse("rate", "Opus does not support \(rate) Hz", cure: "use \(OpusRates.listed)")
      return
    }
    resolution.pacing = resolution.parameters.bool("pace") ? .paced : .waits
    do throws(NodeProblem) {
      let probe = try OpusFileProbe(resolution.parameters.string("path"))
      resolution.outputs["out"] = OutputShape(
        .opus(rate: rate, channels: probe.header.channels),
        packetDuration: .samples(Int64(probe.packetSamples), rate: OpusRates.granule),
        packetBytes: probe.packetBytes)
    } catch {
      resolution.refuse("path", error.text, cure: error.cure)
    }
  }
}
