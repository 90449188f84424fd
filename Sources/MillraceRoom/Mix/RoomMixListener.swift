/// Takes the mix of a room for a member. On the thread of its `RoomMixer`.
package protocol RoomMixListener: AnyObject {
  /// Takes a packet of Opus of `RoomMixer.frame` samples. It is valid only during the call, in which the mixer must not be changed.
  /// - Parameters:
  ///   - pause: samples that were not sent before it.
  ///   - level: of its sound, in dBFS.
  func mixed(_ payload: Span<UInt8>, pause: Int, level: Double)
}
