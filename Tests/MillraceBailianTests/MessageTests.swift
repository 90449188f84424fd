import MillraceBailian
import MillraceDialog
import MillraceJSON
import Testing

private func read(_ text: String) throws -> BailianMessage { try BailianMessage(parsing: Array(text.utf8)) }

private func output(_ members: String) -> String {
  #"{"header":{"event":"result-generated","task_id":"t"},"payload":{"output":{\#(members)}}}"#
}

@Suite("messages of Bailian") struct MessageTests {
  @Test("Start contains every parameter of the vendor's table under its name")
  func start() throws {
    var start = BailianStart(workspace: "llm-1", app: "mm_1", user: "u")
    start.dialog = "d-1"
    start.upstream.hasVideo = true
    start.upstream.mode = .tapToTalk
    start.upstream.format = .rawOpus
    start.upstream.rate = 48_000
    start.upstream.vocabulary = "v"
    start.upstream.replaceWords = [BailianStart.ReplaceWord("a", "b", match: "exact")]
    start.upstream.serverVADStart = false
    start.downstream.voice = "longxiaochun_v2"
    start.downstream.format = .opus
    start.downstream.rate = 16_000
    start.downstream.hasAudio = false
    start.downstream.frameMilliseconds = 60
    start.downstream.bitRate = 32
    start.downstream.volume = 50
    start.downstream.speechRate = 100
    start.downstream.pitchRate = 101
    start.downstream.rateLimit = 16_000
    start.downstream.isIncremental = true
    start.downstream.wordTimestamps = true
    start.downstream.instruction = "softly"
    start.downstream.debug = true
    start.client.device = "dev"
    start.client.ip = "192.0.2.1"
    start.client.latitude = "30"
    start.client.longitude = "120"
    start.client.city = "Hangzhou"
    start.client.status = ["battery": 3]
    start.client.foregroundApp = "map"
    start.client.sdk = "s"
    start.biz = ["user_prompt_params": ["user_name": "Dami"]]
    start.attributes = ["agent_id": "a"]
    #expect(start.problems == [])
    let wanted = """
      {"header":{"action":"run-task","task_id":"T","streaming":"duplex"},"payload":{"task_group":"aigc",\
      "task":"multimodal-generation","function":"generation","model":"multimodal-dialog","input":{"directive":"Start",\
      "workspace_id":"llm-1","app_id":"mm_1","dialog_id":"d-1"},"parameters":{"upstream":{"type":"AudioAndVideo",\
      "mode":"tap2talk","audio_format":"raw-opus","sample_rate":48000,"vocabulary_id":"v","asr_post_processing":\
      {"replace_words":[{"source":"a","target":"b","match_mode":"exact"}]},"enable_server_vad_start":false},\
      "downstream":{"type":"Text","voice":"longxiaochun_v2","audio_format":"opus","sample_rate":16000,"frame_size":60,\
      "bit_rate":32,"volume":50,"speech_rate":100,"pitch_rate":101,"intermediate_text":"transcript,dialog",\
      "transmit_rate_limit":16000,"incremental_response":true,"word_timestamp_enabled":true,"instruction":"softly",\
      "debug":true},"client_info":{"user_id":"u","device":{"uuid":"dev"},"network":{"ip":"192.0.2.1"},"location":\
      {"latitude":"30","longitude":"120","city_name":"Hangzhou"},"status":{"battery":3},"active_foreground_app":"map",\
      "sdk":"s"},"biz_params":{"user_prompt_params":{"user_name":"Dami"}},"dialog_attributes":{"agent_id":"a"}}}}
      """
    #expect(BailianRequest.start(start).json(task: "T", dialog: nil).text == wanted)
  }

  @Test("parameters that are nil are not sent in Start")
  func least() {
    var start = BailianStart(workspace: "w", app: "a", user: "u")
    start.downstream.texts = []
    let wanted = """
      {"upstream":{"type":"AudioOnly","mode":"duplex","audio_format":"pcm","sample_rate":16000},\
      "downstream":{"audio_format":"pcm","sample_rate":24000},"client_info":{"user_id":"u"}}
      """
    let json = BailianRequest.start(start).json(task: "T", dialog: nil)
    #expect(json["payload"]?["parameters"]?.text == wanted)
    #expect(json["payload"]?["input"]?["dialog_id"] == nil)
  }

  @Test(
    "what the service would refuse is found first",
    arguments: [
      (
        { @Sendable (start: inout BailianStart) in start.workspace = "" },
        #""input.workspace_id" must not be empty"#
      ),
      (
        { @Sendable (start: inout BailianStart) in start.client.user = String(repeating: "u", count: 37) },
        #""client_info.user_id" has more than 36 characters"#
      ),
      (
        { @Sendable (start: inout BailianStart) in start.client.device = String(repeating: "u", count: 41) },
        #""client_info.device.uuid" has more than 40 characters"#
      ),
      (
        { @Sendable (start: inout BailianStart) in start.upstream.rate = 44_100 },
        #""upstream.sample_rate" must be one of 8000, 16000, 24000, 48000"#
      ),
      (
        { @Sendable (start: inout BailianStart) in start.downstream.rate = 22_050 },
        #""downstream.sample_rate" must be one of 8000, 16000, 24000, 48000"#
      ),
      (
        { @Sendable (start: inout BailianStart) in start.downstream.bitRate = 32 },
        #""downstream.frame_size" and bit_rate are for Opus only"#
      ),
      (
        { @Sendable (start: inout BailianStart) in start.downstream.volume = 101 },
        #""downstream.volume" must be from 0 to 100"#
      ),
      (
        { @Sendable (start: inout BailianStart) in start.downstream.speechRate = 49 },
        #""downstream.speech_rate" must be from 50 to 200"#
      ),
      (
        { @Sendable (start: inout BailianStart) in
          start.downstream.wordTimestamps = true
          start.downstream.texts = [.transcript]
        }, #""downstream.word_timestamp_enabled" requires the text "dialog""#
      ),
    ] as [(@Sendable (inout BailianStart) -> Void, String)])
  func problems(change: @Sendable (inout BailianStart) -> Void, message: String) {
    var start = BailianStart(workspace: "w", app: "a", user: "u")
    change(&start)
    #expect(start.problems.map(\.description) == [message])
  }

  @Test(
    "every message has its action and the dialogue's id",
    arguments: [
      (BailianRequest.sendSpeech, "SendSpeech"), (.stopSpeech, "StopSpeech"), (.cancelSpeech, "CancelSpeech"),
      (.requestToSpeak, "RequestToSpeak"), (.localRespondingStarted, "LocalRespondingStarted"),
      (.localRespondingEnded, "LocalRespondingEnded"), (.heartBeat, "HeartBeat"), (.stop, "Stop"),
    ])
  func directives(request: BailianRequest, name: String) {
    let action = name == "Stop" ? "finish-task" : "continue-task"
    #expect(
      request.json(task: "T", dialog: "D").text
        == #"{"header":{"action":"\#(action)","task_id":"T","streaming":"duplex"},"payload":{"input":{"directive":"\#(name)","dialog_id":"D"}}}"#
    )
  }

  @Test("a question is sent with its image and the vendor's own parameters")
  func respond() {
    let request = BailianRequest.requestToRespond(
      BailianRequest.Respond(.prompt, "what is it", images: [.base64("QUJD")], biz: ["commands": []]))
    #expect(
      request.json(task: "T", dialog: "D")["payload"]?.text
        == #"{"input":{"directive":"RequestToRespond","dialog_id":"D","type":"prompt","text":"what is it"},"parameters":{"images":[{"type":"base64","value":"QUJD"}],"biz_params":{"commands":[]}}}"#
    )
    let plain = BailianRequest.requestToRespond(BailianRequest.Respond(.transcript, ""))
    #expect(
      plain.json(task: "T", dialog: "D")["payload"]?.text
        == #"{"input":{"directive":"RequestToRespond","dialog_id":"D","type":"transcript","text":""}}"#)
  }

  @Test(
    "events are parsed",
    arguments: [
      (#""event":"Started","dialog_id":"d""#, BailianMessage.Event.started),
      (#""event":"DialogStateChanged","state":"Listening""#, .state(.listening)),
      (#""event":"DialogStateChanged","state":"Thinking","inputType":"x""#, .state(.thinking)),
      (#""event":"DialogStateChanged","state":"Responding""#, .state(.responding)),
      (#""event":"DialogStateChanged","state":"Idle""#, .unknown),
      (#""event":"SpeechStarted""#, .speechStarted),
      (
        #""event":"SpeechContent","text":"hi","finished":false"#,
        .speechContent(text: "hi", isFinished: false)
      ),
      (#""event":"SpeechEnded""#, .speechEnded),
      (#""event":"RespondingStarted""#, .respondingStarted),
      (#""event":"RespondingEnded""#, .respondingEnded),
      (#""event":"RequestAccepted""#, .requestAccepted),
      (#""event":"HeartBeat""#, .heartBeat),
      (#""event":"Stopped""#, .stopped),
      (#""event":"Astonished""#, .unknown),
      (
        #""event":"Error","error_code":451,"error_name":"NoSpeechRecognized","error_message":"m""#,
        .error(BailianFault(code: 451, name: "NoSpeechRecognized", "m", isFatal: false))
      ),
    ])
  func events(members: String, event: BailianMessage.Event) throws {
    #expect(try read(output(members)).event == event)
  }

  @Test("part of a reply, with commands as a string of JSON")
  func content() throws {
    let message = try read(
      output(
        #""event":"RespondingContent","dialog_id":"d","round_id":"r","llm_request_id":"l","text":"one","spoken":"One.","finished":true,"extra_info":{"commands":"[{\"name\":\"visual_qa\",\"params\":[]}]","agent_info":{"a":1},"query":null}"#
      ))
    #expect(message.dialog == "d" && message.task == "t")
    #expect(
      message.event
        == .respondingContent(
          BailianMessage.Content(
            text: "one", spoken: "One.", isFinished: true, round: "r",
            commands: [
              BailianMessage.Command(name: "visual_qa", payload: ["name": "visual_qa", "params": []])
            ],
            extra: [JSONValue.Member("agent_info", ["a": 1])])))
  }

  @Test("Started is accepted under any header; usage is kept")
  func startedInTaskStarted() throws {
    let message = try read(
      #"{"header":{"event":"task-started","task_id":"t"},"payload":{"output":{"event":"Started","dialog_id":"d"},"usage":{"tokens":3}}}"#
    )
    #expect(message.event == .started && message.usage == ["tokens": 3])
    #expect(try read(#"{"header":{"event":"task-started"},"payload":{}}"#).event == .taskStarted)
    #expect(try read(#"{"header":{"event":"task-finished"}}"#).event == .taskFinished)
  }

  @Test("errors in the header and task-failed are fatal; those in the payload are not")
  func failures() throws {
    let header = try read(
      #"{"header":{"event":"result-generated","status_code":444,"status_name":"ClientAudioTimeout","status_message":"m"},"payload":{"output":{"event":"Error"}}}"#
    )
    #expect(
      header.event == .error(BailianFault(code: 444, name: "ClientAudioTimeout", "m", isFatal: true)))
    let failed = try read(
      #"{"header":{"event":"task-failed","error_code":"Model.AccessDenied","error_message":"m"},"payload":{}}"#
    )
    #expect(failed.event == .error(BailianFault(name: "Model.AccessDenied", "m", isFatal: true)))
    let normal = try read(
      #"{"header":{"event":"result-generated","status_code":200,"status_name":"Success"},"payload":{"output":{"event":"SpeechStarted"}}}"#
    )
    #expect(normal.event == .speechStarted)
  }

  @Test(
    "an invalid message is rejected with the path, without its content",
    arguments: [
      ("secret", #""message" is invalid JSON at byte 0: unexpected character, expected a value"#),
      ("[]", #""header" must be an object"#),
      (#"{"header":{}}"#, #""header.event" must be a string"#),
      (output(#""event":7"#), #""payload.output.event" must be a string"#),
      (output(#""event":"DialogStateChanged""#), #""payload.output.state" must be a string"#),
      (
        output(#""event":"SpeechContent","text":"hi""#), #""payload.output.finished" must be true or false"#
      ),
      (
        output(
          #""event":"RespondingContent","text":"hi","finished":true,"extra_info":{"commands":"secret"}"#),
        #""payload.output.extra_info.commands" is invalid JSON at byte 0: unexpected character, expected a value"#
      ),
      (
        output(#""event":"RespondingContent","text":"hi","finished":true,"extra_info":{"commands":"[{}]"}"#),
        #""payload.output.extra_info.commands" has an entry without a string "name""#
      ),
    ])
  func invalid(text: String, message: String) {
    #expect { _ = try read(text) } throws: { "\($0)" == message }
  }

  @Test("a message with any cut and any changed byte is parsed or rejected")
  func broken() throws {
    let whole = Array(
      output(
        #""event":"RespondingContent","text":"\u00e9","finished":true,"extra_info":{"commands":"[{\"name\":\"a\"}]"}"#
      ).utf8)
    for count in whole.indices {
      #expect(throws: JSONFormProblem.self) { _ = try BailianMessage(parsing: Array(whole[..<count])) }
    }
    for index in whole.indices {
      for byte: UInt8 in [0, 0x22, 0x5C, 0x7B, 0xFF] {
        var bytes = whole
        bytes[index] = byte
        _ = try? BailianMessage(parsing: bytes)
      }
    }
  }
}

@Suite("errors of Bailian") struct FaultTests {
  @Test(
    "every error of the vendor's table has its category and reaction",
    arguments: [
      (nil, "AccessDenied.Unpurchased", true, .quota, .refuse),
      (nil, "Model.AccessDenied", true, .auth, .refuse), (nil, "ResponseTimeout", true, .network, .reconnect),
      (421, "InvalidParameter", true, .request, .refuse),
      (422, "DirectiveNotSupported", true, .request, .refuse),
      (424, "AudioFormatError", true, .request, .refuse), (432, "AppConfigError", true, .request, .refuse),
      (433, "BillingAuthError", true, .quota, .refuse),
      (444, "ClientAudioTimeout", true, .request, .reconnect),
      (449, "TooManyInterrupt", true, .quota, .reconnect), (425, "NoInputAudioError", false, .asr, .continue),
      (426, "InvalidTtsVoice", false, .tts, .continue), (451, "NoSpeechRecognized", false, .asr, .continue),
      (500, "InternalSynthesizerError", false, .tts, .continue),
      (500, "InternalAsrError", false, .asr, .continue),
      (500, "InternalAsrError", true, .asr, .reconnect), (500, "InternalLLMError", false, .llm, .continue),
      (500, "LLMTimeoutError", false, .llm, .continue),
      (40_020_000, "DataInspectionFailed", false, .moderation, .continue),
      (599, "SomethingNew", true, .internal, .reconnect), (599, "SomethingNew", false, .internal, .continue),
    ] as [(Int?, String, Bool, DialogError.Category, DialogError.Reaction)])
  func table(
    code: Int?, name: String, isFatal: Bool, category: DialogError.Category, reaction: DialogError.Reaction
  ) {
    let error = BailianFault(code: code, name: name, "m", isFatal: isFatal).error
    #expect(error.category == category && error.reaction == reaction)
    #expect(error.code == code && error.name == name && error.vendor == "bailian")
  }

  @Test("a code without a name is identified by the code")
  func numbers() {
    let error = BailianFault(code: 449, "", isFatal: true).error
    #expect(error.name == "TooManyInterrupt" && error.category == .quota)
    #expect(error.text == "the service sent no message")
  }
}
