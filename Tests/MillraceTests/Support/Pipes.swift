import Glibc

/// Bytes that wait in a pipe, asked at the end that reads; -1 when the system does not say.
func bytesWaiting(in pipe: Int32) -> Int {
  var count: Int32 = 0
  return ioctl(pipe, UInt(FIONREAD), &count) == 0 ? Int(count) : -1
}
