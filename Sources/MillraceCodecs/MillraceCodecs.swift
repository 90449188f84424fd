public import MillraceCore

extension Catalogue {
  /// The nodes of this target: `opus.encode`.
  public static var codecs: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(OpusEncode.self)
    return catalogue
  }
}
