internal import MillraceDialog

extension IVHRules {
  /// Why a command is refused in every phase; nil: it is not.
  func refusal(of command: DialogCommand) -> String? {
    switch command {
    case .say(let text, _): return refusal(ofText: text)
    case .ask(let text, let images, _):
      return images.isEmpty ? refusal(ofText: text) : "the service takes no images"
    case .extra(let name, _): return refusal(ofRequest: name)
    case .refreshAuth(let token):
      guard token?.isEmpty != false else { return nil }
      return token == nil
        ? "\"refreshAuth\" needs a \"token\": the node cannot fetch one itself"
        : "the \"token\" of \"refreshAuth\" is empty"
    case .interrupt, .startSpeech, .stopSpeech, .cancelSpeech, .update, .begin, .hangUp(nil, _),
      .mute(.audio, _, nil):
      return nil
    case .mute, .setRole, .hangUp, .call, .answerCall, .publish, .subscribe, .data:
      return
        "\"\(command.name)\" is not supported by the service: there is one user, no room and no call"
    }
  }

  private func refusal(ofText text: String) -> String? {
    if text.isEmpty { return "an empty text would interrupt; send \"interrupt\" for that" }
    guard text.utf8.count > IVHTexts.mostBytes else { return nil }
    return "the text has \(text.utf8.count) bytes, and the service accepts \(IVHTexts.mostBytes)"
  }

  /// The vendor's own requests.
  private func refusal(ofRequest name: String) -> String? {
    switch (name, generation) {
    case ("statSession", _), ("listSession", _), ("newSession", _), ("queryConfig", .stream),
      ("streamText", .session):
      nil
    case ("queryConfig", _), ("streamText", _):
      "\"\(name)\" is not part of the \(generation.rawValue) generation of the interface"
    default:
      "\"\(name)\" is not known; known are statSession, listSession, queryConfig, streamText and newSession"
    }
  }
}
