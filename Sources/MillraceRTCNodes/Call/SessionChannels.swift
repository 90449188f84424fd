internal import MillraceCore
internal import MillraceRTC
internal import Synchronization

/// One end of data channels of one name within this program: the node's ports `data`, or a `DataLink`.
enum ChannelPort {
  case node(RTCExchange, label: String, SCTPAssociation.Delivery)
  case link(DataLink)

  var label: String {
    switch self {
    case .node(_, let label, _): label
    case .link(let link): link.label
    }
  }

  var request: DataChannelRequest {
    switch self {
    case .node(_, let label, let delivery):
      DataChannelRequest(label: label, protocolName: "", delivery: delivery)
    case .link(let link):
      DataChannelRequest(label: link.label, protocolName: "", delivery: link.delivery)
    }
  }
}

/// The data channels of one session. On the thread of its loop.
final class SessionChannels {
  /// Messages and bytes that wait for a channel that is being opened, at most.
  private static let mostHeld = 64
  private static let mostHeldBytes = 1 << 20

  private struct Held {
    var label: String
    var bytes: [UInt8]
    var isText: Bool
    var since: Nanoseconds
  }

  /// Takes what the channels of a session report.
  private unowned let owner: CallChannels
  private var labels: [Int: String] = [:]
  private var channels: [String: Int] = [:]
  /// Names of channels that were asked for, and their numbers.
  private var requested: [String: Int] = [:]

  /// What commands send, and what a room begins with, in its order.
  private var held: [Held] = []

  init(_ owner: CallChannels) { self.owner = owner }

  /// The channel with a name; nil: it is not open.
  func channel(_ label: String) -> Int? { channels[label] }

  /// Opens a channel, unless it is there or was asked for.
  func open(_ request: DataChannelRequest, in session: CallSession) {
    let label = request.label
    guard channels[label] == nil, requested[label] == nil else { return }
    // There is none where the session has too many: it is tried again.
    if let number = session.session?.openChannel(request) { requested[label] = number }
  }

  /// Leaves a message for a channel, to be sent by `flush`. False: too many wait.
  func hold(_ bytes: [UInt8], isText: Bool, label: String, at now: Nanoseconds) -> Bool {
    let all = held.reduce(bytes.count) { $0 + $1.bytes.count }
    guard held.count < Self.mostHeld, all <= Self.mostHeldBytes else { return false }
    held.append(Held(label: label, bytes: bytes, isText: isText, since: now))
    return true
  }

  /// A message for this channel waits: others go behind it.
  func isHolding(_ label: String) -> Bool { held.contains { $0.label == label } }

  /// Sends what has waited. True when more does.
  /// - Parameter oldest: what has waited since before then is given up, and reported to the owner.
  func flush(in session: CallSession, oldest: Nanoseconds) -> Bool {
    let waiting = held
    held = []
    var left: [Held] = []
    for message in waiting {
      let isBehind = left.contains { $0.label == message.label }
      guard !isBehind, let channel = channels[message.label], let open = session.session,
        open.send(message: message.bytes, isText: message.isText, on: channel) != .full
      else {
        if message.since < oldest { owner.gaveUp(message.label) } else { left.append(message) }
        continue
      }
    }
    held = left + held
    return !held.isEmpty
  }

  /// Closes the channel with a name.
  func close(_ label: String, in session: CallSession) {
    guard let channel = channels[label] ?? requested[label] else { return }
    session.session?.closeChannel(channel)
    remove(channel)
  }

  /// The session has ended.
  func close() {
    for channel in Array(labels.keys) { remove(channel) }
    requested = [:]
    held = []
  }

  func take(_ event: DataChannelEvent, from session: CallSession) {
    switch event {
    case .opened(let channel, let label, _, _):
      labels[channel] = label
      requested[label] = nil
      // Both sides may have opened one: what is sent takes the first.
      if channels[label] == nil {
        channels[label] = channel
        owner.opened(label, in: session)
      }
    case .message(let channel, let bytes, let isText):
      owner.received(bytes, isText: isText, label: labels[channel] ?? "", from: session)
    case .tooLarge(let channel, let count):
      owner.tooLarge(count, label: labels[channel] ?? "", from: session)
    case .closed(let channel): remove(channel)
    case .refused(let text): owner.refused(text, from: session)
    case .ended: close()
    }
  }

  private func remove(_ channel: Int) {
    if let label = requested.first(where: { $0.value == channel })?.key { requested[label] = nil }
    guard let label = labels.removeValue(forKey: channel), channels[label] == channel else { return }
    channels[label] = labels.first { $0.value == label }?.key
    if channels[label] == nil { owner.closed(label) }
  }
}
