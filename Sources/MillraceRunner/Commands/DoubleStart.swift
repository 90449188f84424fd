internal import MillraceCore
internal import MillraceDoubles
internal import MillraceGraph
internal import MillraceNet

/// Starts doubles for commands.
enum DoubleStart {
  /// The scenario of `--scenario`. When the file cannot be read, prints the reason and throws an exit status.
  static func scenario(
    _ path: String?, otherwise: DoubleOptions.Scenario
  ) throws -> DoubleOptions.Scenario {
    guard let path else { return otherwise }
    do {
      let source = try SourceFile.read(path: path)
      return .text(String(decoding: source.bytes, as: UTF8.self), name: path)
    } catch {
      Output.error.write("error: \(error)\n")
      throw ExitStatus.usage
    }
  }

  /// Starts a double. On failure, prints the reason and throws an exit status.
  static func start(
    _ program: any ServiceProgram.Type, _ options: DoubleOptions
  ) throws -> any RunningDouble {
    let made = Promise.runBlocking { () -> Result<any RunningDouble, DoubleProblem> in
      do throws(DoubleProblem) {
        return .success(try await program.start(options))
      } catch {
        return .failure(error)
      }
    }
    do throws(DoubleProblem) { return try made.get() } catch {
      switch error {
      case .scenario(let problem): Output.error.write("\(problem)\n")
      case .listening(let reason):
        // A certificate is not better on another port.
        let cure =
          options.port == 0 || reason.kind == .tls ? "" : "; choose another --port, or 0 for any free port"
        Output.error.write("error: \(reason)\(cure)\n")
      case .other(let text): Output.error.write("error: \(text)\n")
      }
      throw ExitStatus.usage
    }
  }
}
