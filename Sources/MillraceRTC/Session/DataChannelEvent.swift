internal import MillraceRTCWire

/// A data channel that is to be opened.
package struct DataChannelRequest: Sendable, Hashable {
  /// Its name, which need not be unique; at most 65,535 bytes.
  package var label: String
  /// The name of the protocol that its messages speak; empty: none. At most 65,535 bytes.
  package var protocolName: String
  /// How the messages of this side are delivered. The peer is asked to deliver its own alike.
  package var delivery: SCTPAssociation.Delivery

  package init(
    label: String, protocolName: String = "",
    delivery: SCTPAssociation.Delivery = SCTPAssociation.Delivery()
  ) {
    self.label = label
    self.protocolName = protocolName
    self.delivery = delivery
  }
}

/// What has happened on the data channels of a session.
package enum DataChannelEvent: Sendable, Equatable {
  /// A channel can be used from now on.
  case opened(channel: Int, label: String, protocolName: String, isRemote: Bool)
  /// A whole message. A text is valid UTF-8.
  case message(channel: Int, bytes: [UInt8], isText: Bool)
  /// A message of the peer was larger than this side takes, and was dropped.
  case tooLarge(channel: Int, count: Int)
  /// A channel is closed, by either side. Nothing more of it follows.
  case closed(channel: Int)
  /// The peer broke a rule; the text says which. It may do so without end: who reports it further limits that.
  case refused(String)
  /// The association has ended: all channels are gone, without a `closed` each.
  case ended
}

extension DataChannelReliability {
  init(_ reliability: SCTPAssociation.Delivery.Reliability) {
    switch reliability {
    case .complete: self = .reliable
    case .lifetime(let milliseconds): self = .lifetime(milliseconds: milliseconds)
    case .retransmissions(let count): self = .retransmissions(count)
    }
  }
}

extension SCTPAssociation.Delivery.Reliability {
  init(_ reliability: DataChannelReliability) {
    switch reliability {
    case .reliable: self = .complete
    case .lifetime(let milliseconds): self = .lifetime(milliseconds: milliseconds)
    case .retransmissions(let count): self = .retransmissions(count)
    }
  }
}
