public import MillraceCore

extension Catalogue {
  /// The nodes of this module: `opus.encode`, `opus.decode`, `ogg.write`, `ogg.read`, `mp3.decode`, `speech.play`, `speech.read` and
  /// `audio.jitter`.
  public static var codecs: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(OpusEncode.self)
    catalogue.add(OpusDecode.self)
    catalogue.add(OggWrite.self)
    catalogue.add(OggRead.self)
    catalogue.add(MP3Decode.self)
    catalogue.add(SpeechPlay.self)
    catalogue.add(SpeechRead.self)
    catalogue.add(AudioJitter.self)
    return catalogue
  }
}
