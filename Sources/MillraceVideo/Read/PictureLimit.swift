internal import CFFmpeg
internal import Glibc
internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// The limit on the size of decoded pictures: a file of a few bytes may declare a picture that takes gigabytes.
enum PictureLimit {
  /// Fault code: a picture is too large; the detail is its size.
  static let fault: Int32 = 3

  /// The same limit for libraries, which include the borders they add: a quarter more is ample for sides of 256 and more, the rest is for small
  /// ones.
  static func withEdges(_ most: Int) -> Int64 { Int64(most) + Int64(most / 4) + 65_536 }

  /// A declared size, which may have any value.
  typealias Size = (width: Int, height: Int)

  /// True for a size within a limit, in pixels.
  static func allows(_ size: Size, atMost most: Int) -> Bool {
    let (pixels, isBeyond) = size.width.multipliedReportingOverflow(by: size.height)
    return !isBeyond && pixels <= most
  }

  /// The fault for a size.
  static func fault(_ size: Size) -> NodeFault {
    // Each side in one half of the number, neither below 0.
    let (width, height) = (min(size.width, Int(Int32.max)), min(size.height, Int(UInt32.max)))
    return NodeFault(.custom, code: fault, detail: Int64(width) << 32 | Int64(height))
  }

  /// The size in a fault.
  static func size(_ fault: NodeFault) -> Size {
    (Int(fault.detail >> 32), Int(fault.detail & 0xFFFF_FFFF))
  }

  /// The size declared by a container.
  static func size(_ parameters: UnsafePointer<AVCodecParameters>) -> Size {
    unsafe (Int(parameters.pointee.width), Int(parameters.pointee.height))
  }

  /// The error for a size.
  static func text(_ size: Size, atMost most: Int) -> String {
    "pictures of \(size.width)x\(size.height), more than \"maxPixels\" allows (\(most))"
  }

  /// The cure for a size.
  static func cure(_ size: Size) -> String {
    allows(size, atMost: PictureHeader.maxDecodablePixels)
      ? "scale it down first, or raise \"maxPixels\" to \(size.width * size.height)" : "scale it down first"
  }
}

extension ParameterContract {
  /// The largest picture a node decodes.
  static let maxPixels = ParameterContract(
    "maxPixels", .integer(1...PictureHeader.maxDecodablePixels), unit: "px",
    default: .integer(PictureHeader.defaultMaxPixels),
    text:
      "size limit of decoded pictures, width times height; larger ones are refused before memory is allocated"
  )
}

extension Demuxer {
  /// Refuses pictures beyond the limit.
  func checkSize(_ size: PictureLimit.Size) throws(NodeProblem) {
    guard !PictureLimit.allows(size, atMost: source.mostPixels) else { return }
    throw problem("has \(PictureLimit.text(size, atMost: source.mostPixels))", cure: PictureLimit.cure(size))
  }

  /// Refuses a stream whose container declares pictures beyond the limit.
  func checkSize(_ parameters: UnsafePointer<AVCodecParameters>) throws(NodeProblem) {
    guard unsafe parameters.pointee.codec_type == AVMEDIA_TYPE_VIDEO else { return }
    try checkSize(unsafe PictureLimit.size(parameters))
  }
}

extension VideoRead {
  /// Refuses a picture whose header declares a size beyond the limit, before a library sees it.
  static func checkSize(_ path: String, _ source: Demuxer.Source) throws(NodeProblem) {
    let file = try OpenedFile(path, for: .reading)
    defer { FileLock.close(file.descriptor) }
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: PictureHeader.maxHeaderBytes) { target, count in
      count = unsafe max(0, pread(file.descriptor, target.baseAddress, target.count, 0))
    }
    guard let header = PictureHeader(bytes.span) else { return }
    let size = (header.width, header.height)
    guard !PictureLimit.allows(size, atMost: source.mostPixels) else { return }
    throw NodeProblem(
      "\(source.name) has \(PictureLimit.text(size, atMost: source.mostPixels))", parameter: "path",
      cure: PictureLimit.cure(size))
  }
}
