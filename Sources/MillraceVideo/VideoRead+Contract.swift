internal import MillraceAudio
public import MillraceCore
internal import MillraceFiles

extension VideoRead {
  public static let contract = NodeContract(
    "video.read", "plays a film: pictures and sound of MP4, MKV, MOV, FLV, or one picture of JPEG or PNG",
    text: """
      Whatever FFmpeg's libraries read. Pictures come as planar 4:2:0 in the size of the file, turned as the file asks (phones lay \
      portraits on their side), with the colours of JPEG whatever the file's are: BT.601, full range. Transparency is dropped, more \
      than 8 bits are rounded. Both ports go by one clock, so that sound and pictures stay together.
      """,
    outputs: [
      PortContract("out", .video(pixels: [.i420]), text: "the pictures"),
      PortContract("audio", AudioLimits.pcm, text: "the sound", required: false),
    ],
    parameters: [
      ParameterContract("path", .path, required: true, text: "the file to play"),
      ParameterContract(
        "pace", .bool, default: false, text: "true: in time with the clock; false: as fast as taken"),
      ParameterContract("loop", .bool, default: false, text: "true: begin again at the end"),
      ParameterContract(
        "threads", .integer(1...8), default: 1,
        text: "threads that decode; more than one hold pictures back, as many as there are threads"),
      ParameterContract(
        "interval", .number(10...86_400_000), unit: "ms",
        text: """
          time from slot to slot: only the newest picture at each slot is given, the others are decoded only. The slots are those of \
          `video.sample` with the same `interval`. Absent: all pictures are given
          """),
      .maxPixels, .frame,
      ParameterContract("sample", SampleType.choice, default: "s16", text: "sample type of the sound"),
      .truncated,
    ],
    events: [
      EventContract(
        "damaged",
        text: """
          something of the file could not be decoded and was left out: `at` in s near it, `count` so far; at most once a second, and at \
          the end
          """),
      EventContract(
        "resized",
        text:
          "pictures have another size from here on, `width` by `height`, and are scaled to that of the first: `at` in s"
      ),
      EventContract(
        "truncated",
        text: """
          the film ends too early: `seconds` it had, `expected` where it states its length, `reason` and `cure`; once, also with `loop`
          """),
    ],
    lane: .bulk, budget: 100_000, drive: .itself,
    examples: [
      #"{ "type": "video.read", "path": "film.mp4", "pace": true }"#,
      #"{ "type": "video.read", "path": "slide.jpg" }"#,
    ],
    resolve: resolve)

  enum Event: Int {
    case damaged, resized, truncated
  }

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    resolution.pacing = values.bool("pace") ? .paced : .waits
    let wantsSound = resolution.wanted["audio"] != nil
    do throws(NodeProblem) {
      let film = try open(values, sound: wantsSound)
      guard let pictures = film.pictures else { return }
      resolution.outputs["out"] = .video(width: pictures.width, height: pictures.height, rate: pictures.rate)
      guard let sound = film.sound else { return }
      resolution.outputs["audio"] = .pcm(
        rate: sound.rate, channels: sound.channels, sample: sound.sample,
        frames: AudioLimits.frames(milliseconds: values.number("frame"), rate: sound.rate))
    } catch {
      resolution.refuse("path", error.text, cure: error.cure)
    }
  }

  /// Opens the film that the parameters name.
  static func open(_ values: ParameterValues, sound: Bool) throws(NodeProblem) -> FilmReader {
    let path = values.string("path")
    try FileCheck.reading(path)
    let mostPixels = values.integer("maxPixels")
    let place = Demuxer.Place(file: path, mostPixels: mostPixels)
    try checkSize(path, place)
    let film = try FilmReader(
      place, threads: values.integer("threads"), sound: sound ? values.sample("sample") ?? .s16 : nil,
      interval: values.has("interval") ? values.nanoseconds("interval") : nil)
    guard film.pictures != nil else {
      let names = film.demuxer.streamNames
      throw film.demuxer.problem(
        "holds no pictures, only \(names)",
        cure: names.contains("audio ")
          ? "read it with audio.read" : "check that it plays, or convert it again")
    }
    if sound && film.sound == nil {
      throw film.demuxer.problem(
        "holds no sound, only \(film.demuxer.streamNames)", cure: "leave the port \"audio\" unlinked")
    }
    return film
  }
}
