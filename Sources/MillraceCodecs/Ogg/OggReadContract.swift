public import MillraceCore
internal import MillraceFiles

extension OggRead {
  public static var contract: NodeContract {
    NodeContract(
      "ogg.read", "reads the Opus packets of an Ogg Opus file",
      text: """
        The pre-skip lies at negative positions and the end is told by trimEnd, so opus.decode behind it gives the file's \
        samples exactly. Damaged stretches become gaps that decoding conceals.
        """,
      outputs: [
        PortContract(
          "out", .opus(rates: .oneOf(OpusRates.all), channels: .range(1...2)),
          text: "the packets as they stand in the file")
      ],
      parameters: [
        ParameterContract("path", .path, required: true, text: "the file"),
        ParameterContract(
          "rate", .integer(8000...48_000), unit: "Hz", default: 48_000,
          text: "the rate positions count at: 8000, 12000, 16000, 24000 or 48000"),
        ParameterContract(
          "pace", .bool, default: false,
          text:
            "give packets by the clock instead of at once; holes of more than ten minutes are not waited for"),
        ParameterContract("loop", .bool, default: false, text: "begin again at the end, without a gap"),
        .truncated,
      ],
      events: [
        EventContract(
          "opened",
          text:
            "a stream begins: channels, preskip (samples at 48 kHz), input_rate (Hz, 0 unknown), gain_db to set on opus.decode"
        ),
        EventContract(
          "damaged",
          text: """
            something is missing or broken: `what`, `position` (s) of the sound before the first, `bytes` that are no sound, `count` of \
            that kind so far; each kind at most once a second, and the rest at the file's end
            """),
        EventContract(
          "truncated",
          text: """
            the file ends inside a page or without its last one: `position` (s) of the sound's end, `bytes` of the broken page; once, \
            also with `loop`
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
      resolution.refuse("rate", "Opus does not run at \(rate) Hz", cure: "use \(OpusRates.listed)")
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
