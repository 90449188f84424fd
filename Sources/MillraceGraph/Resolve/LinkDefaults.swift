package import MillraceCore

/// Capacity and policy of a link.
///
/// What the graph does not set depends on the pacing of the writer and on the format:
///
/// | writer | format | capacity | policy |
/// |---|---|---|---|
/// | waits | audio | 16 packets | block |
/// | waits | pictures | 4 packets | block |
/// | waits | pictures of a stream (H.264, VP8) | 16 packets | block |
/// | waits | text, events | 64 packets | block |
/// | paced, live | audio | 200 ms (64 packets when they have no fixed duration) | dropOldest |
/// | paced, live | pictures | 1 packet | latest |
/// | paced, live | pictures of a stream | 16 packets | dropOldest |
/// | paced, live | text, events | 64 packets | dropNewest |
///
/// Late audio is worth less than new audio, and an old picture nothing. A picture of a stream is needed to decode the next one, so that
/// half a second of them is kept; after a gap the reader waits for a key frame. Of texts and events the first ones are kept, since they
/// explain the rest; dropped packets are counted.
package enum LinkDefaults {
  /// The capacity of a link in packets, and its policy; nil selects the default.
  package static func resolve(
    capacity: LinkCapacity?, policy: LinkPolicy?, _ shape: OutputShape, pacing: Pacing
  ) -> (limit: Int, policy: LinkPolicy) {
    let policy = policy ?? self.policy(shape.format.kind, pacing)
    if policy == .latest { return (1, policy) }
    switch capacity {
    case .packets(let count): return (count, policy)
    case .time(let time): return (packets(of: time, shape) ?? LinkCapacity.packetRange.upperBound, policy)
    case nil: return (limit(shape, policy), policy)
    }
  }

  private static func policy(_ kind: Format.Kind, _ pacing: Pacing) -> LinkPolicy {
    if pacing == .waits { return .block }
    switch kind {
    case .pcm, .opus, .mp3, .ogg, .aac, .h264, .vp8: return .dropOldest
    case .video, .jpeg, .png: return .latest
    case .text, .event: return .dropNewest
    }
  }

  private static func limit(_ shape: OutputShape, _ policy: LinkPolicy) -> Int {
    switch shape.format.kind {
    case .text, .event: return 64
    case .video, .jpeg, .png: return 4
    case .h264, .vp8: return 16
    case .pcm, .opus, .mp3, .ogg, .aac:
      if policy == .block { return 16 }
      let packets = packets(of: .milliseconds(200), shape) ?? 64
      return min(packets, LinkCapacity.packetRange.upperBound)
    }
  }

  /// The number of packets with at least a duration; nil when packets have no fixed duration.
  static func packets(of time: Nanoseconds, _ shape: OutputShape) -> Int? {
    guard let duration = shape.packetDuration, duration > 0 else { return nil }
    return max(1, Int((time + duration - 1) / duration))
  }
}
