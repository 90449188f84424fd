internal import MillraceAudio
internal import MillraceBailian
internal import MillraceCodecs
public import MillraceCore
internal import MillraceDialog
internal import MillraceFlow
internal import MillraceIVH
internal import MillraceTuya
internal import MillraceWebSocket

#if Devices
  internal import MillraceDevices
#endif
#if Video
  internal import MillraceVideo
#endif
#if RTC
  internal import MillraceRTCNodes
#endif

extension Catalogue {
  /// Every node type that comes with Millrace. A package built without the traits `Devices`, `Video` or `RTC` does not have their nodes. Add
  /// your own nodes to a copy:
  ///
  /// ```swift
  /// var catalogue = Catalogue.standard
  /// catalogue.add(Parrot.self)
  /// ```
  public static let standard: Catalogue = {
    var catalogue = Catalogue()
    catalogue.add(contentsOf: .audioNodes)
    #if Devices
      catalogue.add(contentsOf: .devices)
    #endif
    catalogue.add(contentsOf: .codecs)
    #if Video
      catalogue.add(contentsOf: .videoNodes)
    #endif
    catalogue.add(contentsOf: .flow)
    catalogue.add(contentsOf: .dialog)
    catalogue.add(contentsOf: .webSocket)
    catalogue.add(contentsOf: .bailian)
    catalogue.add(contentsOf: .ivh)
    catalogue.add(contentsOf: .tuya)
    #if RTC
      catalogue.add(contentsOf: .rtc)
    #endif
    return catalogue
  }()
}
