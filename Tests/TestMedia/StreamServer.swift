import Glibc
import Synchronization
import TestSystem

/// A private RTMP server on loopback: nginx with its RTMP module, in one process, with its own folder and port.
///
/// A stream published under a name is played under it. A player gets pictures from the next key frame on. A publisher that is silent for
/// five minutes is dropped. With a certificate it has a second port, with TLS.
public final class StreamServer {
  private static let module = "/usr/lib/nginx/modules/ngx_rtmp_module.so"
  private static let proxyModule = "/usr/lib/nginx/modules/ngx_stream_module.so"

  /// True if the server is installed: Debian's packages nginx and libnginx-mod-rtmp.
  public static var isInstalled: Bool { nginx != nil && access(module, R_OK) == 0 }

  /// True if it supports TLS too: Debian's package libnginx-mod-stream.
  public static var hasTLS: Bool { isInstalled && access(proxyModule, R_OK) == 0 }

  /// The system's server, which is not in the `PATH` of an ordinary user.
  private static var nginx: String? {
    access("/usr/sbin/nginx", X_OK) == 0 ? "/usr/sbin/nginx" : TestProgram.path(of: "nginx")
  }

  /// Its port on 127.0.0.1, the same after a stop and a start.
  public let port: Int
  /// The TLS port.
  public let securePort: Int
  private let identity: (certificate: String, key: String)?
  private let folder = TemporaryFolder()
  private var program: TestProgram?

  /// Starts a server and waits until it answers; nil if none can be started.
  /// - Parameter identity: files in PEM, for TLS.
  public init?(identity: (certificate: String, key: String)? = nil) {
    guard identity == nil ? Self.isInstalled : Self.hasTLS else { return nil }
    self.identity = identity
    port = Loopback.freePort()
    securePort = Loopback.freePort()
    guard start() else { return nil }
  }

  /// The address of a stream.
  public func url(_ stream: String) -> String { "rtmp://127.0.0.1:\(port)/live/\(stream)" }

  /// The same stream over TLS.
  public func secureURL(_ stream: String) -> String { "rtmps://127.0.0.1:\(securePort)/live/\(stream)" }

  /// The server's log, for failure messages.
  public var log: String { String(decoding: contents(folder.file("error.log")), as: UTF8.self) }

  /// Starts the server, possibly again after a stop; false if it does not come up. It is killed after a quarter of an hour, whatever happens to
  /// the tests.
  @discardableResult
  public func start() -> Bool {
    guard program == nil, let nginx = Self.nginx else { return false }
    writeConfiguration()
    program = try? TestProgram(
      "/usr/bin/timeout",
      [
        "--kill-after=5", "900", nginx, "-p", folder.path, "-e", folder.file("error.log"), "-c",
        folder.file("nginx.conf"),
      ])
    for _ in 0..<3_000 where program?.isRunning == true {
      if Loopback.answers(port) && (identity == nil || Loopback.answers(securePort)) { return true }
      usleep(10_000)
    }
    stop()
    return false
  }

  /// Stops the server: clients are disconnected.
  public func stop() {
    // `timeout` forwards the signal, and ends with the server.
    program?.send(SIGTERM)
    program?.wait()
    program = nil
  }

  deinit { stop() }

  /// Terminates TLS on the second port, and forwards to the first.
  private var proxy: String {
    guard let identity else { return "" }
    return """
      stream {
        server {
          listen 127.0.0.1:\(securePort) ssl;
          ssl_certificate \(identity.certificate);
          ssl_certificate_key \(identity.key);
          proxy_pass 127.0.0.1:\(port);
        }
      }
      """
  }

  private func writeConfiguration() {
    // `daemon off` and `master_process off`: the process that was started is the server, and ends on the signal.
    let text = """
      load_module \(Self.module);
      \(identity == nil ? "" : "load_module \(Self.proxyModule);")
      daemon off;
      master_process off;
      pid \(folder.file("nginx.pid"));
      error_log \(folder.file("error.log")) info;
      events { worker_connections 64; }
      rtmp {
        server {
          listen 127.0.0.1:\(port);
          chunk_size 4096;
          application live {
            live on;
            wait_key on;
            wait_video off;
            interleave off;
            sync 10ms;
            idle_streams off;
            drop_idle_publisher 300s;
            record off;
          }
        }
      }
      \(proxy)

      """
    put(text.utf8, at: folder.file("nginx.conf"))
  }
}

/// TCP on 127.0.0.1.
public enum Loopback {
  /// Below the ephemeral ports.
  private static let ports = 20_000..<32_000
  private static let next = Atomic(0)

  /// A port without a listener, outside the ephemeral range. Each call returns another one.
  public static func freePort() -> Int {
    while true {
      let place = Int(getpid()) * 101 + next.wrappingAdd(1, ordering: .relaxed).oldValue
      let port = ports.lowerBound + place % ports.count
      guard let socket = bind(to: port) else { continue }
      close(socket)
      return port
    }
  }

  /// True if connections are accepted.
  public static func answers(_ port: Int) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    return withAddress(port) { connect(descriptor, $0, $1) } == 0
  }

  /// A socket bound to a port, 0: any; nil if it is taken.
  fileprivate static func bind(to port: Int) -> Int32? {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    precondition(descriptor >= 0, "no socket")
    if withAddress(port, { Glibc.bind(descriptor, $0, $1) }) == 0 { return descriptor }
    close(descriptor)
    return nil
  }

  fileprivate static func port(of descriptor: Int32) -> Int {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutableBytes(of: &address) { bytes in
      _ = getsockname(descriptor, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress!, &length)
    }
    return Int(UInt16(bigEndian: address.sin_port))
  }

  private static func withAddress(_ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32
  {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafeBytes(of: &address) {
      body($0.assumingMemoryBound(to: sockaddr.self).baseAddress!, socklen_t($0.count))
    }
  }
}

/// A server that accepts connections and never sends anything.
public final class SilentServer {
  private let descriptor: Int32
  public let port: Int
  private var client: Int32 = -1

  public init() {
    guard let socket = Loopback.bind(to: 0) else { preconditionFailure("no port on loopback") }
    descriptor = socket
    port = Loopback.port(of: descriptor)
    // The system completes pending connections; their data is never read.
    listen(descriptor, 16)
  }

  /// Waits for the next client; false when none came within two minutes.
  public func waitForClient() -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, 120_000) == 1 else { return false }
    if client >= 0 { close(client) }
    client = accept(descriptor, nil, nil)
    return client >= 0
  }

  /// Reads what the client sends until it closes the connection; waits for a client first if there is none. False if that takes more than two
  /// minutes.
  public func waitForClose() -> Bool {
    guard client >= 0 || waitForClient() else { return false }
    defer {
      close(client)
      client = -1
    }
    var patience = timeval(tv_sec: 120, tv_usec: 0)
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var bytes = [UInt8](repeating: 0, count: 4_096)
    while true {
      let count = recv(client, &bytes, bytes.count, 0)
      if count < 0 { return errno == ECONNRESET }
      if count == 0 { return true }
    }
  }

  deinit {
    close(descriptor)
    if client >= 0 { close(client) }
  }
}
