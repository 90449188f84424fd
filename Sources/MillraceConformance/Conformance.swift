public import MillraceCore
internal import MillraceDialog
public import MillraceJSON

/// Runs a service node against its double, case by case, and checks the invariants that hold for every service node.
///
/// Each case is a graph of its own on the real-time clock. Waits end as soon as their condition holds; a case fails only after
/// `patience`, so that a busy machine makes it slow but not wrong. The runner's command is `millrace test-node`.
public struct Conformance: Sendable {
  /// The double of the node's service.
  public let double: any ServiceDouble.Type
  /// Contains the node's type.
  public let catalogue: Catalogue
  /// Seconds after which a wait fails its case.
  public var patience = 60.0

  /// - Parameters:
  ///   - double: the double of the node's service.
  ///   - catalogue: contains the node's type.
  public init(_ double: any ServiceDouble.Type, catalogue: Catalogue) {
    self.double = double
    self.catalogue = catalogue
  }

  /// Names of all cases, including those that do not apply to this service.
  public static var names: [String] { ConformanceCase.all.map(\.name) }

  /// The case that measures the heap of the whole process, which must do nothing else meanwhile.
  public static let memoryCase = ConformanceCase.memory.name

  /// Runs cases one after the other.
  /// - Parameters:
  ///   - names: the cases to run; nil: all.
  ///   - report: receives each result as soon as it is there.
  public func run(
    _ names: Set<String>? = nil, report: (ConformanceResult) -> Void = { _ in }
  ) async -> [ConformanceResult] {
    var results: [ConformanceResult] = []
    for made in ConformanceCase.all where names?.contains(made.name) ?? true {
      let result = await run(made)
      report(result)
      results.append(result)
    }
    return results
  }

  private func run(_ made: ConformanceCase) async -> ConformanceResult {
    var result = ConformanceResult(name: made.name, expected: made.text)
    if let reason = made.reasonToSkip(double.traits) {
      result.outcome = .leftOut
      result.seen = reason
      return result
    }
    let start = ContinuousClock.now
    do {
      let run = try await CaseRun(double, made.script, catalogue, patience: patience)
      var findings: [String] = []
      do { try await made.play(run) } catch {
        findings.append((error as? CaseFailure)?.text ?? "\(error)")
      }
      var records: [ServiceRecord] = []
      for neighbour in run.neighbours { records.append(await neighbour.close()) }
      records.insert(await run.close(), at: 0)
      var expectation = CaseExpectation(double.traits)
      made.expect(&expectation)
      // The memory case discards its record, and that of a case which did not complete is not checked.
      if made.name != Self.memoryCase && findings.isEmpty {
        findings += records.flatMap { Self.findings($0, expectation) }
      }
      result.seen = records.map(\.description).joined(separator: "; ")
      result.findings = findings
    } catch {
      result.findings = [(error as? CaseFailure)?.text ?? "the double does not start: \(error)"]
    }
    result.outcome = result.findings.isEmpty ? .passed : .failed
    let time = (ContinuousClock.now - start).components
    result.milliseconds = Double(time.seconds) * 1_000 + Double(time.attoseconds) / 1e15
    return result
  }

  /// The violations in a record, each as `invariant: text`.
  public static func findings(_ record: ServiceRecord, _ expected: CaseExpectation) -> [String] {
    Invariant.all.flatMap { invariant in
      invariant.findings(record, expected).map { "\(invariant.name): \($0)" }
    }
  }
}

/// The result of a case.
public struct ConformanceResult: Sendable, Hashable {
  /// The outcome of a case.
  public enum Outcome: String, Sendable, Hashable, CaseIterable {
    /// No violations were found, or some were: see `findings`.
    case passed, failed
    /// The case does not apply to the service; `seen` says why.
    case leftOut
  }

  /// The case, such as `drop at midway`.
  public var name: String
  /// What was expected.
  public var expected: String
  /// The sequence of states and other events.
  public var seen = ""
  /// The duration.
  public var milliseconds = 0.0
  /// The outcome.
  public var outcome = Outcome.leftOut
  /// The violations.
  public var findings: [String] = []

  /// Creates a result of a case that has not run.
  public init(name: String, expected: String) {
    self.name = name
    self.expected = expected
  }

  /// The result as a JSON object.
  public var json: JSONValue {
    [
      "case": .string(name), "expected": .string(expected), "seen": .string(seen),
      "ms": .double((milliseconds * 10).rounded() / 10), "outcome": .string(outcome.rawValue),
      "findings": .array(findings.map { .string($0) }),
    ]
  }
}
