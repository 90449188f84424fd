internal import Glibc
public import MillraceCore
internal import MillraceFiles

/// `image.write`: writes pictures to files.
///
/// - Input `in`: JPEG or PNG, one per packet, written unchanged.
/// - A path that contains `{number}` makes a file of every picture, numbered from 1 with six digits. A path that ends in `.mjpeg` collects all
///   pictures in one file; it may be a pipe, whose slow reader applies back-pressure to the graph. Any other path always holds the latest
///   picture.
/// - A picture is written to a temporary file (suffix `.part`), synced to disk, and renamed into place: no reader ever sees half a picture, and
///   a crash leaves either the previous picture or this one. Links are replaced, not followed (`AtomicFile`).
/// - The node claims the path when it starts; with `{number}`, with the first picture. Another node that writes there is refused, and so is
///   a node that reads an existing file there before the first picture is written. Any node may read this node's pictures.
/// - A disk error fails the node; earlier pictures are complete. Bulk lane; allocates.
@safe
public struct ImageWrite: ~Copyable, Node {
  public static let contract = NodeContract(
    "image.write", "writes pictures to files: one file each, all in one file, or always the latest",
    inputs: [PortContract("in", .kind(.jpeg).or(.kind(.png)), text: "pictures to write")],
    parameters: [
      ParameterContract(
        "path", .path, required: true,
        text:
          "output path; `{number}` is replaced by 000001, 000002 and so on; `.mjpeg` collects all pictures in one file"
      )
    ],
    events: [
      EventContract("written", text: "at the end: total `pictures` and `bytes`")
    ],
    lane: .bulk, budget: 50_000,
    examples: [
      #"{ "type": "image.write", "path": "pictures/{number}.jpg" }"#,
      #"{ "type": "image.write", "path": "latest.jpg" }"#,
    ])

  private enum Event { static let written = 0 }
  /// Placeholder for the number of a picture.
  private static let mark = "{number}"
  private static let digits = 6

  private let path: String
  private let collects: Bool
  /// The file that collects all pictures; nil if there is none.
  private let collection: OpenedFile?
  /// The next picture's file, if it was created already.
  private var next: AtomicFile?
  /// Holds the claim on the path: the last picture, or the first of many.
  private var held: AtomicFile?
  private var count = 0
  private var byteCount = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let path = setup.parameters.string("path")
    let collects = path.hasSuffix(".mjpeg")
    guard !collects || setup.inputFormat() == .jpeg else {
      throw NodeProblem(
        "\"\(path)\" collects JPEG pictures only, not \(setup.inputFormat())", parameter: "path",
        cure: "use {number} in the name")
    }
    let first = Self.name(path, 1)
    try FileCheck.writing(first)
    guard collects || FileCheck.isPlain(first) else {
      throw NodeProblem(
        "\"\(first)\" is a pipe or a device, which a picture would replace", parameter: "path",
        cure: "name a regular file, or link a name that ends in .mjpeg to it")
    }
    let collection = collects ? try Self.open(path) : nil
    next = nil
    do throws(AtomicFile.Refusal) {
      // A single file is claimed before the first picture; numbered files are claimed one by one.
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

  deinit { if let collection { FileLock.close(collection.descriptor) } }

  /// Opens the collecting file. A link may lead only to a pipe or a device, where no content can be lost.
  private static func open(_ path: String) throws(NodeProblem) -> OpenedFile {
    var status = stat()
    let isLink = unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    guard !isLink || !FileCheck.isPlain(path) else {
      throw NodeProblem(
        "\"\(path)\" is a link to a file", parameter: "path",
        cure: "name the file itself, or link to a pipe or a device")
    }
    let file = try OpenedFile(path, for: .writing, followsLinks: isLink)
    // O_NONBLOCK was for opening only.
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
    case .inTheWay: NodeFault(.custom, code: Self.isBlocked, detail: Int64(count))
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

  /// Fault codes: another node or program uses the file; something else occupies the temporary path.
  private static let (isTaken, isBlocked): (Int32, Int32) = (-1, -2)

  private static func problem(_ refusal: AtomicFile.Refusal, _ path: String) -> NodeProblem {
    switch refusal {
    case .system(let code): FileMessages.problem(code, path, for: .writing)
    case .taken:
      NodeProblem(
        "\"\(path)\" is being read or written by another node or program", parameter: "path",
        cure: "write to another file")
    case .inTheWay:
      NodeProblem(
        "\"\(path)\(AtomicFile.temporarySuffix)\", the temporary path of the picture, is not a regular file",
        parameter: "path",
        cure: "remove it, or name another file")
    }
  }

  /// Writes all bytes; returns 0 or an `errno`.
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
      fault.code, "\"\(target)\"", kept: "the first \(fault.detail) pictures are complete")
  }
}

extension String {
  /// The text with a range replaced.
  fileprivate func replacingCharacters(_ part: Range<String.Index>, with text: String) -> String {
    String(self[..<part.lowerBound]) + text + String(self[part.upperBound...])
  }
}
