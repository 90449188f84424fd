internal import Glibc
internal import MillraceCore

/// The place where this process can be asked how its runs are going.
///
/// Whoever connects gets one JSON document and the end. Nothing is done until somebody asks: `answer` is one system call then.
/// The socket is for this user only (folder 0700, socket 0600), and goes with the value.
struct StatisticsSocket: ~Copyable {
  private let descriptor: Int32
  private let path: String

  /// A client that does not read for so long goes without.
  private static let patience = 200
  /// Clients that may wait between two looks.
  private static let backlog: Int32 = 8

  init(_ folder: RunFolder, process: Int32 = getpid()) throws(RunFolder.Refusal) {
    try folder.open()
    let path = folder.address(of: process)
    let descriptor = LocalSocket.make(nonblocking: true)
    // Left by a process that had this number once.
    unsafe unlink(path)
    let isBound = unsafe LocalSocket.withAddress(path) { unsafe bind(descriptor, $0, $1) } == 0
    guard isBound, unsafe chmod(path, 0o600) == 0, listen(descriptor, Self.backlog) == 0 else {
      let reason = SystemError.text(errno)
      close(descriptor)
      throw RunFolder.Refusal(text: "the socket \(path) cannot be made: \(reason)")
    }
    self.path = path
    self.descriptor = descriptor
  }

  deinit {
    unsafe unlink(path)
    close(descriptor)
  }

  /// Answers everybody who has asked since the last call.
  func answer(_ text: () -> String) {
    while true {
      let client = accept(descriptor, nil, nil)
      guard client >= 0 else { return }
      // A program that a node starts at this very moment would get the client too, and give it up at its end.
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

  /// What came of asking a process.
  enum Answer: Equatable {
    case text(String)
    /// It is there, and did not answer in time: it is stopped, or has too much to do.
    case silence
    /// It is no more, or has never offered anything.
    case nobody
  }

  /// Asks a process, which has so many milliseconds for each step of its answer. It looks twenty times a second.
  static func ask(_ process: Int32, in folder: RunFolder, patience: Int = 2_000) -> Answer {
    let descriptor = LocalSocket.make(nonblocking: false)
    guard descriptor >= 0 else { return .nobody }
    defer { close(descriptor) }
    LocalSocket.limit(descriptor, SO_RCVTIMEO, milliseconds: patience)
    // Where as many wait already as may, the next one would wait with them for ever.
    LocalSocket.limit(descriptor, SO_SNDTIMEO, milliseconds: patience)
    let address = folder.address(of: process)
    guard unsafe LocalSocket.withAddress(address, { unsafe connect(descriptor, $0, $1) }) == 0 else {
      return errno == EAGAIN ? .silence : .nobody
    }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe recv(descriptor, &chunk, chunk.count, 0)
      if count == 0 { return bytes.isEmpty ? .nobody : .text(String(decoding: bytes, as: UTF8.self)) }
      guard count > 0 else { return errno == EAGAIN ? .silence : .nobody }
      bytes += chunk[..<count]
    }
  }
}
