import CFuzzImage

/// Feeds arbitrary bytes to the wrapper of libjpeg in both directions: as a JPEG to decode, and as the pixels of a picture to encode. The
/// first bytes select the size.
///
/// It must never crash, nor write beyond the planes or the target. Decoding gives the same pixels twice, whatever was in the memory
/// before. A picture's JPEG has the size reported without a target, a target that is too small holds its beginning, and it decodes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzImage(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard bytes.count > 3 else { return 0 }
  let width = 1 + Int(bytes[0])
  let height = 1 + Int(bytes[1])
  if bytes[2] & 1 == 0 {
    checkDecoding(Array(bytes.dropFirst(3)), width, height)
  } else {
    checkEncoding(Array(bytes.dropFirst(3)), width, height, scale: 1 + 4 * Double(bytes[2] >> 1))
  }
  return 0
}

private let guardBytes = 64

private func planeBytes(_ width: Int, _ height: Int) -> Int {
  width * height + 2 * ((width + 1) / 2) * ((height + 1) / 2)
}

/// The planes; nil when the JPEG is refused. The memory is filled with `fill` first.
private func decode(_ bytes: [UInt8], _ width: Int, _ height: Int, fill: UInt8) -> [UInt8]? {
  let size = planeBytes(width, height)
  var planes = [UInt8](repeating: fill, count: size + guardBytes)
  let status = millrace_jpeg_decode(bytes, bytes.count, Int32(width), Int32(height), &planes)
  if planes[size...].contains(where: { $0 != fill }) { fatalError("bytes beyond the planes") }
  if status != 0 && status != -1 { fatalError("status \(status)") }
  return status == 0 ? Array(planes[..<size]) : nil
}

private func checkDecoding(_ bytes: [UInt8], _ width: Int, _ height: Int) {
  let planes = decode(bytes, width, height, fill: 0x5A)
  if planes != decode(bytes, width, height, fill: 0xA5) { fatalError("pixels that were not written") }
}

private func checkEncoding(_ pixels: [UInt8], _ width: Int, _ height: Int, scale: Double) {
  guard let encoder = millrace_jpeg_new() else { fatalError("no memory") }
  defer { millrace_jpeg_free(encoder) }
  let size = planeBytes(width, height)
  let planes = (0..<size).map { pixels.isEmpty ? 0 : pixels[$0 % pixels.count] }
  var target = [UInt8](repeating: 0, count: 4 * size + 4_096)
  planes.withUnsafeBufferPointer { bytes in
    guard let y = bytes.baseAddress else { return }
    let chromaWidth = (width + 1) / 2
    let u = y + width * height
    var picture = millrace_jpeg_picture(
      width: Int32(width), height: Int32(height), y: y, u: u, v: u + chromaWidth * ((height + 1) / 2),
      y_stride: width, chroma_stride: chromaWidth)
    let size = Int(millrace_jpeg_encode(encoder, &picture, scale, 0, 1, nil, 0))
    let written = Int(millrace_jpeg_encode(encoder, &picture, scale, 0, 1, &target, target.count))
    if size != written || size <= 0 || size > target.count { fatalError("\(size) and \(written) bytes") }
    let jpeg = Array(target[..<size])
    if decode(jpeg, width, height, fill: 0) == nil { fatalError("a JPEG that does not decode") }
    let room = size / 2
    var short = [UInt8](repeating: 0x5A, count: room + guardBytes)
    if Int(millrace_jpeg_encode(encoder, &picture, scale, 0, 1, &short, room)) != size {
      fatalError("another size in a small target")
    }
    if Array(short[..<room]) != Array(jpeg[..<room]) || short[room...].contains(where: { $0 != 0x5A }) {
      fatalError("a small target holds something else")
    }
    let rows = (height + 15) / 16
    if rows > 1, millrace_jpeg_encode(encoder, &picture, scale, 1, 2, nil, 0) <= 0 {
      fatalError("a sample is refused")
    }
  }
}
