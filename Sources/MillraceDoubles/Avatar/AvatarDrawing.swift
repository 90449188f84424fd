/// Draws an avatar: a head whose mouth opens with its sound. Planar 4:2:0, full range.
struct AvatarDrawing {
  /// A colour as luma and two colour differences.
  private struct Colour {
    var y: UInt8
    var u: UInt8
    var v: UInt8

    static let wall = Colour(y: 96, u: 138, v: 118)
    static let shirt = Colour(y: 58, u: 150, v: 108)
    static let skin = Colour(y: 186, u: 108, v: 150)
    static let hair = Colour(y: 44, u: 124, v: 134)
    static let eye = Colour(y: 30, u: 128, v: 128)
    static let mouth = Colour(y: 70, u: 116, v: 176)
  }

  /// An ellipse, in thousandths of the picture's width around its middle.
  private struct Ellipse {
    var x: Int
    var y: Int
    var width: Int
    var height: Int
  }

  let width: Int
  let height: Int
  /// The avatar with its mouth closed.
  private let still: [UInt8]

  /// - Parameters:
  ///   - width: an even number of pixels.
  ///   - height: an even number of pixels.
  init(width: Int, height: Int) {
    self.width = width
    self.height = height
    var picture = [UInt8](repeating: Colour.wall.y, count: width * height * 3 / 2)
    let chroma = width * height / 4
    picture.replaceSubrange(
      width * height..<width * height + chroma, with: repeatElement(Colour.wall.u, count: chroma))
    picture.replaceSubrange(
      width * height + chroma..<picture.count, with: repeatElement(Colour.wall.v, count: chroma))
    for (ellipse, colour) in [
      (Ellipse(x: 0, y: 640, width: 400, height: 360), Colour.shirt),
      (Ellipse(x: 0, y: -110, width: 262, height: 320), .hair),
      (Ellipse(x: 0, y: -40, width: 232, height: 300), .skin),
      (Ellipse(x: -90, y: -90, width: 26, height: 18), .eye),
      (Ellipse(x: 90, y: -90, width: 26, height: 18), .eye),
    ] {
      Self.fill(ellipse, colour, width: width, height: height) { picture[$0] = $1 }
    }
    still = picture
  }

  /// Bytes of a picture.
  var byteCount: Int { still.count }

  /// Draws a picture.
  /// - Parameters:
  ///   - mouth: how far the mouth is open, from 0 to 1.
  ///   - isFlash: the picture is white.
  func draw(mouth: Double, isFlash: Bool, into target: inout MutableSpan<UInt8>) {
    unsafe target.withUnsafeMutableBufferPointer { target in
      guard !isFlash else {
        unsafe target.prefix(width * height).update(repeating: 255)
        return unsafe target.dropFirst(width * height).update(repeating: 128)
      }
      unsafe still.withUnsafeBytes { unsafe UnsafeMutableRawBufferPointer(target).copyMemory(from: $0) }
    }
    guard !isFlash else { return }
    let opening = Ellipse(x: 0, y: 110, width: 84, height: 6 + Int(mouth * 54))
    Self.fill(opening, .mouth, width: width, height: height) { target[$0] = $1 }
  }

  private static func fill(
    _ ellipse: Ellipse, _ colour: Colour, width: Int, height: Int, _ set: (Int, UInt8) -> Void
  ) {
    // Two by two pixels share their colour.
    let (centreX, centreY) = (
      (width / 2 + ellipse.x * width / 1_000), (height / 2 + ellipse.y * width / 1_000)
    )
    let (across, down) = (max(1, ellipse.width * width / 1_000), max(1, ellipse.height * width / 1_000))
    let chroma = width * height / 4
    for row in stride(from: max(0, centreY - down) / 2 * 2, to: min(height, centreY + down), by: 2) {
      let rise = Double(row - centreY) / Double(down)
      let half = Int(Double(across) * max(0, 1 - rise * rise).squareRoot())
      for column in stride(from: max(0, centreX - half) / 2 * 2, to: min(width, centreX + half), by: 2) {
        for place in [0, 1, width, width + 1] { set(row * width + column + place, colour.y) }
        let place = width * height + row / 2 * (width / 2) + column / 2
        set(place, colour.u)
        set(place + chroma, colour.v)
      }
    }
  }
}
