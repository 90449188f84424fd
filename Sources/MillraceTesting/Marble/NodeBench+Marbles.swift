public import MillraceCore

/// The mapping between the letters of a marble diagram and packets.
public struct MarbleAlphabet {
  /// The packet a letter stands for. Its timestamp is set to the letter's tick.
  public var packet: (Character) -> CapturedPacket
  /// The letter for an emitted packet.
  public var letter: (CapturedPacket) -> Character

  /// Creates an alphabet from its two mappings.
  public init(
    packet: @escaping (Character) -> CapturedPacket, letter: @escaping (CapturedPacket) -> Character
  ) {
    self.packet = packet
    self.letter = letter
  }

  /// Each packet is a text of one letter.
  public static var text: MarbleAlphabet {
    MarbleAlphabet(
      packet: { CapturedPacket(bytes: Array(String($0).utf8)) }, letter: { $0.text.first ?? "?" })
  }

  /// PCM (s16): a letter stands for a packet of `frames` samples, each 100 times its ASCII code.
  public static func int16(frames: Int) -> MarbleAlphabet {
    MarbleAlphabet(
      packet: { letter in
        let value = Int16(letter.asciiValue ?? 0) * 100
        return CapturedPacket(
          bytes: CapturedPacket.bytes(of: [Int16](repeating: value, count: frames)), duration: frames)
      },
      letter: { packet in
        guard let value = packet.int16.first, value % 100 == 0, let code = UInt8(exactly: value / 100) else {
          return "?"
        }
        return Character(Unicode.Scalar(code))
      })
  }
}

extension NodeBench {
  /// Feeds marble lines to the node and draws its output, one character per tick of the virtual clock:
  ///
  /// ```text
  /// in:   a-b-(cd)-|      a letter is a packet, - nothing, ( ) several in one tick, | the end, ! an interruption
  /// out:  a-b-(cd)-|      # a fault
  /// ```
  ///
  /// At each tick the clock advances, the letters are pushed, and the node runs. After the last input has ended, the node finishes. The
  /// drawing is as long as the longest input line plus `tail` ticks; it stops at `|` or `#`.
  /// - Parameters:
  ///   - lines: the input line of each port.
  ///   - output: the port to draw.
  ///   - tick: nanoseconds between two characters.
  ///   - tail: ticks to continue after the last character.
  ///   - alphabet: the meaning of the letters.
  public func marbles(
    _ lines: [String: String], output: String = "out", tick: Nanoseconds = .milliseconds(20), tail: Int = 0,
    alphabet: MarbleAlphabet = .text
  ) -> String {
    let names = lines.keys.sorted()
    let ticks = names.map { Self.ticks(of: lines[$0]!) }
    var drawing = ""
    var positions = [Int64](repeating: 0, count: names.count)
    let origin = now
    for time in 0..<(ticks.map(\.count).max() ?? 0) + tail {
      do throws(BenchFault) {
        try advance(to: origin + Nanoseconds(time) * tick)
        for (line, name) in names.enumerated() where time < ticks[line].count {
          for letter in ticks[line][time] {
            switch letter {
            case "|": end(name)
            case "!": interrupt()
            default:
              var packet = alphabet.packet(letter)
              packet.timestamp = now
              packet.position = positions[line]
              positions[line] += Int64(packet.duration)
              push(packet, to: name)
            }
          }
        }
        try run()
        if feeds.allSatisfy({ $0.shape == nil || $0.isToEnd }), contract.drive != .itself { try finish() }
      } catch {
        // `hasEnded` and `fault` report it; the packets before it are drawn.
      }
      var drawn = packets(output).map(alphabet.letter)
      if fault != nil { drawn.append("#") } else if hasEnded { drawn.append("|") }
      drawing += drawn.isEmpty ? "-" : drawn.count == 1 ? String(drawn) : "(\(String(drawn)))"
      if hasEnded { break }
    }
    return drawing
  }

  /// Plays one input and draws one output.
  public func marbles(
    _ line: String, tick: Nanoseconds = .milliseconds(20), tail: Int = 0, alphabet: MarbleAlphabet = .text
  ) -> String {
    let name = inputNames[input(nil)]
    return marbles([name: line], tick: tick, tail: tail, alphabet: alphabet)
  }

  /// The letters of each tick.
  private static func ticks(of line: String) -> [[Character]] {
    var ticks: [[Character]] = []
    var group: [Character]?
    for character in line {
      switch character {
      case " ": continue
      case "(": group = []
      case ")":
        ticks.append(group ?? [])
        group = nil
      default:
        if group != nil {
          group!.append(character)
        } else {
          ticks.append(character == "-" ? [] : [character])
        }
      }
    }
    precondition(group == nil, "a marble line opens a group without closing it")
    return ticks
  }
}
