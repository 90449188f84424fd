internal import ArgumentParser
internal import Glibc
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// The options of `run` that control it from outside.
struct ControlOptions: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp(
      "Read commands from a named pipe or file, one JSON object per line; - for standard input.",
      valueName: "file"), completion: .file())
  var control: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Write the answers to a file or named pipe; - for standard output. Default: standard error.",
      valueName: "file"), completion: .file())
  var controlAnswers: String?

  func validate() throws {
    if controlAnswers != nil && control == nil {
      throw ValidationError("--control-answers needs --control")
    }
  }
}

/// Controls runs by lines of JSON: reads commands, executes them and answers each.
///
/// A regular file, and on a virtual clock also standard input, is read to its end before anything starts, so that the same commands give
/// the same run. Any other input is read by a separate thread while the graphs run.
final class Control {
  private var input: ControlInput?
  /// The file after it has been read. Kept locked, so that the run cannot overwrite its commands.
  private var finishedInput: ControlInput?
  private let answers: ControlAnswers
  private let wake = WakeSignal()
  private var dispatcher: ControlDispatcher?

  /// Milliseconds between two checks for signals while commands are read before the start.
  private static let tick: Int32 = 50

  /// Opens the input and the output, without waiting for the programs at their other ends.
  init(_ options: ControlOptions) throws {
    let input = try ControlInput(options.control ?? "-")
    answers = try ControlAnswers(options.controlAnswers)
    try answers.rejectSamePipe(as: input)
    self.input = consume input
  }

  /// True when answers go to standard error, among the runner's own messages.
  var answersOnError: Bool { answers.isStandardError }

  /// Rejects an input that is read while the graphs run: golden runs need all commands before the start.
  func rejectLiveInput() throws {
    guard input?.isFile == false && input?.isStandardInput == false else { return }
    Output.error.write(
      "error: golden runs read commands before they start; name a regular file, or - for standard input\n")
    throw ExitStatus.usage
  }

  /// Reads the commands that must be known before the start.
  /// - Parameter targets: all runs.
  /// - Throws: `ExitStatus.interrupted` when the process receives a termination signal meanwhile.
  func prepare(_ targets: [PendingCommand.Target], clock: Clock.Kind) throws {
    answers.begin()
    let dispatcher = ControlDispatcher(targets, answers: answers)
    self.dispatcher = dispatcher
    guard var input = input.take() else { return }
    guard input.isFile || (input.isStandardInput && clock == .virtual) else {
      self.input = consume input
      return
    }
    var lines = LineSplitter()
    while !Signals.isDrainRequested {
      guard Self.dispatch(input.next(timeout: Self.tick), &lines, to: dispatcher) else {
        finishedInput = consume input
        return
      }
    }
    throw ExitStatus.interrupted
  }

  /// Called when the runs have started: reads further commands on a separate thread.
  func start() {
    guard let dispatcher else { return }
    dispatcher.start()
    guard let input = input.take() else { return }
    let (box, wake) = (InputBox(input), wake)
    let code = DetachedThread.start("millrace-ctl") {
      guard var input = box.take() else { return }
      var lines = LineSplitter()
      while Self.dispatch(input.next(timeout: -1, wake: wake.descriptor), &lines, to: dispatcher) {}
    }
    if code != 0 {
      Output.error.write(
        "error: cannot read control commands: \(SystemError.text(code)); close some other programs\n")
    }
  }

  /// Called when the runs have ended: rejects commands whose time has not come, and completes the files of taps. Returns messages about
  /// what went wrong.
  func finish() -> [String] {
    wake.send()
    dispatcher?.close()
    return answers.losses.messages + (dispatcher?.finishRecordings() ?? [])
  }

  /// Returns false at the end of the input.
  private static func dispatch(
    _ piece: ControlInput.Piece, _ lines: inout LineSplitter, to dispatcher: ControlDispatcher
  ) -> Bool {
    switch piece {
    case .bytes(let bytes): for line in lines.add(bytes) { dispatcher.handle(line) }
    case .timeout: break
    case .writerClosed, .end: if let line = lines.end() { dispatcher.handle(line) }
    }
    if case .end = piece { return false }
    return true
  }
}

/// Wakes another thread that waits in `poll`: a socket pair, to which a byte is written.
private final class WakeSignal: Sendable {
  /// Becomes readable when the signal is sent.
  let descriptor: Int32
  private let far: Int32

  init() {
    var ends: [Int32] = [-1, -1]
    let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    _ = unsafe socketpair(AF_UNIX, Int32(kind), 0, &ends)
    (descriptor, far) = (ends[0], ends[1])
  }

  deinit {
    close(descriptor)
    close(far)
  }

  func send() {
    var byte: UInt8 = 1
    _ = unsafe write(far, &byte, 1)
  }
}

/// Moves a noncopyable input to its thread.
private final class InputBox: @unchecked Sendable {
  private var input: ControlInput?
  init(_ input: consuming ControlInput) { self.input = consume input }
  func take() -> ControlInput? { input.take() }
}
