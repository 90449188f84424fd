public import MillraceCore

extension Catalogue {
  /// The nodes of this target: `opus.encode`, `opus.decode`, `ogg.write`, `ogg.read`.
  public static var codecs: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(OpusEncode.self)
    catalogue.add(OpusDecode.self)
    catalogue.add(OggWrite.self)
    catalogue.add(OggRead.self)
    return catalogue
  }
}
