internal import Glibc
public import MillraceCore
internal import MillraceFiles

/// `image.write`: keeps pictures in files.
///
/// - In `in`: JPEG or PNG, one a packet; nothing of it is changed.
/// - A path with `{number}` in it makes a file of every picture, counted from 1 with six digits. A path that ends in `.mjpeg` gets
///   one picture after the other; it may be a pipe, whose reader holds the graph's pictures up when it is slow. Any other path always
///   shows the last picture.
/// - A picture is written beside its place (`.part` behind its name), brought onto the disk, and put there in one step: nobody
///   ever reads half of one, and a crash leaves the picture before or this one. Links are replaced, not followed (`AtomicFile`).
/// - The path is the node's own from the start on, with `{number}` from the first picture on: another node that writes there is refused,
///   or this one. So is a node that reads what lies there before the first picture has come. Pictures of this node anybody may read.
/// - A disk that refuses is a fault; what was written before is whole. Bulk lane; takes heap.
@safe
public struct ImageWrite: ~Copyable, Node {
  public static let contract = NodeContract(
    "image.write", "keeps pictures in files: one each, one after the other, or always the last",
    inputs: [PortContract("in", .kind(.jpeg).or(.kind(.png)), text: "the pictures")],
    parameters: [
      ParameterContract(
        "path", .path, required: true,
        text: "where to; `{number}` stands for 000001, 000002 and so on; `.mjpeg` collects them in one file")
    ],
    events: [
      EventContract("written", text: "at the end: `pictures` and `bytes` in all")
    ],
    lane: .bulk, budget: 50_000,
    examples: [
      #"{ "type": "image.write", "path": "pictures/{number}.jpg" }"#,
      #"{ "type": "image.write", "path": "latest.jpg" }"#,
    ])

  private enum Event { static let written = 0 }
  /// What stands for the number of a picture.
  private static let mark = "{number}"
  private static let digits = 6

  private let path: String
  private let collects: Bool
  /// The one file that collects pictures; nil: there is none.
  private let collection: OpenedFile?
  /// The next picture's file, where it is made already.
  private var next: AtomicFile?
  /// What keeps others from the path: the last picture, or the first of many.
  private var held: AtomicFile?
  private var count = 0
  private var byteCount = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let path = setup.parameters.string("path")
    let collects = path.hasSuffix(".mjpeg")
    guard !collects || setup.inputFormat() == .jpeg else {
      throw NodeProblem(
        "\"\(path)\" collects JPEG pictures, not \(setup.inputFormat())", parameter: "path",
        cure: "put {number} into the name")
    }
    let first = Self.name(path, 1)
    try FileCheck.writing(first)
    guard collects || FileCheck.isPlain(first) else {
      throw NodeProblem(
        "\"\(first)\" is a pipe or a device, whose place a picture would take", parameter: "path",
        cure: "name a file, or let a name that ends in .mjpeg lead there")
    }
    let collection = collects ? try Self.open(path) : nil
    next = nil
    do throws(AtomicFile.Refusal) {
      // One file is claimed before the first picture comes; of many, each with its picture.
      if first == path && !collects { next = try AtomicFile(first) }
      if first != path && !collects { try AtomicFile.check(first) }
    } catch {
      throw Self.problem(error, first)
    }
    held = nil
    self.path = path
    self.collects = collects
    self.collection = collection
  }

  deinit { if let collection { _ = close(collection.descriptor) } }

  /// Opens the file that collects. A link may lead to a pipe or a device, which nobody can lose anything by.
  private static func open(_ path: String) throws(NodeProblem) -> OpenedFile {
    var status = stat()
    let isLink = unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    guard !isLink || !FileCheck.isPlain(path) else {
      throw NodeProblem(
        "\"\(path)\" is a link to a file", parameter: "path",
        cure: "name the file itself, or let the link lead to a pipe or a device")
    }
    let file = try OpenedFile(path, for: .writing, followsLinks: isLink)
    // Not to wait was for the opening only.
    _ = fcntl(file.descriptor, F_SETFL, fcntl(file.descriptor, F_GETFL) & ~O_NONBLOCK)
    return file
  }

  /// The path of the picture with a number.
  static func name(_ path: String, _ number: Int) -> String {
    guard let place = path.firstRange(of: mark) else { return path }
    let text = String(number)
    let zeros = String(repeating: "0", count: max(0, digits - text.count))
    return path.replacingCharacters(place, with: zeros + text)
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    let bytes = packet.samples(of: UInt8.self)
    let size = bytes.count
    if let collection {
      try check(unsafe bytes.withUnsafeBytes { bytes in unsafe append(bytes, to: collection) })
    } else {
      var file = try nextFile()
      do throws(AtomicFile.Refusal) {
        try unsafe bytes.withUnsafeBytes { bytes throws(AtomicFile.Refusal) in try unsafe file.commit(bytes)
        }
      } catch {
        throw fault(error)
      }
      if held == nil || path.firstRange(of: Self.mark) == nil { held = consume file }
    }
    count += 1
    byteCount += size
    return .done
  }

  /// The file of the next picture.
  private mutating func nextFile() throws(NodeFault) -> AtomicFile {
    if let file = next.take() { return file }
    do throws(AtomicFile.Refusal) {
      return try AtomicFile(Self.name(path, count + 1), over: held?.identity)
    } catch {
      throw fault(error)
    }
  }

  private func fault(_ refusal: AtomicFile.Refusal) -> NodeFault {
    switch refusal {
    case .system(let code): NodeFault(.system, code: code, detail: Int64(count))
    case .taken: NodeFault(.custom, code: Self.isTaken, detail: Int64(count))
    case .inTheWay: NodeFault(.custom, code: Self.isInTheWay, detail: Int64(count))
    }
  }

  private func check(_ code: Int32) throws(NodeFault) {
    if code != 0 { throw NodeFault(.system, code: code, detail: Int64(count)) }
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try check(held?.syncFolder() ?? 0)
    let (count, byteCount) = (count, byteCount)
    ports.post(Event.written) { event in
      event.field("pictures", count)
      event.field("bytes", byteCount)
    }
    return .ended
  }

  private func append(_ bytes: UnsafeRawBufferPointer, to file: OpenedFile) -> Int32 {
    if count == 0 && file.kind == .file {
      let code = OpenedFile.truncate(file.descriptor)
      if code != 0 { return code }
    }
    guard file.kind == .pipe else { return unsafe Self.write(bytes, to: file.descriptor) }
    return PipeSignal.withBlocked { unsafe Self.write(bytes, to: file.descriptor) }
  }

  /// Codes of the faults when somebody else writes the file, and when something lies where it would be written.
  private static let (isTaken, isInTheWay): (Int32, Int32) = (-1, -2)

  private static func problem(_ refusal: AtomicFile.Refusal, _ path: String) -> NodeProblem {
    switch refusal {
    case .system(let code): FileMessages.problem(code, path, for: .writing)
    case .taken:
      NodeProblem(
        "\"\(path)\" is being read or written by another node or program", parameter: "path",
        cure: "write to another file")
    case .inTheWay:
      NodeProblem(
        "\"\(path)\(AtomicFile.temporarySuffix)\", where the picture is written before it takes its place, is no file",
        parameter: "path",
        cure: "remove it, or name another file")
    }
  }

  /// Writes all bytes; answers 0 or an `errno`.
  private static func write(_ bytes: UnsafeRawBufferPointer, to file: Int32) -> Int32 {
    var done = 0
    while done < bytes.count {
      let given = unsafe Glibc.write(file, bytes.baseAddress.map { unsafe $0 + done }, bytes.count - done)
      if given < 0 && errno != EINTR { return errno }
      done += max(0, given)
    }
    return 0
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    let target = Self.name(path, Int(fault.detail) + 1)
    if fault.reason == .custom {
      return "\(Self.problem(fault.code == Self.isTaken ? .taken : .inTheWay, target))"
    }
    guard fault.reason == .system else { return nil }
    return FileMessages.writeFailure(
      fault.code, "\"\(target)\"", kept: "\(fault.detail) pictures before it are whole")
  }
}

extension String {
  /// The text with a part of it replaced.
  fileprivate func replacingCharacters(_ part: Range<String.Index>, with text: String) -> String {
    String(self[..<part.lowerBound]) + text + String(self[part.upperBound...])
  }
}
