public import MillraceCore

extension Catalogue {
  /// The nodes at a graph's ends that are sound devices.
  public static let devices: Catalogue = {
    var catalogue = Catalogue()
    catalogue.add(AudioCapture.self)
    catalogue.add(AudioPlay.self)
    return catalogue
  }()
}
