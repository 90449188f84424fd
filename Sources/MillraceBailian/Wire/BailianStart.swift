public import MillraceDialog
public import MillraceJSON

/// The parameters of a dialogue: everything the message `Start` can contain, in the vendor's terms. A nil member is not sent, and the
/// service uses its default.
///
/// Source: help.aliyun.com, model-studio/multimodal-interaction-protocol, and the vendor's SDKs where they send more.
public struct BailianStart: Sendable, Hashable {
  /// `input.workspace_id`, such as `llm-…`.
  public var workspace: String
  /// `input.app_id`, such as `mm_…`.
  public var app: String
  /// `input.dialog_id`: the dialogue to resume; nil: a new one.
  public var dialog: String?
  /// The user's audio.
  public var upstream = Upstream()
  /// The replies.
  public var downstream = Downstream()
  /// The user and the device.
  public var client: Client
  /// `parameters.biz_params`: `user_defined_params`, `user_defined_tokens`, `tool_prompts`, `user_prompt_params`,
  /// `user_query_params`, unchanged.
  public var biz: JSONValue?
  /// `parameters.dialog_attributes`: `prompt`, `agent_id`, `vocabulary_id`, unchanged.
  public var attributes: JSONValue?

  /// A start with the three required ids; everything else is at its default.
  public init(workspace: String, app: String, user: String) {
    self.workspace = workspace
    self.app = app
    client = Client(user: user)
  }

  /// What is sent.
  public struct Upstream: Sendable, Hashable {
    /// `type`: true is `AudioAndVideo`, which images require.
    public var hasVideo = false
    /// How the user takes a turn.
    public var mode = DialogMode.duplex
    /// The format of the user's audio.
    public var format = BailianAudio.Up.pcm
    /// Hz: 8000, 16000, 24000, 48000.
    public var rate = 16_000
    /// The list of hot words, `vocabulary_id`.
    public var vocabulary: String?
    /// `asr_post_processing.replace_words`.
    public var replaceWords: [ReplaceWord] = []
    /// `enable_server_vad_start`; not documented.
    public var serverVADStart: Bool?
  }

  /// A word that recognition replaces with another.
  public struct ReplaceWord: Sendable, Hashable {
    /// The recognised word.
    public var source: String
    /// Its replacement.
    public var target: String
    /// `match_mode`, such as `exact`.
    public var match: String?

    /// A replacement of one word by another.
    public init(_ source: String, _ target: String, match: String? = nil) {
      self.source = source
      self.target = target
      self.match = match
    }
  }

  /// What is received.
  public struct Downstream: Sendable, Hashable {
    /// The voice; nil: the application's.
    public var voice: String?
    /// The format of replies.
    public var format = BailianAudio.Down.pcm
    /// Hz: 8000, 16000, 24000, 48000.
    public var rate = 24_000
    /// `type`: false is `Text`, without audio.
    public var hasAudio = true
    /// Duration of an Opus packet in milliseconds: 10, 20, 40, 60, 100, 120.
    public var frameMilliseconds: Int?
    /// Bit rate of Opus in kbit/s: 6 to 510.
    public var bitRate: Int?
    /// 0 to 100.
    public var volume: Int?
    /// 50 to 200, per cent.
    public var speechRate: Int?
    /// 50 to 200, per cent.
    public var pitchRate: Int?
    /// `intermediate_text`: the transcript, the reply text.
    public var texts: Set<Text> = [.transcript, .dialog]
    /// Limit for audio in bytes per second, `transmit_rate_limit`.
    public var rateLimit: Int?
    /// `incremental_response`: reply text arrives in pieces instead of as the whole text so far.
    public var isIncremental = false
    /// `word_timestamp_enabled`; requires the text `dialog`.
    public var wordTimestamps = false
    /// `instruction`: how to speak.
    public var instruction: String?
    /// True: the service adds debug information.
    public var debug = false
  }

  /// Texts the service sends during a turn.
  public enum Text: String, Sendable, Hashable, CaseIterable {
    /// The transcript so far; the reply text so far.
    case transcript, dialog
  }

  /// The user and the device: `client_info`.
  public struct Client: Sendable, Hashable {
    /// Id of the user, at most 36 characters.
    public var user: String
    /// `device.uuid`, at most 40 characters.
    public var device: String?
    /// `network.ip`.
    public var ip: String?
    /// Where the user is, in degrees as text.
    public var latitude: String?
    /// See `latitude`.
    public var longitude: String?
    /// The name of the user's city.
    public var city: String?
    /// The device's state, in the application's terms.
    public var status: JSONValue?
    /// `active_foreground_app`.
    public var foregroundApp: String?
    /// The client's name and version.
    public var sdk: String?
  }
}

extension BailianStart {
  /// What the service would refuse: the path of a member and what is wrong with it.
  public var problems: [JSONFormProblem] {
    var result: [JSONFormProblem] = []
    func check(_ isRight: Bool, _ path: String, _ text: String) {
      if !isRight { result.append(JSONFormProblem(path, text)) }
    }
    check(!workspace.isEmpty, "input.workspace_id", "must not be empty")
    check(!app.isEmpty, "input.app_id", "must not be empty")
    check(!client.user.isEmpty, "client_info.user_id", "must not be empty")
    check(client.user.count <= 36, "client_info.user_id", "has more than 36 characters")
    check((client.device?.count ?? 0) <= 40, "client_info.device.uuid", "has more than 40 characters")
    check(BailianAudio.rates.contains(upstream.rate), "upstream.sample_rate", BailianAudio.ratesProblem)
    check(BailianAudio.rates.contains(downstream.rate), "downstream.sample_rate", BailianAudio.ratesProblem)
    let frames = [10, 20, 40, 60, 100, 120]
    check(
      downstream.frameMilliseconds.map(frames.contains) ?? true, "downstream.frame_size",
      "must be one of 10, 20, 40, 60, 100, 120")
    let coded = downstream.format == .opus || downstream.format.isPackets
    check(
      coded || (downstream.frameMilliseconds == nil && downstream.bitRate == nil), "downstream.frame_size",
      "and bit_rate are for Opus only")
    func range(_ value: Int?, _ range: ClosedRange<Int>, _ path: String) {
      check(
        value.map(range.contains) ?? true, path, "must be from \(range.lowerBound) to \(range.upperBound)")
    }
    range(downstream.bitRate, 6...510, "downstream.bit_rate")
    range(downstream.volume, 0...100, "downstream.volume")
    range(downstream.speechRate, 50...200, "downstream.speech_rate")
    range(downstream.pitchRate, 50...200, "downstream.pitch_rate")
    range(downstream.rateLimit, 1...Int.max, "downstream.transmit_rate_limit")
    check(
      !downstream.wordTimestamps || downstream.texts.contains(.dialog), "downstream.word_timestamp_enabled",
      "requires the text \"dialog\"")
    return result
  }

  /// `payload.parameters`.
  var parameters: JSONValue {
    .object([
      "upstream": upstream.json, "downstream": downstream.json, "client_info": client.json,
      "biz_params": biz, "dialog_attributes": attributes,
    ])
  }
}

extension BailianStart.Upstream {
  fileprivate var json: JSONValue {
    let mode =
      switch mode {
      case .pushToTalk: "push2talk"
      case .tapToTalk: "tap2talk"
      case .duplex: "duplex"
      }
    let words: JSONValue? =
      replaceWords.isEmpty
      ? nil
      : [
        "replace_words": .array(
          replaceWords.map {
            .object([
              "source": .string($0.source), "target": .string($0.target),
              "match_mode": $0.match.map { .string($0) },
            ])
          })
      ]
    return .object([
      "type": .string(hasVideo ? "AudioAndVideo" : "AudioOnly"), "mode": .string(mode),
      "audio_format": .string(format.rawValue), "sample_rate": .integer(rate),
      "vocabulary_id": vocabulary.map { .string($0) }, "asr_post_processing": words,
      "enable_server_vad_start": serverVADStart.map { .bool($0) },
    ])
  }
}

extension BailianStart.Downstream {
  fileprivate var json: JSONValue {
    .object([
      "type": hasAudio ? nil : "Text", "voice": voice.map { .string($0) },
      "audio_format": .string(format.rawValue), "sample_rate": .integer(rate),
      "frame_size": frameMilliseconds.map { .integer($0) }, "bit_rate": bitRate.map { .integer($0) },
      "volume": volume.map { .integer($0) }, "speech_rate": speechRate.map { .integer($0) },
      "pitch_rate": pitchRate.map { .integer($0) },
      "intermediate_text": texts.isEmpty
        ? nil
        : .string(
          BailianStart.Text.allCases.filter(texts.contains).map(\.rawValue).joined(separator: ",")),
      "transmit_rate_limit": rateLimit.map { .integer($0) },
      "incremental_response": isIncremental ? true : nil,
      "word_timestamp_enabled": wordTimestamps ? true : nil,
      "instruction": instruction.map { .string($0) }, "debug": debug ? true : nil,
    ])
  }
}

extension BailianStart.Client {
  fileprivate var json: JSONValue {
    let hasPlace = latitude != nil || longitude != nil || city != nil
    return .object([
      "user_id": .string(user), "device": device.map { ["uuid": .string($0)] },
      "network": ip.map { ["ip": .string($0)] },
      "location": hasPlace
        ? .object([
          "latitude": latitude.map { .string($0) }, "longitude": longitude.map { .string($0) },
          "city_name": city.map { .string($0) },
        ]) : nil,
      "status": status, "active_foreground_app": foregroundApp.map { .string($0) },
      "sdk": sdk.map { .string($0) },
    ])
  }
}
