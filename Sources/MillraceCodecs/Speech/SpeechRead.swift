internal import Glibc
public import MillraceCore
internal import MillraceFiles

/// `speech.read`: reads encoded replies from files, cut and timed as a service would send them.
///
/// Output: MP3 or Ogg Opus in pieces of `chunk` bytes, one every `interval` ms (0: as fast as they are taken). `path` is a file, or a folder
/// whose files are read in the order of their names. Each file is an utterance, and its last piece is marked; with `pieces` the files of a
/// folder are pieces of one utterance.
///
/// The packets carry the reply's generation, and an interruption ends the replies. A file without audio is refused when the graph is
/// checked. An utterance that ends inside a frame or a page, or Ogg without its last page, is reported (`truncated`) and, if the parameter
/// says so, fails the node after its last piece. A read error fails the node. Lane `bulk`; no heap once the files are open and the scan's
/// buffer has the size of the largest page.
@safe
public struct SpeechRead: ~Copyable, Node {
  private let paths: [String]
  private let interval: Nanoseconds
  private let pause: Nanoseconds
  private let arePieces: Bool
  private let chunk: Int
  /// The file being read, and its index.
  private var descriptor: Int32 = -1
  private var file = 0
  private var due: Nanoseconds?
  private var wasInterrupted = false
  private let truncation: Truncation
  private var scan: ReplyScan
  /// The fault for a truncated utterance, thrown after its last piece.
  private var fault: NodeFault?

  /// Events, in the contract's order.
  private enum Event: Int {
    case truncated
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    let paths = try SpeechFiles.paths(values.string("path"))
    let first = try OpenedFile(paths[0], for: .reading)
    self.paths = paths
    interval = Nanoseconds((values.number("interval") * 1e6).rounded())
    pause = Nanoseconds((values.number("pause") * 1e6).rounded())
    arePieces = values.bool("pieces")
    chunk = values.integer("chunk")
    truncation = values.truncation
    scan = ReplyScan(isMP3: SpeechFiles.isMP3(paths[0]))
    descriptor = first.descriptor
  }

  deinit { if descriptor >= 0 { FileLock.close(descriptor) } }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if wasInterrupted { return .ended }
    if let fault { throw fault }
    if file == paths.count { return .ended }
    let time = due ?? ports.now
    guard time <= ports.now else {
      ports.wake(at: time)
      return .done
    }
    var packet = try ports.makePacket(bytes: chunk, of: ports.currentReply)
    let (count, isLast) = try fill(&packet)
    packet.setByteCount(count)
    packet.timestamp = time
    let ends = isLast && (!arePieces || file + 1 == paths.count)
    if ends { packet.flags.insert(.endOfUtterance) }
    ports.emit(packet)
    if ends, let cut = scan.finish() { post(cut, &ports) }
    let next = time &+ interval &+ (isLast && !arePieces ? pause : 0)
    due = next
    if isLast { try openNext() }
    if fault != nil { return .again }
    if file == paths.count { return .ended }
    guard next > ports.now else { return .again }
    ports.wake(at: next)
    return .done
  }

  public mutating func interrupted(_ ports: inout Ports) {
    wasInterrupted = true
    ports.wake(at: ports.now)
  }

  /// Fills a packet from the file. Checks for the end at once, so that the last piece is marked.
  private mutating func fill(_ packet: inout Packet) throws(NodeFault) -> (count: Int, isLast: Bool) {
    var bytes = packet.mutableSamples(of: UInt8.self)
    let descriptor = descriptor
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else {
      throw NodeFault(.system, code: errno, detail: Int64(file))
    }
    let count = unsafe bytes.withUnsafeMutableBytes { room in
      unsafe read(descriptor, room.baseAddress, room.count)
    }
    guard count >= 0 else { throw NodeFault(.system, code: errno, detail: Int64(file)) }
    scan.feed(bytes.span.extracting(first: count))
    return (count, count == 0 || Int64(lseek(descriptor, 0, SEEK_CUR)) >= Int64(status.st_size))
  }

  private mutating func post(_ cut: ReplyScan.Cut, _ ports: inout Ports) {
    if truncation == .fail { fault = Truncation.fault(at: Int64(file)) }
    let number = file + 1
    ports.post(Event.truncated.rawValue) { event in
      event.field("file", number)
      event.field("byte", Int(cut.place))
      event.field("bytes", Int(cut.bytes))
    }
  }

  private mutating func openNext() throws(NodeFault) {
    FileLock.close(descriptor)
    descriptor = -1
    file += 1
    guard file < paths.count else { return }
    descriptor = unsafe open(paths[file], O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw NodeFault(.system, code: errno, detail: Int64(file)) }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    guard paths.indices.contains(Int(fault.detail)) else { return nil }
    if Truncation.isFault(fault) {
      return
        "\"\(paths[Int(fault.detail)])\" is truncated, and \"truncated\" is \"fail\"; use a complete file"
    }
    guard fault.reason == .system else { return nil }
    return "cannot read \"\(paths[Int(fault.detail)])\": \(SystemError.text(fault.code))"
  }
}

extension SpeechRead {
  public static var contract: NodeContract {
    NodeContract(
      "speech.read", "sends encoded replies from files in pieces, as a service streams them",
      text: """
        For testing playback without a service. Each file is an utterance; the files of a folder follow each other in the order of \
        their names. With `pieces` they are the pieces of one utterance, as recorded from a service.
        """,
      outputs: [
        PortContract(
          "out", .kind(.mp3).or(.kind(.ogg)),
          text: "pieces of MP3 or Ogg Opus, depending on the first file's extension")
      ],
      parameters: [
        ParameterContract(
          "path", .path, required: true, text: "a file, or a folder of .mp3, .opus or .ogg files"),
        ParameterContract(
          "chunk", .integer(1...65_536), unit: "bytes", default: 1_024, text: "length of a piece"),
        ParameterContract(
          "interval", .number(0...60_000), unit: "ms", default: 50,
          text: "interval between pieces; 0: as fast as they are taken"),
        ParameterContract(
          "pause", .number(0...600_000), unit: "ms", default: 0, text: "additional pause between utterances"
        ),
        ParameterContract(
          "pieces", .bool, default: false, text: "treat the folder's files as pieces of one utterance"),
        .truncated,
      ],
      events: [
        EventContract(
          "truncated",
          text: """
            an utterance ends inside a frame or a page, or is Ogg without its last page: number of the `file`, `byte` offset of the \
            incomplete part in the utterance, and how many `bytes` of it are there
            """)
      ],
      lane: .bulk, budget: 5_000, drive: .itself,
      examples: [
        #"{ "type": "speech.read", "path": "reply.mp3" }"#,
        #"{ "type": "speech.read", "path": "replies", "chunk": 480, "interval": 80 }"#,
      ],
      resolve: resolve)
  }

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    // Back-pressure loses nothing: a file can wait, even when timed.
    resolution.pacing = .waits
    let paths: [String]
    do throws(NodeProblem) { paths = try SpeechFiles.paths(values.string("path")) } catch {
      return resolution.refuse("path", error.text, cure: error.cure)
    }
    let format: Format = SpeechFiles.isMP3(paths[0]) ? .mp3 : .ogg
    for path in paths where SpeechFiles.isMP3(path) != (format == .mp3) {
      resolution.refuse(
        "path",
        "\"\(values.string("path"))\" contains both MP3 and Ogg Opus: \"\(paths[0])\" and \"\(path)\"",
        cure: "keep one format per folder")
      return
    }
    do throws(NodeProblem) { try SpeechFiles.check(paths, arePieces: values.bool("pieces")) } catch {
      return resolution.refuse("path", error.text, cure: error.cure)
    }
    resolution.outputs["out"] = OutputShape(format, packetDuration: nil, packetBytes: values.integer("chunk"))
  }
}
