/// A figure for Millrace and the same for the media framework, measured in turns.
func beside(
  _ suite: String, _ name: String, unit: String, goal: String = "", rounds: Int,
  ours: @escaping () throws -> Double, theirs: @escaping (any PipelinePeer) throws -> Double
) throws -> [Figure] {
  guard let peer = Peers.pipeline, peer.missing == nil else {
    let samples = try inTurns(rounds: rounds, [ours])[0]
    return [
      Figure(suite, name, unit: unit, goal: goal, samples: samples),
      ofPeer(suite, name, unit: unit, samples: []),
    ]
  }
  let samples = try inTurns(rounds: rounds, [ours, { try theirs(peer) }])
  return [
    Figure(suite, name, unit: unit, goal: goal, samples: samples[0]),
    ofPeer(suite, name, unit: unit, samples: samples[1]),
  ]
}

/// The media framework's figure; a skipped one with the reason when the framework is missing.
func ofPeer(_ suite: String, _ name: String, unit: String, samples: [Double]) -> Figure {
  let peer = Peers.pipeline
  guard let peer, peer.missing == nil else {
    return Figure(suite, name, of: peer?.name ?? "gstreamer", skipped: peer?.missing ?? Peers.absent)
  }
  return Figure(suite, name, of: peer.name, unit: unit, samples: samples)
}
