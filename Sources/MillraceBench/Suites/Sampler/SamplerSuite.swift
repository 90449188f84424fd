import MillraceVideo

/// The JPEG sampler on photographs and videos at three sizes and two budgets: bytes, encodes, similarity and processor time, next to
/// FFmpeg's encoder. Figures of synthetic pictures, used where there are no recordings, say so in their names and have fewer goals: most
/// goals are set for recordings.
enum SamplerSuite {
  private static let sizes = [("720p", 1_280, 720), ("1080p", 1_920, 1_080), ("2160p", 3_840, 2_160)]
  private static let budgets = [
    ("180,000 bytes", ByteBudget(maxBytes: 180_000)),
    ("180,000 of base64", ByteBudget(maxBytes: 180_000, count: .base64)),
  ]

  /// The result for one picture.
  struct Row {
    var isOver = false
    var encodes = 0
    var processor = 0.0
    var similarity = 0.0
    /// How much more similar the best JPEG of the same size is.
    var best = 0.0
    /// Similarity of the best JPEG of any size.
    var bestAnySize = 0.0
    var peer = 0.0
    var peerProcessor = 0.0
  }

  static func run() throws -> [Figure] {
    var figures: [Figure] = []
    for (name, width, height) in sizes {
      let material = try SamplerMaterial(width: width, height: height)
      let pictures = material.isSynthetic ? "synthetic \(name)" : name
      for (label, budget) in budgets {
        let rows = try rows(material, limit: budget.largestJPEG)
        figures += self.figures(
          "\(pictures), \(label)", rows, isSmallest: name == "720p", hasGoals: !material.isSynthetic)
      }
    }
    return figures
  }

  private static func rows(_ material: SamplerMaterial, limit: Int) throws -> [Row] {
    var rows: [Row] = []
    for video in material.videos { rows += try self.rows(video, limit) }
    for picture in material.photographs { rows += try self.rows([picture], limit) }
    return rows
  }

  /// Consecutive pictures.
  private static func rows(_ pictures: [RawPicture], _ limit: Int) throws -> [Row] {
    guard let first = pictures.first else { return [] }
    let encoder = BudgetEncoder(limit: limit, width: first.width, height: first.height)
    let whole = BudgetEncoder(limit: limit, width: first.width, height: first.height, scaling: false)
    let best = BestJPEG()
    return try pictures.map { picture in
      var row = Row()
      let start = processorSeconds()
      let result = try encoder.encode(picture.view)
      row.processor = (processorSeconds() - start) * 1e3
      row.encodes = result.encodes
      row.isOver = result.byteCount > limit
      row.similarity = shown(encoder, result, picture)
      row.bestAnySize = best.similarityAtAnySize(of: picture, limit: limit) ?? 0
      // The search at one size is compared with an encoder that keeps the size.
      let same = try whole.encode(picture.view)
      row.best = (best.similarity(of: picture, limit: limit) ?? 0) - shown(whole, same, picture)
      let peerStart = processorSeconds()
      let peer = LibraryMJPEG.encode(picture, limit: limit)
      row.peerProcessor = (processorSeconds() - peerStart) * 1e3
      row.peer =
        peer.flatMap { jpeg in
          unsafe jpeg.withUnsafeBytes {
            unsafe jpegSimilarity($0, width: picture.width, height: picture.height, to: picture)
          }
        } ?? 0
      return row
    }
  }

  private static func shown(
    _ encoder: BudgetEncoder, _ result: BudgetEncoder.Result, _ picture: RawPicture
  ) -> Double {
    unsafe jpegSimilarity(
      UnsafeRawBufferPointer(rebasing: encoder.bytes[..<result.byteCount]), width: result.width,
      height: result.height, to: picture) ?? 0
  }

  /// The figures of pictures of one size under one budget.
  /// - Parameter hasGoals: the pictures are recordings, for which the goals are set.
  static func figures(_ name: String, _ rows: [Row], isSmallest: Bool, hasGoals: Bool) -> [Figure] {
    func figure(
      _ what: String, of subject: String = "millrace", unit: String = "", goal: String = "",
      _ samples: [Double]
    ) -> Figure {
      Figure("sampler", "\(name): \(what)", of: subject, unit: unit, goal: goal, samples: samples)
    }
    func ofRecordings(_ goal: String) -> String { hasGoals ? goal : "" }
    func share(_ isTrue: (Row) -> Bool) -> Double {
      100 * Double(rows.count(where: isTrue)) / Double(rows.count)
    }
    func mean(_ value: (Row) -> Double) -> Double { rows.reduce(0) { $0 + value($1) } / Double(rows.count) }
    let peer = "ffmpeg mjpeg"
    return [
      figure("pictures over budget of \(rows.count)", goal: "0", [Double(rows.count(where: \.isOver))]),
      figure("at most two encodes", unit: "%", goal: ofRecordings(">= 95"), [share { $0.encodes <= 2 }]),
      figure("one encode", unit: "%", [share { $0.encodes == 1 }]),
      figure(
        "SSIM under the best of its size, mean", unit: "1e-3", goal: ofRecordings("<= 1.5"),
        [mean { 1e3 * $0.best }]),
      figure(
        "SSIM under the best of any size, mean", unit: "1e-3", goal: ofRecordings("<= 1.5"),
        [mean { 1e3 * ($0.bestAnySize - $0.similarity) }]),
      figure("SSIM, mean", [mean { $0.similarity }]),
      figure("SSIM, mean", of: peer, [mean { $0.peer }]),
      figure(
        "processor a picture", unit: "ms", goal: ofRecordings(isSmallest ? "<= 15" : ""),
        rows.map(\.processor)),
      figure("processor a picture", of: peer, unit: "ms", rows.map(\.peerProcessor)),
    ]
  }
}
