internal import MillraceAudio
public import MillraceCore
internal import MillraceFiles

extension VideoRead {
  public static let contract = NodeContract(
    "video.read",
    "plays a video file: pictures and audio of MP4, MKV, MOV or FLV, or a single JPEG or PNG picture",
    text: """
      Reads whatever FFmpeg's libraries support. Pictures are planar 4:2:0 in the size of the file, rotated as the file requests (phones \
      store portraits sideways), with JPEG colours whatever the file's are: BT.601, full range. Transparency is dropped, more than \
      8 bits are rounded. Both outputs share one clock, so that pictures and audio stay in sync.
      """,
    outputs: [
      PortContract("out", .video(pixels: [.i420]), text: "the video's pictures"),
      PortContract("audio", AudioLimits.pcm, text: "the video's audio", required: false),
    ],
    parameters: [
      ParameterContract("path", .path, required: true, text: "the file to play"),
      ParameterContract(
        "pace", .bool, default: false, text: "true: play in real time; false: as fast as the graph takes it"),
      ParameterContract("loop", .bool, default: false, text: "start again at the end"),
      ParameterContract(
        "threads", .integer(1...8), default: 1,
        text: "decoding threads; with more than one, as many pictures are delayed as there are threads"),
      ParameterContract(
        "interval", .number(10...86_400_000), unit: "ms",
        text: """
          emit only the newest picture at each slot of this interval; the others are only decoded. The slots are those of `video.sample` \
          with the same `interval`. Default: emit all pictures
          """),
      .maxPixels, .frame,
      ParameterContract("sample", SampleType.choice, default: "s16", text: "output sample format"),
      .truncated,
    ],
    events: [
      EventContract(
        "damaged",
        text: """
          part of the file could not be decoded and was skipped: `at` nearby position in s, `count` so far; at most once a second, and at \
          the end
          """),
      EventContract(
        "resized",
        text:
          "the picture size changed to `width` by `height`; pictures are scaled to the first size: `at` in s"
      ),
      EventContract(
        "truncated",
        text: """
          the file is truncated: `seconds` played, `expected` if it declares its length, `reason` and `cure`; once, even with `loop`
          """),
    ],
    lane: .bulk, budget: 100_000, drive: .itself,
    examples: [
      #"{ "type": "video.read", "path": "video.mp4", "pace": true }"#,
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
      let video = try open(values, sound: wantsSound)
      guard let pictures = video.pictures else { return }
      resolution.outputs["out"] = .video(width: pictures.width, height: pictures.height, rate: pictures.rate)
      guard let sound = video.sound else { return }
      resolution.outputs["audio"] = .pcm(
        rate: sound.rate, channels: sound.channels, sample: sound.sample,
        frames: AudioLimits.frames(milliseconds: values.number("frame"), rate: sound.rate))
    } catch {
      resolution.refuse("path", error.text, cure: error.cure)
    }
  }

  /// Opens the file that the parameters name.
  static func open(_ values: ParameterValues, sound: Bool) throws(NodeProblem) -> VideoFileReader {
    let path = values.string("path")
    try FileCheck.reading(path)
    let mostPixels = values.integer("maxPixels")
    let place = Demuxer.Source(file: path, mostPixels: mostPixels)
    try checkSize(path, place)
    let video = try VideoFileReader(
      place, threads: values.integer("threads"), sound: sound ? values.sample("sample") ?? .s16 : nil,
      interval: values.has("interval") ? values.nanoseconds("interval") : nil)
    guard video.pictures != nil else {
      let names = video.demuxer.streamNames
      throw video.demuxer.problem(
        "contains no pictures, only \(names)",
        cure: names.contains("audio ")
          ? "read it with audio.read" : "check that it plays, or convert it again")
    }
    if sound && video.sound == nil {
      throw video.demuxer.problem(
        "contains no audio, only \(video.demuxer.streamNames)", cure: "do not link the port \"audio\"")
    }
    return video
  }
}
