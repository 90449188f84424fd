import Glibc

/// Recorded speech from Debian's package pocketsphinx-testdata: five sentences of one LibriVox reader, in the public domain. WAV at 16 kHz,
/// mono, 16 bits, 25 s in total.
public enum InstalledSpeech {
  /// The names of the sentences.
  public static let names = ["0870", "0880", "0890", "0920", "0930"]

  /// The path of a sentence's file, which may not exist.
  public static func path(_ name: String) -> String {
    "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-\(name).wav"
  }

  /// Whether all files exist.
  public static let isInstalled = names.allSatisfy { access(path($0), R_OK) == 0 }

  /// The reason a skipped test gives.
  public static let skipReason = "the package pocketsphinx-testdata is not installed; run make deps"
}
