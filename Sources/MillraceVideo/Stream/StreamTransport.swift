internal import CMediaShim
internal import Glibc
internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// The transport of a connection, the same for both directions: TCP without delay, bounded waiting, and verified TLS.
///
/// libavformat trusts every certificate by default. Here verification is always on: the certificate has to be trusted and has to match the
/// host. `roots` adds trust for private servers.
extension StreamAddress {
  /// Connection options for libavformat.
  /// - Parameter timeout: longest time for a read or a write.
  func options(timeout: Nanoseconds) -> [String: String] {
    // The library's option `timeout` would make it listen as a server.
    var options = [
      "rtmp_live": "live", "tcp_nodelay": "1", "rw_timeout": "\(max(1, timeout / 1_000))",
    ]
    guard isSecure else { return options }
    options["tls_verify"] = "1"
    // Without it the library uses the system's certificates.
    options["ca_file"] = roots
    return options
  }

  /// Checks that the file `roots` of a node contains certificates: the library itself would continue without any, and trust no server.
  static func checkRoots(_ values: ParameterValues) throws(NodeProblem) {
    guard values.has("roots") else { return }
    let roots = values.string("roots")
    guard FileCheck.isPlain(roots) else { throw noCertificates(roots, ": it is not a regular file") }
    guard let file = unsafe fopen(roots, "re") else {
      throw noCertificates(roots, unsafe ": \(String(cString: strerror(errno)))")
    }
    defer { unsafe fclose(file) }
    var line: UnsafeMutablePointer<CChar>?
    var room = 0
    defer { unsafe free(line) }
    while unsafe getline(&line, &room, file) >= 0 {
      // RFC 7468, section 5.1.
      if let line = unsafe line, unsafe strncmp(line, "-----BEGIN CERTIFICATE-----", 27) == 0 { return }
    }
    throw noCertificates(roots, "")
  }

  private static func noCertificates(_ path: String, _ reason: String) -> NodeProblem {
    NodeProblem(
      "\"\(path)\" cannot be read as certificates (PEM)\(reason)", parameter: "roots",
      cure: "use a file with the certificate of the server's authority")
  }

  /// The cause, if the call that just failed on this thread failed below RTMP: host not found, or certificate not trusted. nil for anything
  /// else.
  var cause: String? {
    // RTMP's own message follows, and only says that there is no connection.
    let line = unsafe String(cString: millrace_av_first_log())
    if line.contains("Failed to resolve hostname") {
      let reason = line.split(separator: ": ").last.map { ": \($0)" } ?? ""
      return "host not found: \"\(host)\"\(reason)"
    }
    return isSecure ? distrust(line) : nil
  }

  private func distrust(_ line: String) -> String? {
    if line.contains("does not match hostname") {
      return "host name mismatch: the server's certificate is not for \"\(host)\""
    }
    guard line.contains("certificate") else { return nil }
    let authorities =
      roots.map { "the authorities in \"\($0)\"" } ?? "this system (\"roots\" sets other authorities)"
    return "certificate not trusted: the certificate of \"\(host)\" is not trusted by \(authorities)"
  }
}
