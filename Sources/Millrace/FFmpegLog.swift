internal import MillraceAudio

/// The log of FFmpeg's libraries, of which a process has one.
///
/// Millrace leaves it to the program: what you set by `av_log_set_callback` stays, and without it FFmpeg prints to standard error,
/// addresses of streams included. Errors of nodes then say what the library's number means. The program `millrace` takes the log.
public enum FFmpegLog {
  /// Takes the log for Millrace, permanently: nothing is printed, and errors of nodes quote the library's own words, without what is
  /// secret. Call it once, before the first graph. Any thread.
  public static func take() { LibraryMessage.takeLog() }
}
