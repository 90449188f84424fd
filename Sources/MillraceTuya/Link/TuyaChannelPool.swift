public import MillraceDialog

/// The data channels of a session: their kinds and numbers, in the order of its terms.
public struct TuyaChannels: Sendable, Hashable {
  /// A channel.
  public struct Channel: Sendable, Hashable {
    /// What goes over it.
    public var kind: TuyaDataKind
    /// Its number on the wire.
    public var id: UInt16
  }

  /// The channels to the cloud.
  public var sends: [Channel]
  /// The channels of the cloud.
  public var receives: [Channel]

  /// The number of a channel to the cloud.
  /// - Throws: code 39007 where there is none, or several and none is named.
  public func id(of name: TuyaChannelName) throws(DialogError) -> UInt16 {
    let all = sends.filter { $0.kind == name.kind }
    let kind = name.kind.rawValue
    guard !all.isEmpty else {
      throw .tuya(.invalidChannel, "the agent takes no \(kind); its token does not list it", scope: .command)
    }
    guard let index = name.index else {
      guard all.count == 1 else {
        throw .tuya(
          .invalidChannel, "the agent has \(all.count) channels for \(kind); name one by its number",
          scope: .command)
      }
      return all[0].id
    }
    guard all.indices.contains(index) else {
      throw .tuya(
        .invalidChannel, "the agent has \(all.count) channels for \(kind), and no number \(index)",
        scope: .command)
    }
    return all[index].id
  }

  /// What comes over a channel of the cloud; nil: it is not one of this session.
  public func kind(ofReceived id: UInt16) -> TuyaDataKind? { receives.first { $0.id == id }?.kind }
}

/// The numbers of the data channels of one connection: odd ones to the cloud, from 1, even ones of the cloud, from 2, and those that are
/// reserved for data that several sessions take. Pure.
///
/// Each session has numbers of its own, so that what the cloud sends finds it. Those of a session that has ended rest as long as possible,
/// as packets for it may still be under way: the oldest is given out first. To the cloud, numbers below the reserved ones come first, also
/// those that have rested, and those behind them only when all of these are in use.
public struct TuyaChannelPool: Sendable {
  /// Odd numbers from here to `afterReserved` are reserved for sharing. Source: the allocator of the vendor's client, which continues at 121.
  static let reserved: UInt16 = 101
  private static let afterReserved: UInt16 = 121
  /// Numbers from here on are not given out.
  private static let end: UInt16 = 4_001
  /// How many videos can be shared besides the first.
  private static let extraVideos = 5

  /// The numbers that are in use, and by how many sessions.
  private var used: [UInt16: Int] = [:]
  /// The next fresh numbers: even ones, and odd ones.
  private var fresh: [UInt16] = [2, 1]
  /// Numbers that were given back, the oldest first: even ones, and odd ones.
  private var resting: [[UInt16]] = [[], []]

  /// Creates a pool in which every number is free.
  public init() {}

  /// True for a number on which several sessions may send the same data.
  static func isReserved(_ id: UInt16) -> Bool {
    id % 2 == 1 && id >= reserved && id < afterReserved
  }

  /// The numbers reserved for data that several sessions take. Source: the vendor's list of stream ids.
  static func shared(_ kind: TuyaDataKind, _ index: Int) -> UInt16? {
    switch kind {
    case .video: index <= extraVideos ? (index == 0 ? 101 : UInt16(109 + 2 * index)) : nil
    case .audio: index == 0 ? 103 : nil
    case .image: index == 0 ? 105 : nil
    case .file: index == 0 ? 107 : nil
    case .text: index == 0 ? 109 : nil
    }
  }

  /// Takes the channels for a session.
  /// - Parameters:
  ///   - terms: of its token.
  ///   - isShared: what it sends goes over reserved numbers.
  /// - Returns: nil where the numbers are exhausted.
  public mutating func take(_ terms: TuyaTerms, isShared: Bool) -> TuyaChannels? {
    var channels = TuyaChannels(sends: [], receives: [])
    var counts: [TuyaDataKind: Int] = [:]
    for kind in terms.sends {
      let index = counts[kind, default: 0]
      counts[kind] = index + 1
      let id = isShared ? Self.shared(kind, index) : nil
      guard let id = id ?? free(isOdd: true) else {
        give(back: channels)
        return nil
      }
      used[id, default: 0] += 1
      channels.sends.append(TuyaChannels.Channel(kind: kind, id: id))
    }
    for kind in terms.receives {
      guard let id = free(isOdd: false) else {
        give(back: channels)
        return nil
      }
      used[id, default: 0] += 1
      channels.receives.append(TuyaChannels.Channel(kind: kind, id: id))
    }
    return channels
  }

  /// Gives back the channels of a session that has ended.
  public mutating func give(back channels: TuyaChannels) {
    for channel in channels.sends + channels.receives {
      let left = (used[channel.id] ?? 1) - 1
      used[channel.id] = left > 0 ? left : nil
      if left == 0 && !Self.isReserved(channel.id) { resting[Int(channel.id % 2)].append(channel.id) }
    }
  }

  /// A number that nobody uses.
  /// - Parameter isOdd: to the cloud.
  private mutating func free(isOdd: Bool) -> UInt16? {
    let kind = isOdd ? 1 : 0
    // Of the even ones none is reserved.
    let low = isOdd ? Self.reserved : Self.end
    if fresh[kind] < low { return nextFresh(kind) }
    if let index = resting[kind].firstIndex(where: { $0 < low }) { return resting[kind].remove(at: index) }
    if !resting[kind].isEmpty { return resting[kind].removeFirst() }
    return fresh[kind] < Self.end ? nextFresh(kind) : nil
  }

  private mutating func nextFresh(_ kind: Int) -> UInt16 {
    defer {
      fresh[kind] += 2
      if Self.isReserved(fresh[kind]) { fresh[kind] = Self.afterReserved }
    }
    return fresh[kind]
  }
}
