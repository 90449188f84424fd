internal import MillraceCore

/// What a call knows of one of its sessions.
struct CallSessionState {
  enum Phase: Equatable {
    /// This side's offer is being made.
    case offering
    /// The offer is on its way.
    case waiting(until: Nanoseconds)
    /// This side's answer is being made.
    case answering
    /// Both descriptions are there.
    case connecting
    case connected
    case interrupted(until: Nanoseconds)
    /// An offer with new credentials was asked for, or is on its way.
    case restarting(until: Nanoseconds)
  }

  var phase: Phase
  let peer: String?
  /// Offers of the peer that are being answered, by one answer to the latest.
  var pendingOffers = 0
  var wasConnected = false
  /// Media is expected as soon as this side has sent some.
  var awaitsSending = false
  var mediaBy: Nanoseconds?

  init(_ phase: Phase, peer: String? = nil) {
    self.phase = phase
    self.peer = peer
  }

  var deadline: Nanoseconds? {
    switch phase {
    case .waiting(let time), .interrupted(let time), .restarting(let time): time
    case .connected: mediaBy
    case .offering, .answering, .connecting: nil
    }
  }

  /// True when an answer is waited for.
  mutating func takeAnswer() -> Bool {
    switch phase {
    case .waiting:
      phase = .connecting
      return true
    case .restarting: return true
    case .offering, .answering, .connecting, .connected, .interrupted: return false
    }
  }
}
