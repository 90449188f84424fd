public import MillraceCore

extension Catalogue {
  /// The nodes that record from and play to audio devices.
  public static let devices: Catalogue = {
    var catalogue = Catalogue()
    catalogue.add(AudioCapture.self)
    catalogue.add(AudioPlay.self)
    return catalogue
  }()
}
