public import MillraceCore

extension Catalogue {
  /// The nodes of this target: sessions of WebRTC by WHIP, WHEP, RTS, Janus and open rooms, their data channels, and plain RTP.
  public static var rtc: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(RTCWHIP.self)
    catalogue.add(RTCWHEP.self)
    catalogue.add(RTCRTS.self)
    catalogue.add(RTCJanus.self)
    catalogue.add(RTCRoom.self)
    catalogue.add(RTCPeer.self)
    catalogue.add(RTCData.self)
    catalogue.add(RTCRTP.self)
    return catalogue
  }
}
