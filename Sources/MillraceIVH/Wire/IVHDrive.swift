public import MillraceJSON

/// What drives the figure, or keeps its channel open: the `Command` and `Data` of a frame.
public struct IVHDrive: Sendable, Hashable {
  /// The vendor's name of the command.
  public enum Command: String, Sendable, Hashable, CaseIterable {
    /// A text, or an interruption.
    case text = "SEND_TEXT"
    /// A part of a text; session generation only.
    case streamedText = "SEND_STREAMTEXT"
    /// A packet of voice.
    case audio = "SEND_AUDIO"
    /// Keeps the channel open.
    case heartbeat = "SEND_HEARTBEAT"
  }

  /// The command.
  public let command: Command
  /// The id of the drive, which the session generation requires; one for all parts of a text, or all packets of an utterance.
  public let id: String
  let data: [JSONValue.Member]

  init(_ command: Command, id: String, _ data: KeyValuePairs<String, JSONValue?>) {
    self.command = command
    self.id = id
    self.data = JSONValue.object(data).members ?? []
  }

  /// A text to speak, or to answer.
  /// - Parameters:
  ///   - text: not empty.
  ///   - isVerbatim: it is spoken, and not answered by the platform's dialogue; the session generation alone distinguishes them.
  ///   - isForced: it also interrupts a sentence that is not to be interrupted.
  ///   - more: further members, under the vendor's names.
  public static func text(
    _ text: String, id: String, isVerbatim: Bool, isForced: Bool, _ generation: IVHGeneration,
    more: [JSONValue.Member] = []
  ) -> IVHDrive {
    var drive = IVHDrive(
      .text, id: id,
      [
        "Text": .string(text), "Interrupt": isForced ? true : nil,
        "ChatCommand": isVerbatim && generation == .session ? "NotUseChat" : nil,
      ])
    drive = IVHDrive(drive, adding: more)
    return drive
  }

  /// Interrupts what is spoken. An empty text means that in both generations; `Interrupt` is the force of one, and required by the other.
  public static func interruption(id: String, isForced: Bool, _ generation: IVHGeneration) -> IVHDrive {
    IVHDrive(
      .text, id: id, ["Text": "", "Interrupt": isForced || generation == .session ? true : nil])
  }

  /// A part of a text.
  /// - Parameters:
  ///   - number: from 1.
  ///   - isFinal: the last part.
  ///   - more: `IsSentence`, `IsInsertSentence` and others, under the vendor's names.
  public static func part(
    _ text: String, number: Int, isFinal: Bool, id: String, more: [JSONValue.Member] = []
  ) -> IVHDrive {
    IVHDrive(
      IVHDrive(
        .streamedText, id: id,
        ["Text": .string(text), "Seq": .integer(number), "IsFinal": .bool(isFinal)]),
      adding: more)
  }

  /// Interrupts a text that comes in parts.
  public static func streamInterruption(number: Int, id: String) -> IVHDrive {
    IVHDrive(
      .streamedText, id: id,
      ["Text": "", "Seq": .integer(number), "IsFinal": true, "Interrupt": true])
  }

  /// A packet of voice; an empty one is the last.
  /// - Parameters:
  ///   - bytes: 16-bit mono PCM at 16 kHz.
  ///   - number: from 1.
  public static func audio(_ bytes: [UInt8], number: Int, id: String) -> IVHDrive {
    IVHDrive(
      .audio, id: id,
      [
        "Audio": .string(Base64.encode(bytes)), "Seq": .integer(number), "IsFinal": .bool(bytes.isEmpty),
      ])
  }

  /// Ends an utterance of voice whose rest is not to be spoken; session generation only.
  static func audioInterruption(number: Int, id: String) -> IVHDrive {
    IVHDrive(.audio, id: id, ["Audio": "", "Seq": .integer(number), "IsFinal": true, "Interrupt": true])
  }

  /// A heartbeat.
  public static func heartbeat(id: String) -> IVHDrive { IVHDrive(.heartbeat, id: id, ["Text": "PING"]) }

  private init(_ drive: IVHDrive, adding more: [JSONValue.Member]) {
    command = drive.command
    id = drive.id
    let names = Set(drive.data.map(\.name))
    data = drive.data + more.filter { !names.contains($0.name) }
  }

  /// The members of a payload.
  var members: [JSONValue.Member] {
    [JSONValue.Member("Command", .string(command.rawValue)), JSONValue.Member("Data", .object(data))]
  }

  /// The frame for the command channel.
  func frame(session: String, _ generation: IVHGeneration) -> JSONValue {
    IVHEnvelope.make(
      session: session, generation == .session ? [JSONValue.Member("ReqId", .string(id))] : [], members)
  }
}
