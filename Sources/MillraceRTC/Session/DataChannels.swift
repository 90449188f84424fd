package import MillraceCore
internal import MillraceRTCWire

/// The data channels over one SCTP association (RFC 8831): opened by DCEP (RFC 8832), closed by a reset of their streams.
///
/// Sans-IO, on the thread of the association. `open` may be called before the association is connected; the channel is opened then. Within
/// a report every function here may be called, but not while a message is sent or a stream reset. A peer that breaks a rule loses the
/// message or the channel, and keeps the others.
///
/// A stream is used again only when both sides have reset it. Channels on which the applications agreed without DCEP are not supported.
package final class DataChannels {
  /// Channels of a session at a time, of both sides together.
  package static let mostChannels = 256
  /// Bytes of a label or protocol of the peer: it could fill the memory with names otherwise.
  private static let mostTextBytes = 4_096
  private struct Channel {
    var request: DataChannelRequest
    var stream: UInt16
    /// False: its DATA_CHANNEL_OPEN was not sent yet.
    var isOpen: Bool
    /// The peer is known to know of it.
    var isAcknowledged: Bool
  }

  private let largestRemote: Int
  private let sendMessage: ([UInt8], UInt16, UInt32, SCTPAssociation.Delivery) -> SCTPAssociation.Result
  private let report: (DataChannelEvent) -> Void

  private var streams: DataChannelStreams
  /// Messages that come in parts of the deprecated kind.
  private var partial = PartialMessages(
    largest: SCTPAssociation.largestMessage, room: Int(SCTPAssociation.bufferBytes))
  private var lastNumber = 0
  private var channels: [Int: Channel] = [:]
  /// The channel of a stream.
  private var numbers: [UInt16: Int] = [:]
  /// Channels to open, in the order of the calls.
  private var waiting: [Int] = []
  /// Streams on which a DATA_CHANNEL_ACK found no room.
  private var acknowledgements: [UInt16] = []
  private var isConnected = false
  private var hasEnded = false

  /// Creates the channels of an association.
  /// - Parameters:
  ///   - isClient: of DTLS: the client opens even streams, the server odd ones (RFC 8832 section 6).
  ///   - largestRemote: bytes of the largest message that the peer takes; 0: any.
  ///   - send: sends a message: its bytes, stream and payload protocol identifier.
  ///   - close: resets the outgoing half of a stream; false: not now.
  ///   - report: receives what happens, within `take` and `run`, and within `close` that the channel is closed.
  package init(
    isClient: Bool, largestRemote: Int,
    send:
      @escaping ([UInt8], _ stream: UInt16, _ ppid: UInt32, SCTPAssociation.Delivery) ->
      SCTPAssociation.Result,
    close: @escaping (UInt16) -> Bool, report: @escaping (DataChannelEvent) -> Void
  ) {
    streams = DataChannelStreams(role: isClient ? .client : .server, reset: close)
    self.largestRemote = largestRemote
    sendMessage = send
    self.report = report
  }

  // MARK: This side

  /// Opens a channel, at the next `run` after the association has connected; `opened` tells when it can be used.
  /// - Returns: its number; nil: there are too many, a text is too long, or the association has ended.
  package func open(_ request: DataChannelRequest) -> Int? {
    let most = DataChannelOpen.maximumTextBytes
    guard !hasEnded, channels.count < Self.mostChannels, request.label.utf8.count <= most,
      request.protocolName.utf8.count <= most, let stream = streams.allocate()
    else { return nil }
    let number = add(Channel(request: request, stream: stream, isOpen: false, isAcknowledged: false))
    waiting.append(number)
    return number
  }

  /// Sends a message; a text has to be UTF-8. `full`: to be tried again later, also on a channel that is not open yet. `tooLarge`: larger
  /// than the peer takes. `unsent`: there is no such channel.
  package func send(_ bytes: [UInt8], isText: Bool, on number: Int) -> SCTPAssociation.Result {
    guard let channel = channels[number] else { return .unsent }
    guard largestRemote == 0 || bytes.count <= largestRemote else { return .tooLarge }
    guard channel.isOpen else { return .full }
    var delivery = channel.request.delivery
    // It would overtake the message that opens the channel (RFC 8832 section 6).
    if !channel.isAcknowledged { delivery.isOrdered = true }
    let kind = DataChannelPPID(isText: isText, isEmpty: bytes.isEmpty)
    // SCTP has no empty messages.
    return sendMessage(bytes.isEmpty ? [0] : bytes, channel.stream, kind.rawValue, delivery)
  }

  /// Closes a channel. What was sent before still arrives. A number without a channel is ignored.
  package func close(_ number: Int) {
    guard let channel = remove(number) else { return }
    if channel.isOpen {
      streams.close(channel.stream, isResetByPeer: false)
    } else {
      streams.release(channel.stream)
    }
    report(.closed(channel: number))
  }

  /// True when `run` has something to do.
  package var wantsRun: Bool {
    isConnected && (!waiting.isEmpty || !acknowledgements.isEmpty || streams.wantsRun)
  }

  /// Opens channels, and tries again what found no room. After every tick of SCTP.
  package func run(at now: Nanoseconds) {
    guard isConnected else { return }
    sendAcknowledgements()
    streams.run(at: now)
    openChannels()
  }

  private func openChannels() {
    // A report may open or close others.
    for number in waiting {
      guard isConnected, let channel = channels[number] else { continue }
      let request = channel.request
      let open = DataChannelOpen(
        label: request.label, subprotocol: request.protocolName,
        reliability: DataChannelReliability(request.delivery.reliability),
        isOrdered: request.delivery.isOrdered)
      switch sendControl(.open(open), channel.stream) {
      case .full: continue
      case .sent:
        waiting.removeAll { $0 == number }
        channels[number]?.isOpen = true
        report(
          .opened(
            channel: number, label: request.label, protocolName: request.protocolName, isRemote: false))
      case .tooLarge, .unsent: close(number)
      }
    }
  }

  private func sendAcknowledgements() {
    acknowledgements = acknowledgements.filter { sendControl(.acknowledgement, $0) == .full }
  }

  private func sendControl(_ message: DataChannelMessage, _ stream: UInt16) -> SCTPAssociation.Result {
    var bytes = [UInt8](repeating: 0, count: message.byteCount)
    do throws(DataChannelProblem) {
      var target = bytes.mutableSpan
      try message.write(into: &target)
    } catch {
      return .unsent
    }
    return sendMessage(bytes, stream, DataChannelPPID.control.rawValue, SCTPAssociation.Delivery())
  }

  // MARK: The peer

  /// Takes what the association reports.
  package func take(_ event: SCTPAssociation.Event) {
    guard !hasEnded else { return }
    switch event {
    case .connected: connect()
    case .ended: end()
    case .closed(let closed):
      for stream in closed.isEmpty ? Array(numbers.keys) + streams.closing : closed { takeReset(of: stream) }
    case .message(let stream, let ppid, let bytes): take(bytes, stream, ppid)
    case .tooLarge(let stream, let count):
      guard let number = numbers[stream] else {
        return refuse("the peer sends a message of \(count) bytes on stream \(stream), which no channel has")
      }
      report(.tooLarge(channel: number, count: count))
    }
  }

  private func connect() {
    // The peer has begun the association again: it knows nothing of the channels.
    if isConnected { forgetStreams() }
    isConnected = true
    openChannels()
  }

  private func forgetStreams() {
    acknowledgements = []
    let lost = channels.filter { $0.value.isOpen }.keys.sorted()
    for number in lost { _ = remove(number) }
    streams.restart(keeping: waiting.compactMap { channels[$0]?.stream })
    for number in lost { report(.closed(channel: number)) }
  }

  private func end() {
    hasEnded = true
    isConnected = false
    channels = [:]
    numbers = [:]
    partial.removeAll()
    waiting = []
    acknowledgements = []
    report(.ended)
  }

  private func take(_ bytes: [UInt8], _ stream: UInt16, _ ppid: UInt32) {
    guard let kind = DataChannelPPID(rawValue: ppid) else {
      return refuse("the peer sends a message of the unknown kind \(ppid) on stream \(stream)")
    }
    guard kind != .control else { return takeControl(bytes, stream) }
    guard let number = numbers[stream], channels[number]?.isOpen == true else {
      // Until the peer learns that the channel is closed, its messages are no fault.
      guard !streams.isClosing(stream) else { return }
      return refuse("the peer sends a message on stream \(stream), which no channel has")
    }
    channels[number]?.isAcknowledged = true
    let content = kind.isEmpty ? [] : bytes
    guard !kind.isDeprecated else { return addPart(content, to: number) }
    finish(content, isText: kind.isText, on: number)
  }

  private func addPart(_ bytes: [UInt8], to number: Int) {
    guard let channel = channels[number] else { return }
    _ = partial.add(bytes, stream: channel.stream, isEnd: false)
  }

  /// The end of a message, which is the whole of it but for peers from before SCTP could interleave parts.
  private func finish(_ bytes: [UInt8], isText: Bool, on number: Int) {
    guard let channel = channels[number] else { return }
    switch partial.add(bytes, stream: channel.stream, isEnd: true) {
    case .incomplete: break
    case .dropped(let count): report(.tooLarge(channel: number, count: count))
    case .message(let whole):
      guard !isText || String(validating: whole, as: UTF8.self) != nil else {
        return refuse("the peer sends a text on stream \(channel.stream) that is not UTF-8")
      }
      report(.message(channel: number, bytes: whole, isText: isText))
    }
  }

  private func takeControl(_ bytes: [UInt8], _ stream: UInt16) {
    let message: DataChannelMessage
    do throws(DataChannelProblem) {
      message = try DataChannelMessage(parsing: bytes.span, maximumTextBytes: Self.mostTextBytes)
    } catch {
      refuse("\(error) (stream \(stream))")
      // A message of a later version of the protocol is no reason to close.
      if case .unknownMessage = error { return }
      return closeFaulty(stream)
    }
    switch message {
    case .open(let open): accept(open, stream)
    case .acknowledgement: takeAcknowledgement(stream)
    }
  }

  private func takeAcknowledgement(_ stream: UInt16) {
    guard let number = numbers[stream], channels[number]?.isOpen == true else {
      guard !streams.isClosing(stream) else { return }
      return refuse("the peer acknowledges a data channel on stream \(stream), where none was opened")
    }
    channels[number]?.isAcknowledged = true
  }

  private func accept(_ open: DataChannelOpen, _ stream: UInt16) {
    guard channels.count < Self.mostChannels else {
      refuse("the peer opens more than \(Self.mostChannels) data channels")
      return closeFaulty(stream)
    }
    do throws(DataChannelProblem) { try streams.accept(stream) } catch {
      refuse("\(error)")
      return closeFaulty(stream)
    }
    var delivery = SCTPAssociation.Delivery()
    delivery.isOrdered = open.isOrdered
    delivery.reliability = SCTPAssociation.Delivery.Reliability(open.reliability)
    let request = DataChannelRequest(
      label: open.label, protocolName: open.subprotocol, delivery: delivery)
    let number = add(Channel(request: request, stream: stream, isOpen: true, isAcknowledged: true))
    acknowledgements.append(stream)
    sendAcknowledgements()
    report(
      .opened(
        channel: number, label: request.label, protocolName: request.protocolName, isRemote: true))
  }

  // MARK: Streams

  private func add(_ channel: Channel) -> Int {
    lastNumber += 1
    channels[lastNumber] = channel
    numbers[channel.stream] = lastNumber
    return lastNumber
  }

  private func remove(_ number: Int) -> Channel? {
    guard let channel = channels.removeValue(forKey: number) else { return nil }
    numbers[channel.stream] = nil
    partial.remove(channel.stream)
    waiting.removeAll { $0 == number }
    acknowledgements.removeAll { $0 == channel.stream }
    return channel
  }

  /// The peer has closed its half of a stream.
  private func takeReset(of stream: UInt16) {
    if let number = numbers[stream] {
      // A channel that was not opened yet is none the peer could close.
      guard channels[number]?.isOpen == true, remove(number) != nil else { return }
      streams.close(stream, isResetByPeer: true)
      report(.closed(channel: number))
    } else {
      streams.takeReset(of: stream)
    }
  }

  /// Closes what a faulty message of the peer was about (RFC 8832 section 6), whether it is a channel or not.
  private func closeFaulty(_ stream: UInt16) {
    if let number = numbers[stream] { return close(number) }
    streams.refuse(stream)
  }

  private func refuse(_ text: String) { report(.refused(text)) }
}
