public import MillraceCore

extension AudioFileMix {
  public static let contract = NodeContract(
    "audio.fileMix", "mixes a sound file into the uplink, and gives it to the loudspeaker too",
    text: """
      The file is decoded a second ahead by a thread of its own. It can be replaced, paused, made louder or softer and \
      stopped while the graph runs; the uplink passes whatever becomes of it.
      """,
    inputs: [PortContract("in", SoundBounds.pcm, text: "the uplink")],
    outputs: [
      PortContract("out", SoundBounds.pcm, text: "the uplink with the file"),
      PortContract(
        "playback", SoundBounds.pcm, text: "the file alone, at the same positions", required: false),
    ],
    parameters: [
      ParameterContract(
        "path", .path, default: "", live: true, text: "the file to play; empty: none, or stop the present one"
      ),
      ParameterContract(
        "loops", .integer(-1_000_000...1_000_000), default: 0, live: true,
        text: "plays after the first; negative: for ever; an update counts anew"),
      ParameterContract(
        "sendVolume", .number(0...1), default: 1, live: true, text: "level of the file in `out`"),
      ParameterContract(
        "playbackVolume", .number(0...1), default: 1, live: true, text: "level of the file in `playback`"),
      ParameterContract(
        "paused", .bool, default: false, live: true,
        text: "true: the file waits; false: it goes on with the next sample"),
    ],
    events: [
      EventContract("began", text: "the first sample of a file is being sent: `path`"),
      EventContract("completed", text: "all plays are done: `plays`, `samples` sent in all of them"),
      EventContract("stopped", text: "the file was stopped: `samples` sent of it"),
      EventContract(
        "replaced", text: "another file takes the place of the present one: `samples` sent of it"),
      EventContract(
        "underrun", text: "the file came too late: `samples` of silence instead, `count` of such so far"),
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
      // Room for a path and words around it.
      resolution.outputs[NodeContract.eventsPort] = OutputShape(
        .event, packetDuration: nil, packetBytes: 1_024)
      let path = resolution.parameters.string("path")
      guard !path.isEmpty else { return }
      do throws(NodeProblem) { _ = try AudioFile.facts(path) } catch {
        resolution.refuse("path", error.text, cure: error.cure)
      }
    })
}
