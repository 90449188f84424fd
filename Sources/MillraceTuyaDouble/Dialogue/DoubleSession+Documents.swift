internal import MillraceConformance
internal import MillraceDialog
internal import MillraceDoubles
internal import MillraceJSON

/// The documents and the data of a reply.
extension DoubleSession {
  /// Milliseconds for which an emotion is shown.
  private static let emotion = 1_000

  /// Sends a document; twice in a turn that repeats everything.
  func send(document: JSONValue, _ flag: StreamFlag = .onlyOne) {
    double.note("< \(document["bizType"]?.string ?? "document")")
    textCount += 1
    let bytes = document.bytes
    for _ in 0..<times {
      guard turn.isSplit && stage != .idle else {
        send(.text, flag, bytes)
        continue
      }
      let half = bytes.count / 2
      send(.text, .start, Array(bytes[..<half]))
      send(.text, .streaming, Array(bytes[half...]))
      send(.text, .end, [])
    }
  }

  /// The reply's text, its skills, and what else the scenario wants.
  func sayDocuments() {
    let words = turn.says.split(separator: " ")
    let first = words.prefix((words.count + 1) / 2).joined(separator: " ")
    let second = words.dropFirst((words.count + 1) / 2).joined(separator: " ")
    if second.isEmpty {
      send(document: speech(first, isFirst: true, isLast: true))
    } else {
      send(document: speech(first, isFirst: true, isLast: false), .start)
      let gap = turn.replaces ? "" : " "
      send(document: speech(gap + second, isFirst: false, isLast: true), .end)
    }
    for (index, emoji) in turn.emotions.enumerated() {
      send(document: emotion(emoji, index, isLast: index + 1 == turn.emotions.count))
    }
    for skill in turn.skills { send(document: document("SKILL", skill, isLast: true)) }
    for text in turn.texts { send(document: text) }
  }

  private func document(_ type: String, _ data: JSONValue, isLast: Bool) -> JSONValue {
    ["bizId": .string(round), "bizType": .string(type), "eof": isLast ? 1 : 0, "data": data]
  }

  private func speech(_ text: String, isFirst: Bool, isLast: Bool) -> JSONValue {
    var images: [JSONValue] = []
    if isFirst {
      images = turn.images.map { ["url": .string($0)] }
      for url in turn.images { double.noteReported(.media(DialogMedia(.image, url: url, round: round))) }
    }
    let data: JSONValue = [
      "appendMode": turn.replaces ? "replace" : "append",
      "reasoningContent": .string(isFirst ? turn.reasons : ""),
      "content": .string(text), "images": .array(images),
    ]
    return document("NLG", data, isLast: isLast)
  }

  private func emotion(_ emoji: String, _ index: Int, isLast: Bool) -> JSONValue {
    let data: JSONValue = [
      "code": "llm_emo",
      "skillContent": [
        "text": .string(emoji), "startTime": .integer(index * Self.emotion),
        "endTime": .integer((index + 1) * Self.emotion), "sequence": .integer(index + 1),
      ],
    ]
    return document("SKILL", data, isLast: isLast)
  }

  // MARK: Data

  /// Images, files and videos.
  func sendAttachments() {
    for _ in 0..<turn.pictures {
      send(.image, .onlyOne, SmallPicture.jpeg, .image(payload: 0, format: 1, width: 16, height: 16))
    }
    for index in 0..<turn.files {
      textCount += 1
      let bytes = Array(#"{"file":\#(index + 1)}"#.utf8)
      send(
        .file, .start, Array(bytes.prefix(4)), .file(payload: 0, format: 4, name: "file-\(index + 1).json"))
      send(.file, .end, Array(bytes.dropFirst(4)))
    }
    for _ in 0..<turn.videos {
      let motionJPEG = 3
      send(.video, .start, [], .video(codec: motionJPEG, width: 16, height: 16, fps: 10, rate: 90_000))
      for _ in 1...3 { send(.video, .streaming, SmallPicture.jpeg) }
      send(.video, .end, [])
    }
  }
}
