internal import MillraceBailianDouble
internal import MillraceCore
internal import MillraceGraph
internal import MillraceNet

/// Reads scenario files for commands that run a double.
enum DoubleScenario {
  /// Reads a scenario. When it is invalid, prints the problems and throws an exit status.
  static func read(_ path: String?, otherwise: BailianScenario) throws -> BailianScenario {
    guard let path else { return otherwise }
    let source: SourceFile
    do { source = try SourceFile.read(path: path) } catch {
      Output.error.write("error: \(error)\n")
      throw ExitStatus.usage
    }
    do throws(ScenarioProblem) {
      return try BailianScenario(parsing: String(decoding: source.bytes, as: UTF8.self), name: path)
    } catch {
      Output.error.write("\(error)\n")
      throw ExitStatus.usage
    }
  }
}

extension BailianScenario {
  /// A few replies for `talk --double` without a scenario.
  static var chat: BailianScenario {
    var scenario = BailianScenario()
    scenario.checksPlayback = true
    scenario.turns = [
      "Hello. I am the double of the service. I hear that you speak, but not what you say.",
      "Speak while I am speaking, and I will stop. Try it now: I will keep talking for a while, so you have time. One, two, three, four, five, six, seven, eight, nine, ten.",
      "That is all I can say. With an account and a key, the real service answers you.",
    ].map { text in
      var turn = Turn()
      turn.hears = "(something)"
      turn.says = text
      return turn
    }
    return scenario
  }
}

extension BailianDouble {
  /// The URL for clients.
  var address: String { "ws://127.0.0.1:\(port)/api-ws/v1/inference" }

  /// Starts listening. On failure, prints the reason and throws an exit status.
  static func start(
    _ scenario: BailianScenario, port: Int, watch: @escaping @Sendable (String) -> Void
  ) throws -> BailianDouble {
    let made = Promise.runBlocking { () -> Result<BailianDouble, NetError> in
      do throws(NetError) {
        return .success(try await BailianDouble.listen(scenario, port: port, watch: watch))
      } catch {
        return .failure(error)
      }
    }
    do throws(NetError) { return try made.get() } catch {
      let cure = port == 0 ? "" : "; choose another --port, or 0 for any free port"
      Output.error.write("error: \(error)\(cure)\n")
      throw ExitStatus.usage
    }
  }
}
