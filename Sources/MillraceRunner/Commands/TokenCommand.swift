#if RTC
  internal import ArgumentParser
  internal import MillraceCrypto
  internal import MillraceGraph
  internal import MillraceNet
  internal import MillraceRoom
  internal import MillraceRoomWire

  /// `token`: makes what lets users in, one subcommand for each kind of server. Keys are in the environment only.
  struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "token", abstract: "Prints a token that lets a user in.",
      subcommands: [RoomTokenCommand.self])
  }

  /// `token room`: for a hub of rooms that has a key.
  struct RoomTokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "room", abstract: "Prints a token for a hub of rooms, signed with the hub's key.",
      discussion: """
        The key is that of the hub, in the environment variable \(RoomKey.variable). The token is a secret: it lets in anybody who \
        shows it. Without --rights it allows to publish sound, pictures and data.
        """)

    @Option(name: .long, help: "Whose token it is: letters, digits, - and _.")
    var user: String

    @Option(name: .long, help: "The only room that it opens. Default: every room.")
    var room: String?

    @Option(name: .long, help: "The highest role: host or viewer. Default: host.")
    var role: String?

    @Option(
      name: .long,
      help: ArgumentHelp(
        "What it allows, separated by commas: publish, kick, close. Default: publish.", valueName: "list"))
    var rights: String?

    @Option(
      name: .long,
      help: ArgumentHelp("How long it is valid, such as 3600, 90min or 12h.", valueName: "seconds"))
    var valid = Validity(seconds: 3_600)

    @Flag(name: .long, help: "It lets in once.")
    var once = false

    func run() throws {
      do throws(Wrong) {
        let made = try token()
        let text = made.signed(with: try key())
        Output.standard.write(text + "\n")
      } catch {
        Output.error.write("error: \(error.text)\n")
        throw ExitStatus.usage
      }
    }

    // MARK: The token

    /// What is wrong with the arguments, and the cure.
    private struct Wrong: Error { let text: String }

    private func key() throws(Wrong) -> SecretKey {
      do throws(RoomKey.Problem) { return try RoomKey.require() } catch {
        throw Wrong(text: error.description)
      }
    }

    private func token() throws(Wrong) -> RoomToken {
      guard let seconds = valid.seconds else {
        throw Wrong(
          text: """
            --valid \(Problem.quoted(valid.text)) is no time of a second or more; write seconds, such as 3600, or up to \
            \(TimeSpan.limit) with a unit, such as 90min or 12h
            """)
      }
      let end = UnixTime.seconds + seconds
      guard end <= RoomToken.lastExpiry else {
        throw Wrong(text: "--valid ends after the year 9999; choose a shorter time")
      }
      let holder = try name(user, of: "--user")
      var token = RoomToken(holder, expiry: end)
      if let room { token.room = try name(room, of: "--room") }
      if let role {
        let highest: RoomRole = try word(role, of: "--role")
        token.role = highest
      }
      if let rights { token.rights = try list(rights) }
      if token.role == .viewer, token.rights?.contains(.publish) == true {
        throw Wrong(text: "a viewer never publishes; remove publish from --rights, or set --role host")
      }
      if once { token.once = Self.random() }
      return token
    }

    private func name(_ text: String, of option: String) throws(Wrong) -> RoomName {
      guard let name = RoomName(text) else {
        throw Wrong(
          text:
            "\(option) \(Problem.quoted(text)) is not a name; use 1 to \(RoomLimits.nameCharacters) letters from A to Z, digits, - and _"
        )
      }
      return name
    }

    private func list(_ text: String) throws(Wrong) -> Set<RoomRight> {
      var rights: Set<RoomRight> = []
      for part in text.split(separator: ",", omittingEmptySubsequences: false) {
        let right: RoomRight = try word(String(part), of: "--rights")
        rights.insert(right)
      }
      return rights
    }

    private func word<Word: RawRepresentable & CaseIterable>(
      _ text: String, of option: String
    ) throws(Wrong) -> Word where Word.RawValue == String {
      if let word = Word(rawValue: text) { return word }
      let words = Word.allCases.map(\.rawValue)
      let cure =
        Spelling.nearest(to: text, among: words).map { "did you mean \"\($0)\"?" }
        ?? "choose \(words.joined(separator: ", "))"
      throw Wrong(text: "\(option) \(Problem.quoted(text)) does not exist; \(cure)")
    }

    /// 128 random bits, of the system's generator: no two tokens have the same.
    private static func random() -> String {
      var generator = SystemRandomNumberGenerator()
      let parts = (0..<2).map { _ in
        String(UInt64.random(in: UInt64.min...UInt64.max, using: &generator), radix: 36)
      }
      return parts.joined(separator: "-")
    }
  }

  /// The argument of `--valid`: seconds, or a duration with a unit.
  struct Validity: ExpressibleByArgument {
    let text: String
    /// Nil when the text is no such time.
    let seconds: Int?

    init(seconds: Int) {
      text = "\(seconds)"
      self.seconds = seconds
    }

    init(argument: String) {
      text = argument
      seconds = Self.seconds(argument)
    }

    private static func seconds(_ text: String) -> Int? {
      if let seconds = Int(text) { return (1...RoomToken.lastExpiry).contains(seconds) ? seconds : nil }
      guard let time = TimeSpan(argument: text), time.nanoseconds >= 1_000_000_000 else { return nil }
      return Int(time.nanoseconds / 1_000_000_000)
    }

    var defaultValueDescription: String { text }
  }
#endif
