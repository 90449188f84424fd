internal import MillraceAudio
internal import MillraceBailian
internal import MillraceCodecs
public import MillraceCore
internal import MillraceDevices
internal import MillraceDialog
internal import MillraceFlow
internal import MillraceVideo
internal import MillraceWebSocket

extension Catalogue {
  /// Every node type that comes with Millrace. Add your own to a copy:
  ///
  /// ```swift
  /// var catalogue = Catalogue.standard
  /// catalogue.add(Parrot.self)
  /// ```
  public static let standard: Catalogue = {
    var catalogue = Catalogue()
    catalogue.add(contentsOf: .audioNodes)
    catalogue.add(contentsOf: .devices)
    catalogue.add(contentsOf: .codecs)
    catalogue.add(contentsOf: .videoNodes)
    catalogue.add(contentsOf: .flow)
    catalogue.add(contentsOf: .dialog)
    catalogue.add(contentsOf: .webSocket)
    catalogue.add(contentsOf: .bailian)
    return catalogue
  }()
}
