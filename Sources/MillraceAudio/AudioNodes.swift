public import MillraceCore

extension Catalogue {
  /// The audio nodes: files, test signals and PCM processing.
  public static let audioNodes: Catalogue = {
    var catalogue = Catalogue()
    catalogue.add(AudioRead.self)
    catalogue.add(AudioWrite.self)
    catalogue.add(AudioRecord.self)
    catalogue.add(AudioTone.self)
    catalogue.add(AudioResample.self)
    catalogue.add(AudioConvert.self)
    catalogue.add(AudioMix.self)
    catalogue.add(AudioFileMix.self)
    catalogue.add(AudioGain.self)
    catalogue.add(AudioLevel.self)
    catalogue.add(AudioVAD.self)
    catalogue.add(AudioDenoise.self)
    catalogue.add(AudioAutoGain.self)
    catalogue.add(AudioEchoCancel.self)
    return catalogue
  }()
}
