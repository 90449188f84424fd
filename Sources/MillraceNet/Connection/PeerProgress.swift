internal import Glibc
internal import NIOCore

/// How far the peer of a TCP connection has got.
enum PeerProgress {
  /// Where `tcpi_bytes_acked` is in `struct tcp_info`, a `__u64`: linux/tcp.h, since Linux 4.1. The structure of the C library ends before.
  private static let acknowledgedOffset = 120

  /// Bytes that the peer's system has acknowledged since the connection was opened; nil when the system does not tell. On the loop.
  static func acknowledged(on channel: any Channel) -> UInt64? {
    do {
      let count = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(
        of: NIOBSDSocket.Handle.self
      ) { descriptor in acknowledged(descriptor) }
      return count ?? nil
    } catch {
      // It is closed.
      return nil
    }
  }

  private static func acknowledged(_ descriptor: NIOBSDSocket.Handle) -> UInt64? {
    let end = acknowledgedOffset + MemoryLayout<UInt64>.size
    return unsafe withUnsafeTemporaryAllocation(byteCount: end, alignment: 8) { info -> UInt64? in
      var size = socklen_t(end)
      let status = unsafe getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, info.baseAddress, &size)
      guard status == 0, Int(size) == end else { return nil }
      return unsafe info.load(fromByteOffset: acknowledgedOffset, as: UInt64.self)
    }
  }
}
