internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTC
internal import MillraceRTCSignal
internal import Synchronization

/// The messages of a call: between the node's ports `data` and those of other nodes on this side, and the data channels of its sessions on
/// the other. Messages of a channel whose name nobody here has become events `data`.
///
/// A message waits while no session is connected, while its channel is being opened, and, with one session, while that has no room. With
/// several sessions one without room loses it, which is counted. On the thread of the call's loop.
final class CallChannels {
  /// The side that does not open channels opens one that it needs, and that is not there after this time.
  private static let patience: Nanoseconds = .milliseconds(1_000)
  /// Until a message for a channel that does not open is given up.
  private static let giveUp: Nanoseconds = .milliseconds(10_000)
  /// What messages of events are called (Documentation/room.md).
  private static let eventLabel = "dialog"
  /// Between two looks while something waits: that of SCTP's clock.
  private static let retry: Nanoseconds = .milliseconds(Int64(SCTPAssociation.tickMilliseconds))

  private let context: CallContext
  private var ports: [ChannelPort] = []
  private var room: TextRoomChannel?
  /// Messages to send that no session took, of the node's ports.
  private(set) var lostUp = 0
  /// When the last message was sent.
  private(set) var sentAt: Nanoseconds?
  /// Since when the first message waits, although sessions are connected.
  private var waitsSince: [String: Nanoseconds] = [:]
  private var hasComplained = false

  init(_ context: CallContext) {
    self.context = context
    room = context.settings.textRoom.map { TextRoomChannel($0) }
    guard context.settings.hasDataPorts || context.settings.sendsEvents || room != nil else { return }
    let label = room == nil ? context.settings.dataLabel : TextRoomChannel.label
    ports = [.node(context.exchange, label: label, context.settings.dataDelivery)]
  }

  /// The name of the channel of the node's ports; nil: it has none.
  var ownLabel: String? {
    if case .node(_, let label, _)? = ports.first { label } else { nil }
  }

  /// The call has a place on its loop.
  func setEntry(_ entry: RTCLoop.Entry) {
    for case .link(let link) in ports { link.setEntry(entry) }
  }

  /// Puts a link to use. The peers may have opened its channel before.
  func add(_ link: DataLink, _ sessions: [CallSession]) {
    ports.append(.link(link))
    let count = sessions.filter { $0.channels.channel(link.label) != nil }.count
    link.channels.add(count, ordering: .relaxed)
  }

  /// Nothing waits to be sent.
  var isEmpty: Bool {
    ports.allSatisfy { port in
      switch port {
      case .node(let exchange, _, _): exchange.dataUp.peek() == nil
      case .link(let link): link.up.peek() == nil
      }
    }
  }

  /// The call is over.
  func end(_ failure: SessionEnd.Failure?) {
    for case .link(let link) in ports { link.end.report(failure) }
    ports = []
  }

  // MARK: Sending

  /// Opens what is missing, and sends what waits. Returns when to be called again.
  /// - Parameter signalling: carries messages of the node itself, where it can.
  func run(_ sessions: [CallSession], _ signalling: (any Signalling)?, at now: Nanoseconds) -> Nanoseconds? {
    var next: Nanoseconds?
    for port in ports {
      switch drain(port, into: signalling, at: now) {
      // What comes from here on waits for the next run.
      case .nothing: continue
      case .unsupported: break
      case .waits:
        next = now + Self.retry
        continue
      }
      let target = sessions.filter { $0.isConnected && $0.media.hasData }
      for session in target where opens(session, port, at: now) {
        session.channels.open(port.request, in: session)
      }
      if drain(port, target, hasOthers: sessions.contains { $0.isConnected }, at: now) {
        next = now + Self.retry
      }
      if case .link(let link) = port { leave(link, sessions) }
    }
    let oldest = now - Self.giveUp
    for session in sessions
    where session.isConnected && session.channels.flush(in: session, oldest: oldest) {
      next = now + Self.retry
    }
    return next
  }

  private func opens(_ session: CallSession, _ port: ChannelPort, at now: Nanoseconds) -> Bool {
    if context.settings.opensChannels ?? session.isOfferer { return true }
    return waitsSince[port.label] != nil && now - session.connectedAt >= Self.patience
  }

  /// What became of the messages that waited at a port.
  private enum Drained { case nothing, waits, unsupported }

  /// Sends what waits at the node's port by the signalling.
  private func drain(_ port: ChannelPort, into signalling: (any Signalling)?, at now: Nanoseconds) -> Drained
  {
    guard case .node(let exchange, let label, _) = port, let signalling, signalling.traits.carriesMessages
    else { return .unsupported }
    let queue = exchange.dataUp
    defer { if queue.takeRequest() { exchange.waker.wake() } }
    while let record = queue.peek() {
      let isEvent = record.kind == MediaRecord.toldEvent
      let sending = signalling.send(
        unsafe Array(record.bytes), isText: isEvent || record.kind == MediaRecord.text,
        label: isEvent ? Self.eventLabel : label, to: nil)
      switch sending {
      case .sent: sentAt = now
      case .full: return .waits
      case .tooLarge:
        lostUp += 1
        let text =
          "a message of \(unsafe record.bytes.count) bytes is larger than the room takes; send smaller ones"
        context.post(.sentTooLarge, RTCError.tooLarge.error(text, reaction: .continue))
      case .unsupported: return .unsupported
      }
      queue.drop(record)
    }
    return .nothing
  }

  /// Sends what waits at a port. True when something waits for a session that is connected.
  private func drain(
    _ port: ChannelPort, _ target: [CallSession], hasOthers: Bool, at now: Nanoseconds
  ) -> Bool {
    let queue = Self.up(port)
    defer { if queue.takeRequest() { Self.waker(port).wake() } }
    while let record = queue.peek() {
      // Not before a session is there to take it.
      guard !target.isEmpty || hasOthers else { return false }
      guard !target.isEmpty else {
        complain("the peer takes no data channels; what is sent is dropped")
        lose(port)
        queue.drop(record)
        continue
      }
      let bytes = unsafe Array(record.bytes)
      guard send(bytes, isText: record.kind == MediaRecord.text, port, target) else {
        let since = waitsSince[port.label] ?? now
        waitsSince[port.label] = since
        guard now - since >= Self.giveUp else { return true }
        gaveUp(port.label)
        lose(port)
        waitsSince[port.label] = nil
        queue.drop(record)
        continue
      }
      waitsSince[port.label] = nil
      sentAt = now
      queue.drop(record)
    }
    return false
  }

  /// Sends a message to all. False: it has to wait.
  private func send(_ bytes: [UInt8], isText: Bool, _ port: ChannelPort, _ target: [CallSession]) -> Bool {
    var content = bytes
    if case .node = port, room != nil {
      guard isText else {
        complain("a text room takes text only; what is sent is dropped")
        lose(port)
        return true
      }
      guard room?.hasJoined == true else { return false }
      content = room?.message(bytes) ?? bytes
    }
    var hasChannel = false
    for session in target {
      guard let channel = session.channels.channel(port.label), let open = session.session else { continue }
      hasChannel = true
      switch open.send(message: content, isText: isText, on: channel) {
      case .sent: break
      case .full:
        if target.count == 1 { return false }
        lose(port)
      case .tooLarge:
        lose(port)
        let text = "a message of \(content.count) bytes is larger than the peer takes; send smaller ones"
        context.post(.sentTooLarge, RTCError.tooLarge.error(text, reaction: .continue))
      case .unsent: lose(port)
      }
    }
    return hasChannel
  }

  /// Sends a message of the command `data`. Nil: it was sent.
  func send(
    _ bytes: [UInt8], isText: Bool, label: String?, to sessions: [CallSession], at now: Nanoseconds
  ) -> DialogError? {
    let name = label ?? ownLabel ?? context.settings.dataLabel
    let problem = RTCError.command
    var bytes = bytes
    if name == TextRoomChannel.label, room != nil {
      guard isText, room?.hasJoined == true else {
        return problem.error("a room takes text only, and once it is joined", scope: .command)
      }
      bytes = room?.message(bytes) ?? bytes
    }
    guard bytes.count <= RTCExchange.dataBytes else {
      return RTCError.tooLarge.error(
        "the message has \(bytes.count) bytes; at most \(RTCExchange.dataBytes) are sent", scope: .command)
    }
    var wasSent = false
    for session in sessions where session.isConnected && session.media.hasData {
      guard let open = session.session else { continue }
      guard let channel = session.channels.channel(name), !session.channels.isHolding(name) else {
        let request = DataChannelRequest(label: name, delivery: context.settings.dataDelivery)
        session.channels.open(request, in: session)
        guard session.channels.hold(bytes, isText: isText, label: name, at: now) else {
          return problem.error(
            "too much waits for the data channel \"\(name)\"; try again later", scope: .command)
        }
        context.entry?.wake()
        wasSent = true
        continue
      }
      switch open.send(message: bytes, isText: isText, on: channel) {
      case .sent: wasSent = true
      case .tooLarge:
        return RTCError.tooLarge.error(
          "the message of \(bytes.count) bytes is larger than the peer takes", scope: .command)
      case .full:
        return problem.error("the data channel \"\(name)\" has no room; try again later", scope: .command)
      case .unsent: break
      }
    }
    if wasSent { sentAt = now }
    return wasSent
      ? nil : problem.error("no session takes messages on the data channel \"\(name)\"", scope: .command)
  }

  /// A link whose node has gone, or has nothing more to send, leaves.
  private func leave(_ link: DataLink, _ sessions: [CallSession]) {
    let isDone = link.isOver.load(ordering: .acquiring) && link.up.peek() == nil
    guard isDone || link.isStopped.load(ordering: .acquiring) else { return }
    ports.removeAll { if case .link(let other) = $0 { other === link } else { false } }
    waitsSince[link.label] = nil
    for session in sessions { session.channels.close(link.label, in: session) }
    link.end.report(nil)
  }

  // MARK: Receiving

  func opened(_ label: String, in session: CallSession) {
    link(label)?.channels.add(1, ordering: .relaxed)
    context.entry?.wake()
    guard label == TextRoomChannel.label, let text = room?.join() else { return }
    _ = session.channels.hold(text, isText: true, label: label, at: context.clock.now)
  }

  func closed(_ label: String) {
    link(label)?.channels.subtract(1, ordering: .relaxed)
    if label == TextRoomChannel.label { room?.close() }
  }

  func received(_ bytes: [UInt8], isText: Bool, label: String, from session: CallSession) {
    if label == TextRoomChannel.label, room != nil { return received(room: bytes, from: session) }
    if let link = link(label) {
      if Self.put(bytes, isText: isText, into: link.down) {
        link.waker.wake()
      } else {
        link.lostDown.add(1, ordering: .relaxed)
      }
    } else if context.settings.hasDataPorts, label == context.settings.dataLabel {
      deliver(bytes, isText: isText)
    } else {
      post(bytes, isText: isText, label: label, from: session.peer)
    }
  }

  /// A message that came by the signalling.
  func received(_ bytes: [UInt8], isText: Bool, label: String, from peer: String) {
    if context.settings.hasDataPorts, label == context.settings.dataLabel {
      deliver(bytes, isText: isText)
    } else {
      post(bytes, isText: isText, label: label, from: peer)
    }
  }

  private func post(_ bytes: [UInt8], isText: Bool, label: String, from peer: String) {
    let content: DialogData.Content = isText ? .text(String(decoding: bytes, as: UTF8.self)) : .bytes(bytes)
    context.post(.data(DialogData(content, peer: peer, label: label)))
  }

  private func deliver(_ bytes: [UInt8], isText: Bool) {
    guard Self.put(bytes, isText: isText, into: context.exchange.dataDown) else {
      context.exchange.lostDown.add(1, ordering: .relaxed)
      return
    }
    context.exchange.waker.wake()
  }

  private func received(room bytes: [UInt8], from session: CallSession) {
    for outcome in room?.read(bytes) ?? [] {
      switch outcome {
      case .text(let text) where context.settings.hasDataPorts: deliver(Array(text.utf8), isText: true)
      case .text: break
      case .event(let event): context.post(event)
      case .failed(let error): context.note(.session(session.id, .failed(error)))
      }
    }
    context.entry?.wake()
  }

  func tooLarge(_ count: Int, label: String, from session: CallSession) {
    let text =
      "a message of \(count) bytes on the data channel \"\(label)\" of \(session.peer) is too large: dropped"
    context.post(.receivedTooLarge, RTCError.tooLarge.error(text, reaction: .continue))
  }

  func refused(_ text: String, from session: CallSession) {
    let text = "a data channel of \(session.peer) is refused: \(text)"
    context.post(.refusedChannel, RTCError.sctpFailed.error(text, reaction: .continue))
  }

  // MARK: Parts

  private func link(_ label: String) -> DataLink? {
    for case .link(let link) in ports where link.label == label { return link }
    return nil
  }

  /// A message for a channel has waited for too long.
  func gaveUp(_ label: String) {
    complain("the data channel \"\(label)\" does not take messages; what is sent is dropped")
  }

  private func complain(_ text: String) {
    guard !hasComplained else { return }
    hasComplained = true
    context.post(.error(RTCError.sctpFailed.error(text, reaction: .continue)))
  }

  private func lose(_ port: ChannelPort) {
    if case .link(let link) = port { link.lostUp.add(1, ordering: .relaxed) } else { lostUp += 1 }
  }

  private static func up(_ port: ChannelPort) -> ByteQueue {
    switch port {
    case .node(let exchange, _, _): exchange.dataUp
    case .link(let link): link.up
    }
  }

  private static func waker(_ port: ChannelPort) -> Waker {
    switch port {
    case .node(let exchange, _, _): exchange.waker
    case .link(let link): link.waker
    }
  }

  /// False: there is no room.
  private static func put(_ bytes: [UInt8], isText: Bool, into queue: ByteQueue) -> Bool {
    guard bytes.count <= RTCExchange.dataBytes, queue.hasRoom(bytes.count) else { return false }
    unsafe queue.put(isText ? MediaRecord.text : MediaRecord.binary, count: bytes.count) { target in
      for index in bytes.indices { unsafe target[index] = bytes[index] }
    }
    return true
  }
}
