internal import CFFmpeg
internal import CMediaShim
internal import Glibc
package import MillraceCore

/// Converts the size, pixel type and colours of pictures with swscale. The result is BT.601, full range, unless video range is requested. The
/// result is valid until the next call. Not thread-safe; allocates only when the kind of source changes.
@safe
package final class PictureScaler {
  /// The format of a source.
  struct Source: Equatable {
    /// FFmpeg's pixel format, excluding the `yuvj` ones.
    var format: Int32
    var width: Int
    var height: Int
    /// One of `SWS_CS_...`.
    var colours: Int32 = SWS_CS_ITU601
    var isFullRange = true

    /// A picture of the graph.
    init(_ pixel: PixelType, width: Int, height: Int) {
      format = pixel.library
      self.width = width
      self.height = height
    }

    /// A decoder's frame. If it does not declare its colours, they are BT.601, as FFmpeg and its players assume.
    init(_ frame: UnsafePointer<AVFrame>) {
      let given = unsafe frame.pointee.format
      format = Int32(millrace_av_pixel_plain(given))
      width = unsafe Int(frame.pointee.width)
      height = unsafe Int(frame.pointee.height)
      isFullRange =
        unsafe frame.pointee.color_range == AVCOL_RANGE_JPEG || millrace_av_pixel_is_full_by_name(given)
        || !millrace_av_pixel_is_yuv(given) && !millrace_av_pixel_is_grey(given)
      colours =
        switch unsafe frame.pointee.colorspace {
        case AVCOL_SPC_BT709: SWS_CS_ITU709
        case AVCOL_SPC_FCC: SWS_CS_FCC
        case AVCOL_SPC_SMPTE240M: SWS_CS_SMPTE240M
        case AVCOL_SPC_BT2020_NCL, AVCOL_SPC_BT2020_CL: SWS_CS_BT2020
        default: SWS_CS_ITU601
        }
    }
  }

  let pixel: PixelType
  package let width: Int
  package let height: Int
  private let isFullRange: Bool
  private var context: OpaquePointer?
  private var source: Source?
  /// Rows with padding: swscale's vector code writes whole vectors, beyond the end of a row too.
  private let memory: UnsafeMutablePointer<UInt8>
  private let strides: (Int, Int, Int)
  private let offsets: (Int, Int, Int)

  /// Row alignment in bytes.
  private static let alignment = 64

  package init(to pixel: PixelType, width: Int, height: Int, isFullRange: Bool = true) {
    self.pixel = pixel
    self.isFullRange = isFullRange
    self.width = width
    self.height = height
    func aligned(_ bytes: Int) -> Int {
      bytes == 0 ? 0 : (bytes + 2 * Self.alignment - 1) / Self.alignment * Self.alignment
    }
    let tight = PlaneLayout(pixel, width: width, height: height).strides
    strides = (aligned(tight.0), aligned(tight.1), aligned(tight.2))
    let half = (height + 1) / 2
    offsets = (0, strides.0 * height, strides.0 * height + strides.1 * half)
    let count = offsets.2 + strides.2 * half + Self.alignment
    unsafe memory = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: Self.alignment)
      .bindMemory(to: UInt8.self, capacity: count)
    unsafe memory.initialize(repeating: 0, count: count)
  }

  deinit {
    unsafe sws_freeContext(context)
    unsafe memory.deallocate()
  }

  /// The result of the last call.
  package var view: PictureView {
    @_lifetime(borrow self) get {
      precondition(pixel == .i420, "a view with row padding must be planar 4:2:0")
      let view = unsafe PictureView(
        y: memory, u: memory + offsets.1, v: memory + offsets.2, lumaStride: strides.0,
        chromaStride: strides.1, width: width, height: height)
      return unsafe _overrideLifetime(view, borrowing: self)
    }
  }

  /// Scales a picture of the graph. False if swscale refuses the pair of sizes.
  package func scale(_ picture: borrowing PictureView) -> Bool {
    unsafe scale(
      Source(picture.pixel, width: picture.width, height: picture.height), picture.planes, picture.strides)
  }

  /// Scales a region of a picture of the graph.
  func scale(_ picture: borrowing PictureView, left: Int, top: Int, width: Int, height: Int) -> Bool {
    let (pixel, half) = (picture.pixel, (left / 2, top / 2))
    var (first, second, third) = unsafe picture.planes
    let strides = picture.strides
    switch pixel {
    case .i420:
      unsafe first += top * strides.0 + left
      unsafe second += half.1 * strides.1 + half.0
      unsafe third += half.1 * strides.2 + half.0
    case .nv12:
      unsafe first += top * strides.0 + left
      unsafe second += half.1 * strides.1 + 2 * half.0
    case .rgb24: unsafe first += top * strides.0 + 3 * left
    case .bgrx: unsafe first += top * strides.0 + 4 * left
    }
    return unsafe scale(Source(pixel, width: width, height: height), (first, second, third), strides)
  }

  /// Whether a decoder's frames have a supported pixel format.
  static func takes(_ frame: UnsafePointer<AVFrame>) -> Bool {
    let format = unsafe Int32(millrace_av_pixel_plain(frame.pointee.format))
    return sws_isSupportedInput(AVPixelFormat(format)) != 0
  }

  /// Scales a decoder's frame.
  func scale(_ frame: UnsafePointer<AVFrame>) -> Bool {
    let source = unsafe Source(frame)
    if source == itself, let first = unsafe frame.plane(0) {
      let lengths = unsafe frame.pointee.linesize
      unsafe keep(
        (
          UnsafePointer(first), UnsafePointer(frame.plane(1) ?? first), UnsafePointer(frame.plane(2) ?? first)
        ),
        (Int(lengths.0), Int(lengths.1), Int(lengths.2)))
      return true
    }
    guard prepare(source) else { return false }
    return unsafe withUnsafeTemporaryAllocation(of: UnsafePointer<UInt8>?.self, capacity: 4) { planes in
      for index in 0..<4 {
        unsafe planes.initializeElement(at: index, to: UnsafePointer(frame.plane(index)))
      }
      return unsafe run(planes.baseAddress, frame.lineSizes, rows: Int(frame.pointee.height))
    }
  }

  /// A source with the result's own format.
  private var itself: Source {
    var source = Source(pixel, width: width, height: height)
    source.isFullRange = isFullRange
    return source
  }

  /// Copies planes that have the result's format, which swscale gets wrong: of Y and UV it copies half of a UV row, and more planes than
  /// there are.
  private func keep(
    _ planes: (UnsafePointer<UInt8>, UnsafePointer<UInt8>, UnsafePointer<UInt8>), _ steps: (Int, Int, Int)
  ) {
    unsafe move(
      planes, steps, PictureOrientation(), to: (memory, memory + offsets.1, memory + offsets.2), strides)
  }

  /// Copies planes of the result's format and size, with rotation.
  private func move(
    _ source: (UnsafePointer<UInt8>, UnsafePointer<UInt8>, UnsafePointer<UInt8>), _ steps: (Int, Int, Int),
    _ turn: PictureOrientation,
    to target: (UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<UInt8>),
    _ lengths: (Int, Int, Int)
  ) {
    unsafe Self.move(source.0, steps.0, (width, height), pixel.pixelBytes, turn, to: target.0, lengths.0)
    guard pixel.planeCount > 1 else { return }
    let (half, chromaBytes) = (((width + 1) / 2, (height + 1) / 2), pixel == .nv12 ? 2 : 1)
    unsafe Self.move(source.1, steps.1, half, chromaBytes, turn, to: target.1, lengths.1)
    if pixel == .i420 { unsafe Self.move(source.2, steps.2, half, 1, turn, to: target.2, lengths.2) }
  }

  /// Copies one plane, with rotation.
  private static func move(
    _ source: UnsafePointer<UInt8>, _ step: Int, _ size: (Int, Int), _ bytes: Int, _ turn: PictureOrientation,
    to target: UnsafeMutablePointer<UInt8>, _ length: Int
  ) {
    unsafe millrace_plane_turn(
      source, step, Int32(size.0), Int32(size.1), Int32(bytes), Int32(turn.quarters),
      turn.isMirrored ? 1 : 0, target, length)
  }

  private func scale(
    _ source: Source, _ planes: (UnsafePointer<UInt8>, UnsafePointer<UInt8>, UnsafePointer<UInt8>),
    _ strides: (Int, Int, Int)
  ) -> Bool {
    if source == itself {
      unsafe keep(planes, strides)
      return true
    }
    guard prepare(source) else { return false }
    // swscale reads every plane it is given, whether the format has it or not.
    let count = Self.planeCount(of: source.format)
    var starts: (UnsafePointer<UInt8>?, UnsafePointer<UInt8>?, UnsafePointer<UInt8>?, UnsafePointer<UInt8>?) =
      unsafe (planes.0, count > 1 ? planes.1 : nil, count > 2 ? planes.2 : nil, nil)
    var lengths = (Int32(strides.0), Int32(strides.1), Int32(strides.2), Int32(0))
    return unsafe withUnsafeBytes(of: &starts) { starts in
      unsafe withUnsafeBytes(of: &lengths) { lengths in
        unsafe run(
          starts.assumingMemoryBound(to: UnsafePointer<UInt8>?.self).baseAddress,
          lengths.assumingMemoryBound(to: Int32.self).baseAddress, rows: source.height)
      }
    }
  }

  /// Number of planes of an FFmpeg pixel format.
  private static func planeCount(of format: Int32) -> Int {
    switch format {
    case PixelType.rgb24.library, PixelType.bgrx.library: 1
    case PixelType.nv12.library: 2
    default: 3
    }
  }

  private func run(
    _ planes: UnsafePointer<UnsafePointer<UInt8>?>?, _ lengths: UnsafePointer<Int32>?, rows: Int
  ) -> Bool {
    var targets:
      (
        UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt8>?,
        UnsafeMutablePointer<UInt8>?
      ) =
        unsafe (
          memory, pixel.planeCount > 1 ? memory + offsets.1 : nil,
          pixel.planeCount > 2 ? memory + offsets.2 : nil, nil
        )
    var steps = (Int32(strides.0), Int32(strides.1), Int32(strides.2), Int32(0))
    let given = unsafe withUnsafeBytes(of: &targets) { targets in
      unsafe withUnsafeBytes(of: &steps) { steps in
        unsafe sws_scale(
          context, planes, lengths, 0, Int32(rows),
          targets.assumingMemoryBound(to: UnsafeMutablePointer<UInt8>?.self).baseAddress,
          steps.assumingMemoryBound(to: Int32.self).baseAddress)
      }
    }
    return given == Int32(height)
  }

  private func prepare(_ wanted: Source) -> Bool {
    if wanted == source, unsafe context != nil { return true }
    unsafe sws_freeContext(context)
    source = wanted
    // Lanczos preserves the detail a smaller size can hold; exact rounding costs little and keeps flat areas flat.
    let isSame = wanted.width == width && wanted.height == height
    var flags = (isSame ? SWS_BICUBIC : SWS_LANCZOS) | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT
    // Chroma of RGB is computed from pairs of pixels; the last pixel of an odd row would be paired with what follows it in memory.
    if wanted.width % 2 != 0 { flags |= SWS_FULL_CHR_H_INP }
    let from = millrace_sws_side(
      format: wanted.format, width: Int32(wanted.width), height: Int32(wanted.height),
      colours: wanted.colours,
      is_full_range: wanted.isFullRange)
    let to = millrace_sws_side(
      format: pixel.library, width: Int32(width), height: Int32(height), colours: SWS_CS_ITU601,
      is_full_range: isFullRange)
    unsafe context = millrace_sws_new(from, to, flags)
    return unsafe context != nil
  }

  /// Copies the result into a packet, without row padding, with rotation.
  func copy(into target: inout MutableSpan<UInt8>, turned turn: PictureOrientation = PictureOrientation()) {
    precondition(
      target.count >= pixel.byteCount(width: width, height: height), "the target is too small for the picture"
    )
    unsafe target.withUnsafeMutableBufferPointer { target in
      guard let start = target.baseAddress else { return }
      unsafe copy(to: start, turn)
    }
  }

  /// Copies the planar 4:2:0 result onto a larger one without row padding. `left` and `top` are even.
  func copy(
    onto target: inout MutableSpan<UInt8>, width canvasWidth: Int, height canvasHeight: Int, left: Int,
    top: Int
  ) {
    precondition(left % 2 == 0 && top % 2 == 0, "chroma starts at even pixels")
    precondition(
      left + width <= canvasWidth && top + height <= canvasHeight, "it does not lie within the canvas")
    let room = target.count
    precondition(
      pixel == .i420 && room >= pixel.byteCount(width: canvasWidth, height: canvasHeight),
      "the canvas is too small")
    let layout = PlaneLayout(pixel, width: canvasWidth, height: canvasHeight)
    let (luma, half) = (top * layout.strides.0 + left, top / 2 * layout.strides.1 + left / 2)
    // Used only while the target is alive, until the end of this call.
    let start = unsafe target.withUnsafeMutableBufferPointer { $0.baseAddress }
    guard let start = unsafe start else { return }
    unsafe move(
      (UnsafePointer(memory), UnsafePointer(memory + offsets.1), UnsafePointer(memory + offsets.2)), strides,
      PictureOrientation(),
      to: (start + luma, start + layout.offsets.1 + half, start + layout.offsets.2 + half), layout.strides)
  }

  /// Copies the rows of the first plane to rows that are `step` bytes apart.
  func copyRows(to start: UnsafeMutablePointer<UInt8>, step: Int) {
    unsafe millrace_plane_turn(
      memory, strides.0, Int32(width), Int32(height), Int32(pixel.pixelBytes), 0, 0, start, step)
  }

  /// The rows of a plane of planar 4:2:0, and the stride. Valid until the next call.
  func plane(_ index: Int) -> (start: UnsafePointer<UInt8>, step: Int) {
    precondition(pixel == .i420, "only planar 4:2:0 has such planes")
    return switch index {
    case 0: unsafe (UnsafePointer(memory), strides.0)
    case 1: unsafe (UnsafePointer(memory + offsets.1), strides.1)
    default: unsafe (UnsafePointer(memory + offsets.2), strides.2)
    }
  }

  private func copy(to start: UnsafeMutablePointer<UInt8>, _ turn: PictureOrientation) {
    let tight = PlaneLayout(
      pixel, width: turn.isSideways ? height : width, height: turn.isSideways ? width : height)
    unsafe move(
      (UnsafePointer(memory), UnsafePointer(memory + offsets.1), UnsafePointer(memory + offsets.2)), strides,
      turn, to: (start + tight.offsets.0, start + tight.offsets.1, start + tight.offsets.2), tight.strides)
  }
}
