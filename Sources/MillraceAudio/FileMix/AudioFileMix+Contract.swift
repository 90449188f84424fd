public import MillraceCore

extension AudioFileMix {
  public static let contract = NodeContract(
    "audio.fileMix", "mixes an audio file into the uplink, and plays it to the loudspeaker too",
    text: """
      A thread of the node decodes the file a second ahead. The file can be replaced, paused, made louder or quieter and \
      stopped while the graph runs; the uplink is not affected by its failure.
      """,
    inputs: [PortContract("in", AudioLimits.pcm, text: "the uplink")],
    outputs: [
      PortContract("out", AudioLimits.pcm, text: "the uplink with the file"),
      PortContract(
        "playback", AudioLimits.pcm, text: "the file alone, at the same positions", required: false),
    ],
    parameters: [
      ParameterContract(
        "path", .path, default: "", live: true, text: "the file to play; empty: none, or stop the current one"
      ),
      ParameterContract(
        "loops", .integer(-1_000_000...1_000_000), default: 0, live: true,
        text: "repeats after the first play; negative: endless; an update restarts the count"),
      ParameterContract(
        "sendVolume", .number(0...1), default: 1, live: true, text: "level of the file in `out`"),
      ParameterContract(
        "playbackVolume", .number(0...1), default: 1, live: true, text: "level of the file in `playback`"),
      ParameterContract(
        "paused", .bool, default: false, live: true,
        text: "true: the file is paused; false: it continues with the next sample"),
    ],
    events: [
      EventContract("began", text: "the first sample of a file is being sent: `path`"),
      EventContract("completed", text: "all plays have finished: `plays`, `samples` sent in total"),
      EventContract("stopped", text: "the file was stopped: `samples` sent of it"),
      EventContract(
        "replaced", text: "another file replaced the current one: `samples` sent of the old one"),
      EventContract(
        "underrun",
        text: "the decoder was too late: `samples` of silence inserted, `count` of underruns so far"),
      EventContract("failed", text: "the file cannot be read: `text` says why and what to do"),
    ],
    budget: 300,
    examples: [
      #"{ "type": "audio.fileMix", "path": "music.mp3", "loops": -1, "sendVolume": 0.2 }"#,
      #"{ "type": "audio.fileMix" }"#,
    ],
    resolve: { resolution in
      guard let shape = resolution.input else { return }
      resolution.outputs["out"] = shape
      resolution.outputs["playback"] = shape
      // Room for a path and the message around it.
      resolution.outputs[NodeContract.eventsPort] = OutputShape(
        .event, packetDuration: nil, packetBytes: 1_024)
      let path = resolution.parameters.string("path")
      guard !path.isEmpty else { return }
      do throws(NodeProblem) { _ = try AudioFile.info(path) } catch {
        resolution.refuse("path", error.text, cure: error.cure)
      }
    })
}
