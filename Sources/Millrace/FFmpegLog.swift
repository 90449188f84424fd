internal import MillraceAudio

/// The log of FFmpeg's libraries. There is one per process.
///
/// Millrace leaves it to the program: a callback set with `av_log_set_callback` stays, and without one FFmpeg prints to standard error,
/// stream addresses included. Node errors then describe the library's error number only. The program `millrace` captures the log.
public enum FFmpegLog {
  /// Captures the log permanently: FFmpeg prints nothing, and node errors quote its messages with secrets removed. Call it once, before
  /// the first graph. Any thread.
  public static func capture() { LibraryMessage.takeLog() }
}
