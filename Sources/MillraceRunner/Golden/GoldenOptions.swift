internal import ArgumentParser

/// The options of `run` for golden runs.
struct GoldenOptions: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp(
      "Record the files, events and counts of this run in a directory, for --compare.",
      valueName: "directory"), completion: .directory)
  var recordGolden: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Compare this run with a recorded one; exit status 5 when they differ.", valueName: "directory"),
    completion: .directory)
  var compare: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Tolerate differences in sound down to this signal-to-noise ratio.", valueName: "dB"))
  var minSnr: Double?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Tolerate differences up to this fraction of full scale in each sample (one 16-bit step is 0.00003052).",
      valueName: "fraction"))
  var maxDifference: Double?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Tolerate differences up to this amount in numbers of events and JSON lines.", valueName: "amount"))
  var numberTolerance: Double?

  /// True when the run is recorded or compared.
  var isGolden: Bool { recordGolden != nil || compare != nil }

  var tolerance: GoldenTolerance {
    GoldenTolerance(signalToNoise: minSnr, sample: maxDifference, number: numberTolerance ?? 0)
  }

  func validate() throws {
    if recordGolden != nil && compare != nil {
      throw ValidationError("--record-golden cannot be combined with --compare; record once, then compare")
    }
    // With an empty name, the files would be written to the root directory.
    if recordGolden == "" || compare == "" {
      throw ValidationError(
        "--record-golden and --compare need the name of a directory; use \".\" for the current one")
    }
    let hasTolerance = minSnr != nil || maxDifference != nil || numberTolerance != nil
    if hasTolerance && compare == nil {
      throw ValidationError("--min-snr, --max-difference and --number-tolerance need --compare")
    }
    for value in [maxDifference, numberTolerance] {
      if let value, !(value >= 0 && value.isFinite) {
        throw ValidationError("a tolerance must be a number of at least 0")
      }
    }
    if let minSnr, !minSnr.isFinite { throw ValidationError("--min-snr must be a number of dB") }
  }
}

/// The differences between a run and its golden run that are tolerated, for results that depend on the processor's floating point.
struct GoldenTolerance {
  /// Least ratio of a golden sound to the difference, in dB; nil for no limit.
  var signalToNoise: Double?
  /// Largest difference of a sample, where full scale is 1; nil for no limit.
  var sample: Double?
  /// Largest difference of a number in an event.
  var number: Double = 0

  /// True when sound may differ at all.
  var allowsSound: Bool { signalToNoise != nil || sample != nil }
}
