import MillraceConformance
import MillraceDialog
import MillraceJSON
import MillraceDoubles

/// A service of a program's own, whose double never starts.
enum ParrotProgram: ServiceProgram {
  static let name = "parrot"
  static let summary = "repeats what it hears"
  static let nodeTypes = ["test.parrot", "test.ara"]
  static var conformance: [any ServiceDouble.Type] { [ParrotDouble.self] }

  static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble {
    throw .other("there is no parrot at \(options.port) today")
  }
}

/// Never started.
private final class ParrotDouble: ServiceDouble {
  static let traits = ServiceTraits(nodeType: "test.parrot", vendor: "parrot", key: "sk-parrot")
  static func start(_ script: ServiceScript) async throws -> ParrotDouble { ParrotDouble() }
  var parameters: [JSONValue.Member] { [] }
  var seen: ServiceReport { ServiceReport() }
  func stop() {}
}
