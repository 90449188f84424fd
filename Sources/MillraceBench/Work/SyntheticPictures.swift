import MillraceVideo

/// Synthetic pictures, the same in every run, for machines without recordings.
///
/// They have what makes an encoder work: clouds whose contrast falls with their size as in photographs (amplitude proportional to 1/f; Field,
/// Journal of the Optical Society of America A 4(12), 1987), shapes with hard edges in front of them, slowly changing colours, and grain.
enum SyntheticPictures {
  /// Contrast of the coarsest octave, in steps of luma.
  private static let contrast: Float = 52
  /// Share of the contrast that each finer octave keeps.
  private static let falloff: Float = 0.55
  private static let colour: Float = 24
  private static let shapes = 48
  /// How far the camera of a video moves between pictures, in pixels: even, as 4:2:0 requires.
  private static let step = (right: 24, down: 8)

  /// Consecutive pictures of a camera that moves over a scene.
  static func video(width: Int, height: Int, count: Int) -> [RawPicture] {
    let scene = picture(
      width: width + step.right * count, height: height + step.down * count, grain: 2, seed: 1)
    return (0..<count).compactMap {
      scene.part(left: $0 * step.right, top: $0 * step.down, width: width, height: height)
    }
  }

  /// Pictures of different scenes, with increasing grain: the first has none and is small as JPEG.
  static func photographs(width: Int, height: Int, count: Int) -> [RawPicture] {
    (0..<count).map { picture(width: width, height: height, grain: Float(4 * $0), seed: UInt64(2 + $0)) }
  }

  /// One scene. Both sides are even; `grain` is the largest change to a pixel's luma.
  static func picture(width: Int, height: Int, grain: Float, seed: UInt64) -> RawPicture {
    var dice = Dice(seed: seed)
    var luma = Plane(width: width, height: height)
    luma.addClouds(contrast, &dice)
    for _ in 0..<shapes { luma.addShape(&dice) }
    if grain > 0 { for index in luma.values.indices { luma.values[index] += grain * Float(dice.uniform()) } }
    var bytes = luma.bytes
    for _ in 0..<2 {
      var chroma = Plane(width: width / 2, height: height / 2)
      chroma.addClouds(colour, &dice)
      bytes += chroma.bytes
    }
    return RawPicture(width: width, height: height, bytes: bytes)
  }

  /// One component of a picture, initially grey.
  private struct Plane {
    let width: Int
    let height: Int
    var values: [Float]

    init(width: Int, height: Int) {
      self.width = width
      self.height = height
      values = Array(repeating: 128, count: width * height)
    }

    var bytes: [UInt8] { values.map { UInt8(max(0, min(255, $0))) } }

    /// Adds octaves from half the height down to two pixels.
    mutating func addClouds(_ contrast: Float, _ dice: inout Dice) {
      var (cell, amplitude) = (max(2, height / 2), contrast)
      while cell >= 2 {
        addOctave(cell, amplitude, &dice)
        cell /= 2
        amplitude *= falloff
      }
    }

    /// Adds random values on a grid, interpolated linearly.
    private mutating func addOctave(_ cell: Int, _ amplitude: Float, _ dice: inout Dice) {
      let columns = width / cell + 2
      let grid = (0..<columns * (height / cell + 2)).map { _ in amplitude * Float(dice.uniform()) }
      for y in 0..<height {
        let (row, down) = (y / cell * columns, Float(y % cell) / Float(cell))
        for x in 0..<width {
          let (place, right) = (row + x / cell, Float(x % cell) / Float(cell))
          let above = grid[place] + right * (grid[place + 1] - grid[place])
          let low = place + columns
          let below = grid[low] + right * (grid[low + 1] - grid[low])
          values[y * width + x] += above + down * (below - above)
        }
      }
    }

    /// Adds a disc or a box of another brightness, two thirds opaque.
    mutating func addShape(_ dice: inout Dice) {
      func place(_ most: Int, _ dice: inout Dice) -> Int { Int(Double(most) * (dice.uniform() + 1) / 2) }
      let isRound = dice.uniform() > 0
      let half = 2 + place(height / 8, &dice)
      let (middle, line) = (place(width, &dice), place(height, &dice))
      let level = 128 + 90 * Float(dice.uniform())
      for y in max(0, line - half)..<max(0, min(height, line + half)) {
        for x in max(0, middle - half)..<max(0, min(width, middle + half)) {
          let (dx, dy) = (x - middle, y - line)
          if isRound && dx * dx + dy * dy > half * half { continue }
          values[y * width + x] = level + (values[y * width + x] - 128) / 3
        }
      }
    }
  }
}
