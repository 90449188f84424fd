internal import CFFmpeg

extension UnsafePointer<AVFrame> {
  /// The first byte of a plane.
  func plane(_ index: Int) -> UnsafeMutablePointer<UInt8>? {
    let planes = unsafe pointee.data
    return switch index {
    case 0: unsafe planes.0
    case 1: unsafe planes.1
    case 2: unsafe planes.2
    default: unsafe planes.3
    }
  }

  /// The strides of the planes in bytes.
  var lineSizes: UnsafePointer<Int32>? {
    guard let offset = unsafe MemoryLayout<AVFrame>.offset(of: \.linesize) else { return nil }
    return unsafe (UnsafeRawPointer(self) + offset).assumingMemoryBound(to: Int32.self)
  }
}
