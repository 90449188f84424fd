internal import CFFmpeg
internal import Glibc
internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// The bound on the pictures that are decoded: a file of a few bytes may declare one that takes gigabytes.
enum PictureBound {
  /// Code of the fault when a picture is larger; its detail is the size.
  static let fault: Int32 = 3

  /// The same bound for libraries, which count the edges they put around a picture: a quarter more is ample for sides of 256 and more,
  /// the rest is for small ones.
  static func withEdges(_ most: Int) -> Int64 { Int64(most) + Int64(most / 4) + 65_536 }

  /// Sides as they are declared, which may be anything.
  typealias Size = (width: Int, height: Int)

  /// True for a size within a bound, in pixels.
  static func allows(_ size: Size, atMost most: Int) -> Bool {
    let (pixels, isBeyond) = size.width.multipliedReportingOverflow(by: size.height)
    return !isBeyond && pixels <= most
  }

  /// The fault of a size.
  static func fault(_ size: Size) -> NodeFault {
    // Each side in half of the number, and no side below 0.
    let (width, height) = (min(size.width, Int(Int32.max)), min(size.height, Int(UInt32.max)))
    return NodeFault(.custom, code: fault, detail: Int64(width) << 32 | Int64(height))
  }

  /// The size that a fault is about.
  static func size(_ fault: NodeFault) -> Size {
    (Int(fault.detail >> 32), Int(fault.detail & 0xFFFF_FFFF))
  }

  /// The size that a container says.
  static func size(_ parameters: UnsafePointer<AVCodecParameters>) -> Size {
    unsafe (Int(parameters.pointee.width), Int(parameters.pointee.height))
  }

  /// What is wrong with a size.
  static func text(_ size: Size, atMost most: Int) -> String {
    "pictures of \(size.width)x\(size.height), more than \"maxPixels\" allows (\(most))"
  }

  /// What to do about it.
  static func cure(_ size: Size) -> String {
    allows(size, atMost: PictureHeader.mostEver)
      ? "scale it down first, or raise \"maxPixels\" to \(size.width * size.height)" : "scale it down first"
  }
}

extension ParameterContract {
  /// The largest picture a node decodes.
  static let maxPixels = ParameterContract(
    "maxPixels", .integer(1...PictureHeader.mostEver), unit: "px",
    default: .integer(PictureHeader.mostPixels),
    text:
      "the largest picture that is decoded, width times height; a larger one is refused before it takes memory"
  )
}

extension Demuxer {
  /// Refuses pictures of a size beyond the bound.
  func checkSize(_ size: PictureBound.Size) throws(NodeProblem) {
    guard !PictureBound.allows(size, atMost: place.mostPixels) else { return }
    throw problem("has \(PictureBound.text(size, atMost: place.mostPixels))", cure: PictureBound.cure(size))
  }

  /// Refuses a stream whose container says that its pictures are beyond the bound.
  func checkSize(_ parameters: UnsafePointer<AVCodecParameters>) throws(NodeProblem) {
    guard unsafe parameters.pointee.codec_type == AVMEDIA_TYPE_VIDEO else { return }
    try checkSize(unsafe PictureBound.size(parameters))
  }
}

extension VideoRead {
  /// Refuses a picture that says in its header that it is beyond the bound, before a library is given it.
  static func checkSize(_ path: String, _ place: Demuxer.Place) throws(NodeProblem) {
    let file = try OpenedFile(path, for: .reading)
    defer { _ = close(file.descriptor) }
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: PictureHeader.mostBytes) { target, count in
      count = unsafe max(0, pread(file.descriptor, target.baseAddress, target.count, 0))
    }
    guard let header = PictureHeader(bytes.span) else { return }
    let size = (header.width, header.height)
    guard !PictureBound.allows(size, atMost: place.mostPixels) else { return }
    throw NodeProblem(
      "\(place.name) has \(PictureBound.text(size, atMost: place.mostPixels))", parameter: "path",
      cure: PictureBound.cure(size))
  }
}
