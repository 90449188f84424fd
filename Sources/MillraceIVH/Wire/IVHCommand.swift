public import MillraceJSON

/// A command of the channel, with which the avatar speaks, or the channel stays open: the `Command` and `Data` of a frame.
public struct IVHCommand: Sendable, Hashable {
  /// The vendor's name of the command.
  public enum Name: String, Sendable, Hashable, CaseIterable {
    /// A text, or an interruption.
    case text = "SEND_TEXT"
    /// A part of a text; session generation only.
    case streamedText = "SEND_STREAMTEXT"
    /// A packet of voice.
    case audio = "SEND_AUDIO"
    /// Keeps the channel open.
    case heartbeat = "SEND_HEARTBEAT"
  }

  /// The vendor's name.
  public let name: Name
  /// The id, which the session generation requires; all parts of a text, and all packets of an utterance, have the same.
  public let id: String
  let data: [JSONValue.Member]

  init(_ name: Name, id: String, _ data: KeyValuePairs<String, JSONValue?>) {
    self.name = name
    self.id = id
    self.data = JSONValue.object(data).members ?? []
  }

  /// A text to speak, or to answer.
  /// - Parameters:
  ///   - text: not empty.
  ///   - isVerbatim: it is spoken, and not answered by the platform's dialogue; the session generation alone distinguishes them.
  ///   - isForced: it also interrupts a protected sentence.
  public static func text(
    _ text: String, id: String, isVerbatim: Bool, isForced: Bool, _ generation: IVHGeneration
  ) -> IVHCommand {
    IVHCommand(
      .text, id: id,
      [
        "Text": .string(text), "Interrupt": isForced ? true : nil,
        "ChatCommand": isVerbatim && generation == .session ? "NotUseChat" : nil,
      ])
  }

  /// Interrupts what is spoken. An empty text means that in both generations; the stream generation reads `Interrupt` as force, the session generation requires it.
  public static func interruption(id: String, isForced: Bool, _ generation: IVHGeneration) -> IVHCommand {
    IVHCommand(
      .text, id: id, ["Text": "", "Interrupt": isForced || generation == .session ? true : nil])
  }

  /// A part of a text.
  /// - Parameters:
  ///   - number: from 1.
  ///   - isFinal: the last part.
  ///   - more: `IsSentence`, `IsInsertSentence` and others, under the vendor's names.
  public static func part(
    _ text: String, number: Int, isFinal: Bool, id: String, more: [JSONValue.Member] = []
  ) -> IVHCommand {
    IVHCommand(
      IVHCommand(
        .streamedText, id: id,
        ["Text": .string(text), "Seq": .integer(number), "IsFinal": .bool(isFinal)]),
      adding: more)
  }

  /// Interrupts a text that comes in parts.
  public static func streamInterruption(number: Int, id: String) -> IVHCommand {
    IVHCommand(
      .streamedText, id: id,
      ["Text": "", "Seq": .integer(number), "IsFinal": true, "Interrupt": true])
  }

  /// A packet of voice; an empty one is the last.
  /// - Parameters:
  ///   - bytes: 16-bit mono PCM at 16 kHz.
  ///   - number: from 1.
  public static func audio(_ bytes: [UInt8], number: Int, id: String) -> IVHCommand {
    IVHCommand(
      .audio, id: id,
      [
        "Audio": .string(Base64.encode(bytes)), "Seq": .integer(number), "IsFinal": .bool(bytes.isEmpty),
      ])
  }

  /// Ends an utterance of voice whose rest is not to be spoken; session generation only.
  static func audioInterruption(number: Int, id: String) -> IVHCommand {
    IVHCommand(.audio, id: id, ["Audio": "", "Seq": .integer(number), "IsFinal": true, "Interrupt": true])
  }

  /// A heartbeat.
  public static func heartbeat(id: String) -> IVHCommand { IVHCommand(.heartbeat, id: id, ["Text": "PING"]) }

  private init(_ command: IVHCommand, adding more: [JSONValue.Member]) {
    name = command.name
    id = command.id
    let names = Set(command.data.map(\.name))
    data = command.data + more.filter { !names.contains($0.name) }
  }

  /// The members of a payload.
  var members: [JSONValue.Member] {
    [JSONValue.Member("Command", .string(name.rawValue)), JSONValue.Member("Data", .object(data))]
  }

  /// The frame for the command channel.
  func frame(session: String, _ generation: IVHGeneration) -> JSONValue {
    IVHEnvelope.make(
      session: session, generation == .session ? [JSONValue.Member("ReqId", .string(id))] : [], members)
  }
}
