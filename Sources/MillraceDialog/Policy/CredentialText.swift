/// Checks the text of keys and tokens, which most services take in a header.
public enum CredentialText {
  /// True when a text may be sent in a header: control characters other than tabs are not allowed there (RFC 9110 section 5.5). Key files
  /// often end with a line break.
  public static func isHeaderValue(_ text: String) -> Bool {
    !text.utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }
  }
}
