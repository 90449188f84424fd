internal import Glibc
internal import Millrace
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import MillraceJSON
internal import MillraceNet
internal import Synchronization

/// Converts any picture that libavformat reads into a JPEG of limited size, with the nodes that a graph would use, on a separate thread.
final class TalkPicture: Sendable {
  /// Why the picture could not be converted.
  struct Failure: Error, Equatable {
    var text: String
  }

  /// Time limit: a picture of 64 million pixels takes a second or two.
  private static let patience: Nanoseconds = .milliseconds(30_000)
  /// A file that has a second picture within this time is a video.
  private static let videoProbe: Nanoseconds = .milliseconds(400)

  /// The question to send with the picture.
  let question: String
  private let result = Mutex<Result<String, Failure>?>(nil)
  /// The temporary directory of the conversion.
  private let workFolder = Mutex<String?>(nil)

  /// The JPEG in Base64, or the failure; nil while the conversion is running.
  var outcome: Result<String, Failure>? { result.withLock { $0 } }

  /// Starts the conversion.
  /// - Parameter budget: longest Base64 text in characters.
  init(of path: String, question: String, budget: Int) {
    self.question = question
    let code = DetachedThread.start("millrace-image") { [self] in
      let converted: Result<String, Failure>
      do throws(Failure) {
        converted = .success(
          try Self.convert(path, budget) { folder in workFolder.withLock { $0 = folder } })
      } catch {
        converted = .failure(error)
      }
      result.withLock { $0 = converted }
    }
    if code != 0 {
      let text = "cannot start a thread for the picture: \(SystemError.text(code)); close some other programs"
      result.withLock { $0 = .failure(Failure(text: text)) }
    }
  }

  /// Removes the files of a conversion that is still running.
  func cleanUp() { workFolder.withLock { if let folder = $0 { Self.remove(folder) } } }

  private static func remove(_ folder: String) {
    _ = unsafe unlink(target(in: folder))
    _ = unsafe rmdir(folder)
  }

  private static func target(in folder: String) -> String { folder + "/picture.jpg" }

  /// - Parameter usesFolder: receives the path of the temporary directory, which is removed at the end.
  static func convert(_ path: String, _ budget: Int, usesFolder: (String) -> Void = { _ in })
    throws(Failure) -> String
  {
    let path = path.hasPrefix("~/") ? (Environment.value("HOME") ?? "~") + path.dropFirst() : path
    let name = Problem.quoted(path)
    switch FileKind(path: path) {
    case .regular: break
    case .missing: throw Failure(text: "there is no file \(name); check the path")
    case .folder: throw Failure(text: "\(name) is a directory; name a picture")
    case .pipe: throw Failure(text: "\(name) is a pipe, which may never end; name a regular file")
    case .other: throw Failure(text: "\(name) is a device or a socket; name a regular file")
    }
    var template = Array("\(Environment.value("TMPDIR") ?? "/tmp")/millrace-image-XXXXXX".utf8CString)
    let folder = unsafe template.withUnsafeMutableBufferPointer { pointer -> String? in
      unsafe mkdtemp(pointer.baseAddress!).map { unsafe String(cString: $0) }
    }
    guard let folder else {
      throw Failure(
        text:
          "cannot create a temporary directory: \(SystemError.text(errno)); free some space, or set TMPDIR")
    }
    usesFolder(folder)
    let target = target(in: folder)
    defer { remove(folder) }
    try run(path, target, budget)
    do {
      return Base64.encode(try SourceFile.read(path: target).bytes)
    } catch {
      throw Failure(text: "\(name) contains no picture; name a picture, such as a JPEG or PNG")
    }
  }

  /// The failure for a node's error text, which may already name the file.
  private static func failure(_ name: String, _ text: String) -> Failure {
    let what = text.hasPrefix(name) ? text : "cannot convert \(name): \(text)"
    return Failure(text: "\(what); name a picture, such as a JPEG or PNG")
  }

  /// Runs the graph, on the virtual clock so that a video does not take real time.
  private static func run(_ path: String, _ target: String, _ budget: Int) throws(Failure) {
    let name = Problem.quoted(path)
    var graph = GraphDescription("picture")
    graph.add("file", "video.read", ["path": .string(path), "pace": true])
    graph.add("eye", "video.sample", ["maxBytes": .integer(budget), "count": "base64"])
    graph.add("out", "image.write", ["path": .string(target)])
    graph.link("file -> eye -> out")
    let run: GraphRun
    do {
      let plan = try Graph.load(graph, settings: GraphSettings(clock: .virtual), catalogue: .standard)
      run = try Engine(catalogue: .standard, clock: .virtual, workers: 1).prepare(plan)
    } catch let problem as StartProblem {
      throw failure(name, problem.text)
    } catch let problems as Problems {
      throw failure(name, problems.sorted.first?.text ?? "it is not a picture")
    } catch {
      throw failure(name, "\(error)")
    }
    run.drain(at: .nanoseconds(videoProbe))
    run.start()
    guard let report = run.waitUntilStopped(timeout: .nanoseconds(patience)) else {
      run.stop()
      throw Failure(text: "reading \(name) took too long; use a smaller picture")
    }
    if let problem = report.failure { throw failure(name, problem.text) }
    let pictures = report.nodes.first { $0.name == "file" }?.packetsOut ?? 0
    guard pictures <= 1 else {
      throw Failure(
        text: "\(name) is a video; name a picture, or run a graph that sends video (bailian-live-video.json)")
    }
  }
}
