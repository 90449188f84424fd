internal import MillraceAudio
internal import MillraceBailian
internal import MillraceCodecs
public import MillraceCore
internal import MillraceDialog
internal import MillraceFlow
internal import MillraceWebSocket

#if Devices
  internal import MillraceDevices
#endif
#if Video
  internal import MillraceVideo
#endif

extension Catalogue {
  /// Every node type that comes with Millrace; without those of the traits `Devices` and `Video` where the package was built without
  /// them. Add your own to a copy:
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
    return catalogue
  }()
}
