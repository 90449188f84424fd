public import MillraceCore

/// The order in which the packets of one connection are sent. Pure: times are given.
///
/// - Sound, events, pings and texts go at once, in their order, however much waits in the socket.
/// - Pictures and files are sent in parts between them, at a rate, and only while little waits in the socket. A packet is never divided
///   here, so that its frames follow each other.
/// - Within a session, what ends an event waits for the pictures and files of it, and what follows that waits, too.
public struct TuyaOutbox: Sendable {
  /// A packet to send.
  public struct Item: Sendable {
    /// The packet.
    public var packet: TuyaPacket
    /// Which session sends it; nil: the connection.
    public var session: Int?
    /// Bytes of its content, roughly what it takes on the wire.
    public var bytes: Int
    /// The end of this call.
    public var ends: Int?
    /// It is a picture or a file, or a part of one.
    public var isPicture = false
    /// What was sent of the picture or the file; nil: of neither, or all of it in one packet.
    public var progress: Progress?
  }

  /// How far a picture or a file is.
  public struct Progress: Sendable, Hashable {
    /// The call of the session.
    public var call: Int
    /// Bytes so far.
    public var bytes: Int
    /// Bytes in total.
    public var total: Int
  }

  /// What to do next.
  public enum Step: Sendable {
    /// Send this packet.
    case send(Item)
    /// Get the next bytes of a file, and `supply` them.
    case read(job: Int, offset: Int, atMost: Int, session: Int, call: Int)
    /// Nothing before this time.
    case wait(until: Nanoseconds)
    /// Too much waits in the socket.
    case full
    /// Nothing waits.
    case idle
  }

  /// Where the bytes of a job come from.
  public enum Source: Sendable {
    /// They are here.
    case bytes([UInt8])
    /// A file of this many bytes.
    case file(total: Int)
  }

  private struct Job: Sendable {
    var number: Int
    var session: Int
    var event: String?
    var call: Int
    var content: TuyaBulk
    var source: Source
    /// Bytes that were read and not sent; for a file.
    var chunk: [UInt8] = []
    var isReading = false
    var sent = 0
    /// Packets so far.
    var packets: UInt32 = 0

    var hasBegun: Bool { packets > 0 }

    var total: Int {
      switch source {
      case .bytes(let bytes): bytes.count
      case .file(let total): total
      }
    }
  }

  /// What waits for the pictures and files of its session.
  private enum Held: Sendable {
    /// A packet; of one that ends the data of an event, the event.
    case item(Item, endsDataOf: String?)
    case job(Job)

    var bytes: Int {
      switch self {
      case .item(let item, _): item.bytes
      case .job: 0
      }
    }

    var job: Job? {
      if case .job(let job) = self { return job }
      return nil
    }
  }

  /// How late a part may be without the rate making up for it.
  static let slack = Nanoseconds.milliseconds(2)
  /// Bytes that are read from a file at once.
  static let chunk = 65_536
  /// Bytes of pictures that may wait in all.
  static let mostWaiting = 32 << 20
  /// Pictures and files that may wait.
  static let mostJobs = 1_000

  private let partBytes: Int
  private let rate: Int
  private let unsent: Int

  private var urgent = TuyaQueue<Item>()
  private var jobs: [Job] = []
  private var held: [Int: ArraySlice<Held>] = [:]
  private var nextJob = 1
  /// When the next part may be sent.
  private var due: Nanoseconds = .min
  /// Bytes of what goes before sound.
  public private(set) var urgentBytes = 0

  /// Creates an empty outbox.
  /// - Parameter target: parts, rate and what may wait in the socket.
  public init(_ target: TuyaTarget) {
    partBytes = max(0, target.pictureParts)
    rate = max(0, target.pictureRate)
    unsent = max(1, target.unsent)
  }

  /// True when nothing urgent waits.
  public var isUrgentEmpty: Bool { urgent.isEmpty }

  /// Bytes of a session's packets that wait for its pictures and files.
  func held(of session: Int) -> Int { held[session]?.reduce(0) { $0 + $1.bytes } ?? 0 }

  // MARK: In

  /// Adds a packet, behind those of its session that wait for pictures.
  /// - Parameter event: whose data it ends, or which it ends itself: its pictures and files go first. Nil: none.
  public mutating func add(
    _ packet: TuyaPacket, bytes: Int, of session: Int?, endsDataOf event: String? = nil, call: Int? = nil
  ) {
    let item = Item(packet: packet, session: session, bytes: bytes, ends: call)
    guard let session, held[session] != nil || hasJobs(of: session, event) else { return append(item) }
    held[session, default: []].append(.item(item, endsDataOf: event))
  }

  /// Adds a packet that overtakes those of its session.
  public mutating func addAhead(_ packet: TuyaPacket, bytes: Int, of session: Int?) {
    append(Item(packet: packet, session: session, bytes: bytes))
  }

  private mutating func append(_ item: Item) {
    urgent.append(item)
    urgentBytes += item.bytes
  }

  private func hasJobs(of session: Int, _ event: String?) -> Bool {
    event != nil && jobs.contains { $0.session == session && $0.event == event }
  }

  /// Adds a picture or a file.
  /// - Parameter event: the one it is part of; nil: none.
  /// - Returns: false where too many wait.
  public mutating func add(
    _ content: TuyaBulk, _ source: Source, of session: Int, event: String?, call: Int
  ) -> Bool {
    let job = Job(
      number: call, session: session, event: event, call: call, content: content, source: source)
    let all = jobs + held.values.joined().compactMap(\.job)
    let waiting = all.reduce(0) { $0 + $1.total - $1.sent }
    guard waiting == 0 || waiting + job.total <= Self.mostWaiting, all.count < Self.mostJobs else {
      return false
    }
    var numbered = job
    numbered.number = nextJob
    nextJob += 1
    if held[session] != nil { held[session]?.append(.job(numbered)) } else { jobs.append(numbered) }
    return true
  }

  /// Replaces a picture of a video that has not been sent by a later one of the same event: a camera may be faster than the network.
  /// - Returns: the call of the older one; nil: none waits.
  public mutating func replace(
    waitingOn dataID: UInt16, of session: Int, event: String?, by bytes: [UInt8], call: Int
  ) -> Int? {
    let index = jobs.lastIndex { job in
      job.session == session && job.content.dataID == dataID && !job.hasBegun && job.content.isVideo
        && job.event == event
    }
    guard let index else { return nil }
    let old = jobs[index].call
    jobs[index].source = .bytes(bytes)
    jobs[index].call = call
    return old
  }

  /// The bytes of a file that were asked for.
  public mutating func supply(_ bytes: [UInt8], to number: Int) {
    guard let index = jobs.firstIndex(where: { $0.number == number }) else { return }
    jobs[index].isReading = false
    jobs[index].chunk += bytes
  }

  /// A file cannot be read any further: what was begun of it is ended.
  /// - Returns: the session and the call; nil where the job is gone.
  public mutating func fail(_ number: Int) -> (session: Int, call: Int)? {
    guard let index = jobs.firstIndex(where: { $0.number == number }) else { return nil }
    let job = jobs.remove(at: index)
    if job.hasBegun { endEarly(job, of: job.session) }
    release(job.session)
    return (job.session, job.call)
  }

  /// An event is broken off: its pictures and files are not sent any further, nor what ends their data or the event.
  /// - Parameter packet: the one that breaks the event. It takes the place of an end that waited, before an event that follows it. Nil: the
  ///   cloud has ended the event.
  /// - Returns: the calls that were given up.
  public mutating func breakOff(_ event: String, of session: Int, by packet: TuyaPacket?) -> [Int] {
    var given = jobs.filter { $0.session == session && $0.event == event }
    jobs.removeAll { $0.session == session && $0.event == event }
    // Streams end with their event.
    if packet != nil { for job in given where job.hasBegun { endEarly(job, of: session) } }
    var packet = packet
    var rest: ArraySlice<Held> = []
    for entry in held[session] ?? [] {
      switch entry {
      // It waits for pictures of an earlier event.
      case .job(let job) where job.event == event: given.append(job)
      case .item(let end, event):
        guard let breaking = packet, case .event(.end, _) = end.packet.content else { continue }
        rest.append(.item(Item(packet: breaking, session: session, bytes: 0), endsDataOf: nil))
        packet = nil
      default: rest.append(entry)
      }
    }
    held[session] = rest.isEmpty ? nil : rest
    release(session)
    if let packet { add(packet, bytes: 0, of: session) }
    return given.map(\.call)
  }

  /// The session has ended: nothing of it is sent any more, except what is ahead already. A picture that it has begun for other sessions,
  /// too, is ended.
  public mutating func remove(_ session: Int) {
    for job in jobs
    where job.session == session && job.hasBegun && TuyaSharedStreams.isShared(job.content.dataID) {
      endEarly(job, of: nil)
    }
    jobs.removeAll { $0.session == session }
    held[session] = nil
  }

  /// The cloud does not know the session, because its creation could not be sent: nothing that came behind that is sent.
  mutating func discard(_ session: Int) {
    var waiting = urgent
    urgent = TuyaQueue()
    urgentBytes = 0
    while let item = waiting.popFirst() {
      if item.session != session { append(item) }
    }
    jobs.removeAll { $0.session == session }
    held[session] = nil
  }

  /// The connection has ended.
  public mutating func clear() {
    urgent = TuyaQueue()
    urgentBytes = 0
    jobs = []
    held = [:]
    due = .min
  }

  private mutating func endEarly(_ job: Job, of session: Int?) {
    let packet = job.content.packet(flag: .end, [], number: job.packets)
    append(Item(packet: packet, session: session, bytes: 0))
  }

  /// Lets what waited go, up to what waits for pictures and files that remain.
  private mutating func release(_ session: Int) {
    while let first = held[session]?.first {
      switch first {
      case .item(let item, let event):
        if hasJobs(of: session, event) { return }
        append(item)
      case .job(let job): jobs.append(job)
      }
      held[session]?.removeFirst()
    }
    held[session] = nil
  }

  // MARK: Out

  /// What to do next. What is returned counts as done.
  /// - Parameters:
  ///   - now: the time.
  ///   - waiting: bytes in the socket that the network has not taken.
  public mutating func next(at now: Nanoseconds, waiting: Int) -> Step {
    if let item = urgent.popFirst() {
      urgentBytes -= item.bytes
      return .send(item)
    }
    guard !jobs.isEmpty else { return .idle }
    // A file that is being read does not hold up the others, except those of its channel.
    guard let index = jobs.indices.first(where: { isReady($0) }) else { return .idle }
    if needsBytes(jobs[index]) {
      jobs[index].isReading = true
      let job = jobs[index]
      let offset = job.sent + job.chunk.count
      return .read(
        job: job.number, offset: offset, atMost: min(Self.chunk, job.total - offset), session: job.session,
        call: job.call)
    }
    guard waiting <= unsent else { return .full }
    guard now >= due else { return .wait(until: due) }
    return .send(part(of: index, at: now))
  }

  /// True when a job can continue: it waits for no bytes, and no older one has the same channel.
  private func isReady(_ index: Int) -> Bool {
    let job = jobs[index]
    return !job.isReading
      && !jobs[..<index].contains { $0.content.dataID == job.content.dataID }
  }

  /// Bytes of the next part.
  private func partSize(_ job: Job) -> Int {
    let left = job.total - job.sent
    switch job.source {
    case .bytes: return partBytes > 0 && job.content.mayBeDivided ? min(partBytes, left) : left
    case .file: return min(partBytes > 0 ? partBytes : Self.chunk, left)
    }
  }

  private func needsBytes(_ job: Job) -> Bool {
    if case .bytes = job.source { return false }
    return job.chunk.count < partSize(job)
  }

  private mutating func part(of index: Int, at now: Nanoseconds) -> Item {
    var job = jobs[index]
    let size = partSize(job)
    let bytes: [UInt8]
    switch job.source {
    case .bytes(let all): bytes = size == all.count ? all : Array(all[job.sent..<job.sent + size])
    case .file:
      bytes = Array(job.chunk.prefix(size))
      job.chunk.removeFirst(size)
    }
    let isFirst = !job.hasBegun
    let number = job.packets
    job.packets += 1
    job.sent += size
    let isLast = job.sent >= job.total
    let flag: TuyaStreamFlag =
      switch (isFirst, isLast) {
      case (true, true): .onlyOne
      case (true, false): .start
      case (false, false): .streaming
      case (false, true): .end
      }
    var item = Item(
      packet: job.content.packet(flag: flag, bytes, number: number), session: job.session, bytes: size,
      ends: isLast ? job.call : nil)
    item.isPicture = true
    if !isFirst || !isLast {
      item.progress = Progress(call: job.call, bytes: job.sent, total: job.total)
    }
    if isLast {
      jobs.remove(at: index)
      release(job.session)
    } else {
      jobs[index] = job
    }
    if rate > 0 {
      let time = Nanoseconds(size) * 8_000_000 / Nanoseconds(rate)
      due = max(due, now - Self.slack) + time
    }
    return item
  }
}
