/// What the media of a session notice about the sources of the peer.
package protocol SourceObserver: AnyObject {
  /// A source is over, also one of which nothing was heard or that only repeats another: SRTP need not remember it.
  func sourceLeft(_ ssrc: UInt32)
}
