internal import MillraceCore
internal import MillraceRTCWire
internal import MillraceRTC

/// Checks the parameters of `rtc.rtp` against each other and against what is linked, and derives the shapes of its outputs.
enum PlainResolution {
  static func resolve(_ resolution: inout Resolution) {
    let codec = PlainForm.codec(resolution.parameters)
    checkAddresses(&resolution)
    checkLinks(&resolution, codec)
    checkFormats(&resolution, codec)
    checkPayloadTypes(&resolution, codec)
    RTCResolution.checkSound(&resolution)
    do throws(NodeProblem) { _ = try PlainKeys.keys(resolution.parameters) } catch {
      refuse(&resolution, error)
    }
    RTCResolution.resolveOutputs(&resolution, hasData: false)
    resolution.outputs["video"] = OutputShape(
      codec == .vp8 ? .vp8 : .h264, packetDuration: nil, packetBytes: RTCExchange.pictureBytes, burst: 0)
  }

  private static func refuse(_ resolution: inout Resolution, _ problem: NodeProblem) {
    resolution.refuse(problem.parameter, problem.text, cure: problem.cure)
  }

  private static func checkAddresses(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    let hasMux = parameters.bool("rtcpMux")
    do throws(NodeProblem) {
      let local = try PlainForm.local(parameters)
      if local.port == .max && !hasMux {
        resolution.refuse(
          "local", "RTCP has no port after 65535", cure: "take another port, or set \"rtcpMux\" to true")
      }
      guard let remote = try PlainForm.remote(parameters) else { return checkSender(&resolution) }
      if remote.port == .max && !hasMux {
        resolution.refuse("remote", "RTCP has no port after 65535", cure: "set \"rtcpMux\" to true")
      }
      guard let target = remote.address, let own = local.address, !target.isReached(from: own) else { return }
      resolution.refuse(
        "remote", "\"remote\" is \(target), and \"local\" is \(own): IPv4 and IPv6 do not reach each other",
        cure: "set \"local\" to an address of the same kind; [::] is for both")
    } catch {
      refuse(&resolution, error)
    }
  }

  /// Without `remote`.
  private static func checkSender(_ resolution: inout Resolution) {
    let sends = resolution.linkedInputs.contains("audio") || resolution.linkedInputs.contains("video")
    guard sends, !resolution.parameters.bool("symmetric") else { return }
    resolution.refuse(
      "remote", "there is something to send, and nobody to send it to",
      cure: "set \"remote\" to host:port, or \"symmetric\" to true, which answers to who sends first")
  }

  private static func checkLinks(_ resolution: inout Resolution, _ codec: PlainCodec) {
    let other = codec.isVideo ? "audio" : "video"
    let isLinked =
      resolution.linkedInputs.contains(other) || resolution.wanted[other]?.isEmpty == false
    guard isLinked else { return }
    let kinds = codec.isVideo ? "pictures" : "sound"
    resolution.refuse(
      "codec", "\"\(other)\" is linked, and \(codec.rawValue) carries \(kinds)",
      cure: "take another codec; sound and pictures need a node each, with ports of their own")
  }

  private static func checkFormats(_ resolution: inout Resolution, _ codec: PlainCodec) {
    let parameters = resolution.parameters
    if !codec.isVideo, codec != .opus {
      if resolution.inputs["audio"]?.format.kind == .opus {
        resolution.refuse(
          "codec", "the input \"audio\" carries Opus, and \"codec\" is \(codec.rawValue)",
          cure: "set it to \"opus\", or link PCM")
      }
      if parameters.string("format") == "opus" {
        resolution.refuse(
          "format", "Opus is to be received, and \"codec\" is \(codec.rawValue)",
          cure: "set \"codec\" to \"opus\", or \"format\" to \"pcm\"")
      }
    }
    guard codec.isVideo, let input = resolution.inputs["video"] else { return }
    guard input.format.kind.rawValue != codec.rawValue else { return }
    resolution.refuse(
      "codec", "the input \"video\" carries \(input.format), and \"codec\" is \(codec.rawValue)",
      cure: "encode with this codec, or set it to the codec of the link")
  }

  private static func checkPayloadTypes(_ resolution: inout Resolution, _ codec: PlainCodec) {
    let parameters = resolution.parameters
    let fixed = codec.fixedPayloadType(
      rate: parameters.integer("rate"), channels: parameters.integer("channels"))
    let given = PlainForm.payloadType(parameters)
    if let given, given != fixed, !PlainCodec.dynamic.contains(given) {
      let own = fixed.map { "\($0), or " } ?? ""
      resolution.refuse(
        "payloadType", "\(given) stands for another codec than \(codec.rawValue) (RFC 3551)",
        cure: "set \(own)96 to 127, as the peer expects it; or leave it out")
    }
    guard let tones = PlainForm.tonePayloadType(parameters) else { return }
    guard tones == Int(PlainForm.codecs(parameters).codec.payloadType) else { return }
    resolution.refuse(
      "tonePayloadType", "\(tones) is the payload type of \(codec.rawValue)", cure: "set another")
  }
}

extension DatagramAddress {
  /// True where a socket that is bound to an address can send to this one: that on all addresses of IPv6 has those of IPv4, too.
  func isReached(from local: DatagramAddress) -> Bool {
    isIPv6 == local.isIPv6 || !isIPv6 && local.host == "::"
  }
}
