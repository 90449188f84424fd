public import MillraceCore

extension Catalogue {
  /// The nodes of this target: `opus.encode`, `opus.decode`.
  public static var codecs: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(OpusEncode.self)
    catalogue.add(OpusDecode.self)
    return catalogue
  }
}
