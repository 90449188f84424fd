internal import Glibc
internal import MillraceCore

/// The socket through which this process serves the statistics of its runs.
///
/// A client that connects receives one JSON document and the end of the stream. Without clients, `serve` costs one system call. Only this
/// user can connect (directory 0700, socket 0600). The socket is removed with this value.
struct StatisticsSocket: ~Copyable {
  private let descriptor: Int32
  private let path: String

  /// Send timeout in milliseconds: a slower client gets an incomplete document.
  private static let patience = 200
  /// Clients that can wait between two calls of `serve`.
  private static let backlog: Int32 = 8

  init(_ folder: RunFolder, process: Int32 = getpid()) throws(RunFolder.Failure) {
    try folder.open()
    let path = folder.address(of: process)
    let descriptor = LocalSocket.make(nonblocking: true)
    // Left over from an earlier process with this ID.
    unsafe unlink(path)
    let isBound = unsafe LocalSocket.withAddress(path) { unsafe bind(descriptor, $0, $1) } == 0
    guard isBound, unsafe chmod(path, 0o600) == 0, listen(descriptor, Self.backlog) == 0 else {
      let reason = SystemError.text(errno)
      close(descriptor)
      throw RunFolder.Failure(text: "cannot create socket \(path): \(reason)")
    }
    self.path = path
    self.descriptor = descriptor
  }

  deinit {
    unsafe unlink(path)
    close(descriptor)
  }

  /// Answers all clients that have connected since the last call.
  func serve(_ text: () -> String) {
    while true {
      let client = accept(descriptor, nil, nil)
      guard client >= 0 else { return }
      // A program that a node starts at this moment may still inherit the connection; it closes it when it ends.
      _ = fcntl(client, F_SETFD, FD_CLOEXEC)
      LocalSocket.limit(client, SO_SNDTIMEO, milliseconds: Self.patience)
      Self.send(text(), to: client)
      close(client)
    }
  }

  private static func send(_ text: String, to client: Int32) {
    var text = text
    text.withUTF8 { bytes in
      var offset = 0
      while offset < bytes.count {
        let count = unsafe Glibc.send(
          client, bytes.baseAddress! + offset, bytes.count - offset, Int32(MSG_NOSIGNAL))
        guard count > 0 else { return }
        offset += count
      }
    }
  }

  /// The result of querying a process.
  enum Answer: Equatable {
    case text(String)
    /// The process exists but did not answer in time: it is suspended or overloaded.
    case timedOut
    /// The process has ended or has no socket.
    case noProcess
  }

  /// Queries a process. A run calls `serve` twenty times a second.
  /// - Parameter patience: timeout of each step, in milliseconds.
  static func query(_ process: Int32, in folder: RunFolder, patience: Int = 2_000) -> Answer {
    let descriptor = LocalSocket.make(nonblocking: false)
    guard descriptor >= 0 else { return .noProcess }
    defer { close(descriptor) }
    LocalSocket.limit(descriptor, SO_RCVTIMEO, milliseconds: patience)
    // When the backlog is full, `connect` blocks; the send timeout limits it.
    LocalSocket.limit(descriptor, SO_SNDTIMEO, milliseconds: patience)
    let address = folder.address(of: process)
    guard unsafe LocalSocket.withAddress(address, { unsafe connect(descriptor, $0, $1) }) == 0 else {
      return errno == EAGAIN ? .timedOut : .noProcess
    }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe recv(descriptor, &chunk, chunk.count, 0)
      if count == 0 { return bytes.isEmpty ? .noProcess : .text(String(decoding: bytes, as: UTF8.self)) }
      guard count > 0 else { return errno == EAGAIN ? .timedOut : .noProcess }
      bytes += chunk[..<count]
    }
  }
}
