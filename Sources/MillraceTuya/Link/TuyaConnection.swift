internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
public import MillraceNet
public import MillraceService
internal import Synchronization

/// A connection to the cloud, for up to 20 sessions: opens with the first that attaches, closes behind the last that leaves, and opens
/// again with the next.
///
/// Any thread; its work is done on a loop of its own. It does not reconnect: when it is lost, it is reported to every session, which
/// decides for itself.
public final class TuyaConnection: @unchecked Sendable {
  /// The connections that nodes share by name; each ends when the last node has let go.
  public static let shared = NamedConnections<TuyaConnection, TuyaTarget> { $0.close() }

  /// Bytes of sound, events and texts that wait, at which the network counts as stalled.
  static let stalled = 1 << 20
  /// How often the socket is checked for room for the next part of a picture.
  private static let look = Nanoseconds.milliseconds(2)
  /// The longest interval between such checks, while there is no room.
  private static let lookLater = Nanoseconds.milliseconds(16)
  /// Bytes that are handed to the socket at once.
  private static let mostWritten = 65_536

  /// Its settings.
  public let target: TuyaTarget
  /// The loop of its socket.
  public let loop: NetLoop
  private let lease: NetLoop.Lease?
  private let clock = Clock(.realtime)
  private let made = Atomic<Int>(0)
  private let ahead = Atomic<Int>(0)
  /// Bytes of the largest picture packet in the socket. They do not count as a stalled network.
  private let picture = Atomic<Int>(0)

  // On the loop.
  private var link: TuyaLink
  private var outbox: TuyaOutbox
  private var lines: [Int: TuyaLine] = [:]
  private var routes = TuyaRoutes()
  private var streams = TuyaSharedStreams()
  private var stores = TuyaStoreQueue()
  private var socket: TuyaSocket?
  private var attempt = 0
  private var access = TuyaAccess()
  private var id = ""
  /// Sessions whose inbox is full.
  private var overfull: Set<Int> = []
  private var timer: (time: Nanoseconds, timer: NetTimer)?
  private var look = TuyaConnection.look
  private var lookAt: Nanoseconds?
  private var isTurning = false

  /// Creates a connection, which is not open yet, on the loop of its only session.
  /// - Parameters:
  ///   - target: its settings.
  ///   - loop: of the session.
  public init(_ target: TuyaTarget, on loop: NetLoop) {
    self.target = target
    self.loop = loop
    lease = nil
    link = TuyaLink(target)
    outbox = TuyaOutbox(target)
  }

  /// Creates a connection, which is not open yet, with a place of its own on a network thread.
  /// - Parameter target: its settings.
  /// - Throws: when there is no descriptor left for a network thread; the text names the cure.
  public init(_ target: TuyaTarget) throws(NetError) {
    let place = try NetLoop.assign()
    self.target = target
    loop = place.loop
    lease = place
    link = TuyaLink(target)
    outbox = TuyaOutbox(target)
  }

  /// Closes it properly; sessions that are attached end with 601.
  public func close() {
    LastRequests.begin()
    loop.run { [self] in
      endLines(.tuya(closedWith: .closedByClient))
      handle(.close)
      LastRequests.end()
    }
  }

  // MARK: Any thread

  /// Bytes that wait before the next frame of sound.
  var backlog: Int { ahead.load(ordering: .relaxed) }

  /// True when the network takes nothing: not even an event should be added.
  var isStalled: Bool { backlog > Self.stalled + picture.load(ordering: .relaxed) }

  /// Runs a call on the connection's loop, after those before it.
  func onLoop(_ body: @escaping @Sendable (TuyaConnection) -> Void) { loop.run { [self] in body(self) } }

  /// Attaches a session.
  /// - Parameters:
  ///   - access: where to connect, and as whom, where the settings do not say it.
  ///   - settings: of the session.
  ///   - terms: of its token, for its first notice.
  ///   - sessionLoop: where its events arrive.
  ///   - receive: called with every event on that loop, never from within a call.
  func attach(
    access: TuyaAccess, _ settings: TuyaWireSettings, terms: TuyaTerms, on sessionLoop: NetLoop,
    _ receive: @escaping @Sendable (ServiceEvent<TuyaNotice>) -> Void
  ) -> TuyaShare {
    let number = made.add(1, ordering: .relaxed).newValue
    let inbox = TuyaInbox(
      on: sessionLoop, limit: target.inbox,
      onRoom: { [weak self] in self?.loop.run { [weak self] in self?.noteRoom(number) } }, receive)
    loop.run { [self] in
      begin(TuyaLine(number, settings, target.dialect, inbox), access: access, terms)
    }
    return TuyaShare(number, of: self, inbox)
  }

  /// A session leaves. A program that exits waits for it.
  /// - Parameter isProper: its close is announced to the cloud. Otherwise it is only where other sessions keep the connection: the cloud
  ///   would take the id of the session as used until the connection ends.
  func detach(_ number: Int, isProper: Bool) {
    LastRequests.begin()
    loop.run { [self] in
      if isProper || lines.count > 1 { closeSession(of: number, .ok) }
      forget(number)
      if lines.isEmpty { handle(.close) } else { turn() }
      LastRequests.end()
    }
  }

  // MARK: Sessions

  private func begin(_ line: TuyaLine, access wanted: TuyaAccess, _ terms: TuyaTerms) {
    var line = line
    line.terms = terms
    guard lines.count < TuyaTarget.mostSessions else {
      return line.end(.tuya(closedWith: .sessionsFull))
    }
    let whole = target.access.completed(by: wanted)
    if link.isActive, whole.client != access.client || whole.address != access.address {
      return line.end(
        .tuya(
          .invalidParameter,
          "the connection is in use for another client or address; name another \"connection\"",
          reaction: .refuse))
    }
    lines[line.number] = line
    if link.state == .connected {
      tell(line.number, [.message(.connected(id: id, terms))])
    } else if !link.isActive {
      access = whole
      handle(.open)
    }
  }

  /// Forgets a session, without a word to the cloud.
  private func forget(_ number: Int) {
    guard let line = lines.removeValue(forKey: number) else { return }
    outbox.remove(number)
    endShared(of: line)
    routes.close(number)
    if overfull.remove(number) != nil { noteRoom(number) }
  }

  /// Ends a session that has failed, without a word to the cloud, and the connection behind the last one.
  private func end(_ number: Int, _ error: DialogError) {
    guard let line = lines[number] else { return }
    forget(number)
    line.end(error)
    if lines.isEmpty { handle(.close) }
  }

  private func endLines(_ error: DialogError) {
    let ended = lines.values.sorted { $0.number < $1.number }
    lines = [:]
    routes = TuyaRoutes()
    streams = TuyaSharedStreams()
    overfull = []
    outbox.clear()
    for line in ended { line.end(error) }
  }

  private func tell(_ number: Int, _ events: [ServiceEvent<TuyaNotice>]) {
    guard !events.isEmpty, let line = lines[number] else { return }
    if !line.inbox.add(events), overfull.insert(number).inserted, overfull.count == 1 { socket?.pause() }
  }

  private func noteRoom(_ number: Int) {
    guard overfull.remove(number) != nil || overfull.isEmpty else { return }
    guard overfull.isEmpty else { return }
    socket?.resume()
    handle(.excused)
  }

  // MARK: Calls of sessions

  func send(voice frame: [UInt8], of number: Int) {
    guard link.state == .connected else { return }
    do throws(DialogError) {
      guard let packet = try lines[number]?.voice(frame, at: Self.now, &streams) else { return }
      outbox.add(packet, bytes: frame.count, of: number)
      use()
    } catch { fail(error, 0, of: number) }
  }

  func carryOut(_ call: TuyaCall, _ grant: TuyaGrant, of number: Int) {
    guard link.state == .connected, lines[number] != nil else {
      if let call = call.number { fail(.tuya(.notConnected, "there is no connection"), call, of: number) }
      return
    }
    do throws(DialogError) {
      switch call {
      case .createSession(let creation): create(creation, grant, of: number)
      case .closeSession(let status): closeSession(of: number, status)
      case .beginVoice:
        try add(call, of: number)
        restartShared(joinedBy: number)
      case .file(let path, let name, let channel, let userData, let call):
        try open(path, name, channel, userData, call, of: number)
      default: try add(call, of: number)
      }
    } catch { fail(error, call.number ?? 0, of: number) }
    use()
  }

  private func fail(_ error: DialogError, _ call: Int, of number: Int) {
    tell(number, [.message(.failed(error, call: call))])
  }

  /// Creates the session of a line. Where that fails the line ends, and the others continue.
  private func create(_ creation: TuyaCreation, _ grant: TuyaGrant, of number: Int) {
    closeSession(of: number, .ok)
    do throws(DialogError) {
      let channels = try routes.create(number, creation, grant.terms)
      let packet = lines[number]?.create(creation, grant, channels)
      if let packet { outbox.add(packet, bytes: 0, of: number) }
    } catch { end(number, error) }
  }

  /// The packet that creates a session cannot be written: the cloud never learns of the session.
  private func failCreation(of number: Int, _ problem: TuyaWireProblem) {
    outbox.discard(number)
    _ = streams.leave(number)
    end(
      number,
      .tuya(
        .invalidParameter,
        "the session cannot be created: \(problem.text); shorten \"sessionAttributes\" or the token, or raise \"maxFragment\"",
        reaction: .refuse))
  }

  private func closeSession(of number: Int, _ status: TuyaStatus) {
    guard link.state == .connected, var line = lines[number], line.isOpen else { return }
    outbox.remove(number)
    endShared(of: line)
    if let packet = line.close(status) { outbox.addAhead(packet, bytes: 0, of: nil) }
    lines[number] = line
    routes.close(number)
  }

  /// A session joins a stream that is under way. Its event knows nothing of the format, so the stream begins again.
  private func restartShared(joinedBy number: Int) {
    guard let id = lines[number]?.sharedVoice, let leader = streams.leader(on: id), leader != number,
      let end = lines[leader]?.restartVoice()
    else { return }
    outbox.add(end.packet, bytes: end.bytes, of: leader)
  }

  /// Ends what a session has sent for others, too.
  private func endShared(of line: TuyaLine) {
    for packet in line.lastVoice(led: streams.leave(line.number)) {
      outbox.addAhead(packet, bytes: 0, of: nil)
    }
  }

  private func add(_ call: TuyaCall, of number: Int) throws(DialogError) {
    guard var line = lines[number] else { return }
    defer { lines[number] = line }
    for order in try line.orders(for: call, at: Self.now, &streams) {
      switch order {
      case .packet(let packet, let bytes): outbox.add(packet, bytes: bytes, of: number)
      case .last(let packet, let event): outbox.add(packet, bytes: 0, of: number, endsDataOf: event)
      case .breaks(let packet, let event):
        for call in outbox.breakOff(event, of: number, by: packet) {
          fail(.tuya(.invalidEvent, "the event was broken off", scope: .command), call, of: number)
        }
      case .bulk(let bulk, let source, let event, let call):
        try enqueue(bulk, source, event, call, of: number)
        line.noteQueued(bulk)
      case .sent(let call): tell(number, [.message(.sent(call: call))])
      }
    }
  }

  private func enqueue(
    _ bulk: TuyaBulk, _ source: TuyaOutbox.Source, _ event: String?, _ call: Int, of number: Int
  ) throws(DialogError) {
    if case .bytes(let bytes) = source, bulk.isVideo {
      let old = outbox.replace(waitingOn: bulk.dataID, of: number, event: event, by: bytes, call: call)
      if let old { return tell(number, [.message(.sent(call: old))]) }
    }
    guard outbox.add(bulk, source, of: number, event: event, call: call) else {
      throw .tuya(
        .sendFailed, "too many pictures and files wait to be sent", category: .network, scope: .command)
    }
  }

  // MARK: Files

  private func open(
    _ path: String, _ name: String?, _ channel: TuyaChannelName, _ userData: JSONValue?, _ call: Int,
    of number: Int
  ) throws(DialogError) {
    guard let line = lines[number] else { return }
    _ = try line.id(of: channel)
    let most = channel.kind == .file ? line.settings.largestFile : TuyaPicture.mostBytes
    let file = try TuyaFileReader(path, most: most)
    lines[number]?.files[call] = file
    guard channel.kind == .file else {
      // A picture has to be whole: its size in pixels is in its head.
      return read(file, offset: 0, count: file.count) {
        $0.addPicture($1, channel, userData, call, of: number)
      }
    }
    try add(.file(path: path, name: name ?? file.name, channel, userData: userData, call: call), of: number)
  }

  /// A picture was read from a file.
  private func addPicture(
    _ result: Result<[UInt8], DialogError>, _ channel: TuyaChannelName, _ userData: JSONValue?, _ call: Int,
    of number: Int
  ) {
    guard lines[number]?.files.removeValue(forKey: call) != nil else { return }
    do throws(DialogError) {
      let bytes = try result.get()
      guard let format = TuyaImageFormat(of: bytes) else {
        throw .tuya(.unreadableFile, "the file is neither JPEG nor PNG", scope: .command)
      }
      try add(.image(bytes, format: format, channel, userData: userData, call: call), of: number)
    } catch { fail(error, call, of: number) }
    turn()
  }

  /// Reads from a file without holding up the loop.
  private func read(
    _ file: TuyaFileReader, offset: Int, count: Int,
    _ done: @escaping @Sendable (TuyaConnection, Result<[UInt8], DialogError>) -> Void
  ) {
    Task {
      let result = file.read(offset: offset, count: count)
      onLoop { done($0, result) }
    }
  }

  // MARK: Sending

  /// A packet of a session is on its way.
  private func use() { handle(.used) }

  /// Sends what may be sent, and plans the next check of the socket.
  private func turn() {
    // What is reported within must not start another turn.
    guard !isTurning else { return }
    isTurning = true
    lookAt = nil
    if let socket { send(over: socket) }
    noteAhead()
    isTurning = false
    setTimer()
  }

  private func noteAhead() {
    let waiting = socket?.backlog ?? 0
    if waiting == 0 { picture.store(0, ordering: .relaxed) }
    ahead.store(outbox.urgentBytes + waiting, ordering: .relaxed)
    for line in lines.values { line.inbox.noteHeld(outbox.held(of: line.number)) }
  }

  private func send(over socket: TuyaSocket) {
    let now = clock.now
    while true {
      let waiting = socket.backlog + socket.written
      if socket.written >= Self.mostWritten { socket.flush() }
      switch outbox.next(at: now, waiting: waiting) {
      case .send(let item):
        do throws(TuyaWireProblem) { try socket.write(item.packet) } catch {
          // Nothing of it was written: the others continue.
          if let number = item.session, item.packet.type == .sessionNew {
            failCreation(of: number, error)
            continue
          }
          let call = item.ends ?? item.progress?.call ?? 0
          let failure = DialogError.tuya(.invalidPacket, error.text, scope: .command)
          if let number = item.session { fail(failure, call, of: number) }
          continue
        }
        look = Self.look
        if item.isPicture {
          picture.store(max(item.bytes, picture.load(ordering: .relaxed)), ordering: .relaxed)
        }
        report(item)
      case .read(let job, let offset, let count, let session, let call):
        supply(job, offset, count, session, call)
      case .wait(let time):
        lookAt = time
        return socket.flush()
      case .full:
        socket.flush()
        lookAt = now + look
        look = min(2 * look, Self.lookLater)
        return
      case .idle: return socket.flush()
      }
    }
  }

  private func report(_ item: TuyaOutbox.Item) {
    guard let number = item.session else { return }
    if let progress = item.progress {
      let done = progress.total > 0 ? Double(progress.bytes) / Double(progress.total) : 1
      if lines[number]?.isNews(progress) ?? false {
        tell(
          number,
          [
            .message(
              .progress(
                DialogProgress(
                  "upload", command: "\(progress.call)", done: done, bytes: progress.bytes,
                  totalBytes: progress.total)))
          ])
      }
    }
    if let call = item.ends {
      lines[number]?.files[call] = nil
      tell(number, [.message(.sent(call: call))])
    }
  }

  private func supply(_ job: Int, _ offset: Int, _ count: Int, _ number: Int, _ call: Int) {
    guard let file = lines[number]?.files[call] else { return }
    read(file, offset: offset, count: count) { connection, result in
      switch result {
      case .success(let bytes): connection.outbox.supply(bytes, to: job)
      case .failure(let error):
        guard let (number, call) = connection.outbox.fail(job) else { return }
        connection.lines[number]?.files[call] = nil
        connection.fail(error, call, of: number)
      }
      connection.turn()
    }
  }

  // MARK: The link

  private func handle(_ input: TuyaLink.Input) {
    for action in link.handle(input, at: clock.now) { carryOut(action) }
    turn()
  }

  private func carryOut(_ action: TuyaLink.Action) {
    switch action {
    case .connect: connect()
    case .hello:
      do throws(TuyaWireProblem) { try socket?.hello() } catch {
        socket?.cancel()
        handle(.lost(.tuya(.invalidParameter, error.text, reaction: .refuse)))
      }
    case .ping: outbox.addAhead(TuyaForms.ping(at: Self.now), bytes: 0, of: nil)
    case .refresh(let id): outbox.addAhead(TuyaForms.refresh(id), bytes: 0, of: nil)
    case .sendClose(let status): outbox.addAhead(TuyaForms.close(status), bytes: 0, of: nil)
    case .shut: leave { $0.close() }
    case .cancel: leave { $0.cancel() }
    case .connected(let id):
      self.id = id
      link.expires(in: Self.time(until: access.expiry), at: clock.now)
      for line in lines.values.sorted(by: { $0.number < $1.number }) {
        tell(line.number, [.message(.connected(id: id, line.terms))])
      }
    case .willDisconnect: for number in lines.keys.sorted() { tell(number, [.message(.willDisconnect)]) }
    case .ended(let error): endLines(error)
    }
  }

  private func connect() {
    attempt += 1
    let number = attempt
    outbox.clear()
    do throws(DialogError) {
      socket = try TuyaSocket(target, access, on: loop) { [weak self] event in
        guard let self, number == attempt else { return }
        take(event)
      }
    } catch {
      let error = error
      loop.run { [weak self] in
        guard let self, number == attempt else { return }
        handle(.lost(error))
      }
    }
  }

  /// Sends what is urgent, and releases the socket.
  private func leave(_ end: (TuyaSocket) -> Void) {
    attempt += 1
    guard let socket else { return }
    while !outbox.isUrgentEmpty, case .send(let item) = outbox.next(at: clock.now, waiting: 0) {
      // Nothing of an invalid packet was written: what closes the sessions and the connection still goes out.
      do throws(TuyaWireProblem) { try socket.write(item.packet) } catch { continue }
    }
    socket.flush()
    end(socket)
    self.socket = nil
    outbox.clear()
    noteAhead()
  }

  private func take(_ event: TuyaSocket.Event) {
    switch event {
    case .opened: handle(.opened)
    case .received: handle(.received)
    case .packet(let packet): take(packet)
    case .invalid(let problem): handle(.invalid(problem))
    case .ended(let error):
      socket = nil
      handle(.lost(error))
    }
  }

  private func take(_ packet: TuyaPacket) {
    if let input = TuyaForms.input(packet, at: Self.now) { return handle(input) }
    guard link.state == .connected else { return }
    var hasUse = false
    for number in routes.lines(for: packet) {
      hasUse = true
      guard var line = lines[number] else { continue }
      let (events, files, isClosed) = line.take(packet)
      if isClosed {
        outbox.remove(number)
        endShared(of: line)
        line.closed()
        routes.close(number)
      }
      lines[number] = line
      tell(number, events)
      store(files, of: number)
    }
    if hasUse { handle(.used) }
  }

  /// Writes files that were received, without holding up the loop.
  private func store(_ files: [TuyaReceivedFile], of number: Int) {
    for file in files where !stores.add(file, of: number) {
      let text = "a file was received and dropped: too many wait to be stored; check the disk of \"cache\""
      tell(number, [TuyaReceivedFile.failure(text)])
    }
    storeNext()
  }

  private func storeNext() {
    guard let entry = stores.next() else { return }
    Task {
      let event = entry.file.store()
      onLoop { connection in
        connection.stores.finish()
        connection.tell(entry.session, [event])
        connection.storeNext()
      }
    }
  }

  // MARK: Time

  private func setTimer() {
    guard let next = [link.deadline, lookAt].compactMap({ $0 }).min() else { return }
    if let timer, timer.time <= next { return }
    timer?.timer.cancel()
    let handle = loop.run(after: max(0, next - clock.now)) { [weak self] in
      guard let self else { return }
      timer = nil
      // While nothing is read, the cloud is not to blame for its silence.
      if !overfull.isEmpty { _ = link.handle(.excused, at: clock.now) }
      self.handle(.tick)
    }
    timer = (next, handle)
  }

  /// Milliseconds since 1970.
  static var now: UInt64 { UInt64(max(0, UnixTime.now / 1_000_000)) }

  /// Numbers below this are seconds from now, others a Unix time: the vendor's configurations have both.
  static let leastUnixTime: UInt64 = 1_000_000_000

  /// The time until an expiry, in seconds from now or since 1970.
  static func time(until expiry: UInt64?) -> Nanoseconds? {
    guard let expiry, expiry > 0 else { return nil }
    let now = now / 1_000
    let seconds = expiry < leastUnixTime ? expiry : expiry > now ? expiry - now : 0
    return Nanoseconds(min(seconds, 1 << 32)) * 1_000_000_000
  }
}

extension TuyaCall {
  /// The number under which a failure is reported; nil: it has none.
  var number: Int? {
    switch self {
    case .image(_, _, _, _, let call), .file(_, _, _, _, let call): call
    default: nil
    }
  }
}
