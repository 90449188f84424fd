internal import Glibc
public import MillraceCore
internal import MillraceFiles

/// `image.write`: keeps pictures in files.
///
/// - In `in`: JPEG or PNG, one a packet; nothing of it is changed.
/// - A path with `{number}` in it makes a file of every picture, counted from 1 with six digits. A path that ends in `.mjpeg` gets
///   one picture after the other; it may be a pipe, whose reader holds the graph's pictures up when it is slow. Any other path always shows the last picture: it is written beside it and put in its place in one
///   step, so that nobody ever reads half of one.
/// - A disk that refuses is a fault; what was written before is whole. So is a file that another node or program has begun to write: no
///   picture takes its place. Bulk lane; takes heap.
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
  private var count = 0
  private var byteCount = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    path = setup.parameters.string("path")
    collects = path.hasSuffix(".mjpeg")
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
    if !collects && Self.isClaimed(first) { throw Self.claimed(first) }
    collection = collects ? try OpenedFile(path, for: .writing) : nil
    // Not to wait was for the opening only.
    if let file = collection?.descriptor { _ = fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK) }
  }

  deinit { if let collection { _ = close(collection.descriptor) } }

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
    let code = unsafe bytes.withUnsafeBytes { bytes in
      if let collection { unsafe append(bytes, to: collection) } else { unsafe replace(bytes) }
    }
    guard code == 0 else {
      throw NodeFault(code == Self.isTaken ? .custom : .system, code: code, detail: Int64(count))
    }
    count += 1
    byteCount += bytes.count
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let (count, byteCount) = (count, byteCount)
    ports.post(Event.written) { event in
      event.field("pictures", count)
      event.field("bytes", byteCount)
    }
    return .ended
  }

  private func append(_ bytes: UnsafeRawBufferPointer, to file: OpenedFile) -> Int32 {
    if count == 0 && file.kind == .file {
      let code = OpenedFile.empty(file.descriptor)
      if code != 0 { return code }
    }
    guard file.kind == .pipe else { return unsafe Self.write(bytes, to: file.descriptor) }
    return PipeSignal.withBlocked { unsafe Self.write(bytes, to: file.descriptor) }
  }

  /// Writes beside the place, and puts the file there when it is whole.
  private func replace(_ bytes: UnsafeRawBufferPointer) -> Int32 {
    let target = Self.name(path, count + 1)
    let beside = target + ".part"
    let file = unsafe open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard file >= 0 else { return errno }
    var code = unsafe Self.write(bytes, to: file)
    if close(file) != 0 && code == 0 { code = errno }
    if code == 0 && Self.isClaimed(target) { code = Self.isTaken }
    if code == 0, unsafe rename(beside, target) != 0 { code = errno }
    if code != 0 { _ = unsafe unlink(beside) }
    return code
  }

  /// Code of the fault when somebody else writes the file.
  private static let isTaken: Int32 = -1

  /// True for a file that somebody has claimed to write it.
  private static func isClaimed(_ path: String) -> Bool {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { return false }
    defer { close(file) }
    do throws(NodeProblem) {
      try FileClaim.claim(file, path, for: .reading)
      return false
    } catch { return true }
  }

  private static func claimed(_ path: String) -> NodeProblem {
    NodeProblem(
      "\"\(path)\" is being written by another node or program", parameter: "path",
      cure: "write to another file")
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
    guard fault.reason != .custom else { return "\(Self.claimed(target))" }
    guard fault.reason == .system else { return nil }
    return FileWords.writeFailure(
      fault.code, "\"\(target)\"", kept: "\(fault.detail) pictures before it are whole")
  }
}

extension String {
  /// The text with a part of it replaced.
  fileprivate func replacingCharacters(_ part: Range<String.Index>, with text: String) -> String {
    String(self[..<part.lowerBound]) + text + String(self[part.upperBound...])
  }
}
