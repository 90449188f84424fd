internal import CMediaShim
internal import Glibc
internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// What lies under a connection, the same for both directions: TCP without delay, bounded waiting, and TLS that is verified.
///
/// libavformat believes every certificate unless it is told not to. Here it is always told: somebody who is believed has to vouch for
/// it, and it has to be the host's. A machine of one's own is believed by `roots`.
extension StreamAddress {
  /// How libavformat is to connect.
  /// - Parameter patience: the longest that a read or a write may take.
  func options(patience: Nanoseconds) -> [String: String] {
    // The library's own `timeout` makes a server of it.
    var options = [
      "rtmp_live": "live", "tcp_nodelay": "1", "rw_timeout": "\(max(1, patience / 1_000))",
    ]
    guard isSecure else { return options }
    options["tls_verify"] = "1"
    // Without it the library believes whom the system believes.
    options["ca_file"] = roots
    return options
  }

  /// Looks whether there are certificates in `roots`: the library itself would go on without, and refuse everybody.
  func checkRoots() throws(NodeProblem) {
    guard let roots else { return }
    guard FileCheck.isPlain(roots) else { throw Self.noCertificates(roots, ": it is no file") }
    guard let file = unsafe fopen(roots, "re") else {
      throw Self.noCertificates(roots, unsafe ": \(String(cString: strerror(errno)))")
    }
    defer { unsafe fclose(file) }
    var line: UnsafeMutablePointer<CChar>?
    var room = 0
    defer { unsafe free(line) }
    while unsafe getline(&line, &room, file) >= 0 {
      // RFC 7468, section 5.1.
      if let line = unsafe line, unsafe strncmp(line, "-----BEGIN CERTIFICATE-----", 27) == 0 { return }
    }
    throw Self.noCertificates(roots, "")
  }

  private static func noCertificates(_ path: String, _ reason: String) -> NodeProblem {
    NodeProblem(
      "\"\(path)\" cannot be read as certificates (PEM)\(reason)", parameter: "roots",
      cure: "name a file with the certificate of whoever vouches for the server")
  }

  /// Why the call that just failed on this thread did, where it was for what lies under RTMP: the host has no address, or TLS does not
  /// believe it. nil for all else.
  var cause: String? {
    // RTMP's own line comes later, and says no more than that there is no connection.
    let line = unsafe String(cString: millrace_av_first_log())
    if line.contains("Failed to resolve hostname") {
      let reason = line.split(separator: ": ").last.map { ": \($0)" } ?? ""
      return "the host \"\(host)\" has no address\(reason)"
    }
    return isSecure ? distrust(line) : nil
  }

  private func distrust(_ line: String) -> String? {
    if line.contains("does not match hostname") {
      return "the server's certificate is not that of \"\(host)\""
    }
    guard line.contains("certificate") else { return nil }
    let believed = roots.map { "that \"\($0)\" names" } ?? "this system believes (\"roots\" names others)"
    return "the certificate of \"\(host)\" does not verify: nobody \(believed) vouches for it"
  }
}
