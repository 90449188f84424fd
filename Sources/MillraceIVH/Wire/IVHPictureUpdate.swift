public import MillraceJSON

/// What `configsession` changes in the picture, with the ranges of the vendor's document.
public struct IVHPictureUpdate: Sendable, Hashable {
  /// The members of the payload.
  let members: [JSONValue.Member]

  /// The required members of `SpaceParam` with their ranges. The vendor advises a zoom from 0.25 to 2, and sets no limit.
  private static let ranges: [(name: String, range: ClosedRange<Double>)] = [
    ("ImagePosition", -0.5...0.5), ("ImagePositionVertical", -0.5...0.25), ("ImageZoom", 0.01...100),
  ]

  /// Reads the `values` of an `update`: `ImagePosition`, `ImagePositionVertical` and `ImageZoom`, which belong together, `BackgroundUrl`, and
  /// `ImageParam` as it is.
  /// - Throws: where a value is missing or out of its range, or unknown; the service would refuse the whole.
  public init(_ values: JSONValue) throws(JSONFormProblem) {
    let form = JSONForm(values, at: "values")
    guard let all = values.members else { throw JSONFormProblem("values", "must be an object") }
    var space: [JSONValue.Member] = []
    if form["BackgroundUrl"] != nil {
      space.append(JSONValue.Member("BackgroundUrl", .string(try Self.background(form))))
    }
    for (name, range) in Self.ranges {
      guard form[name] != nil else {
        let names = Self.ranges.map(\.name).joined(separator: ", ")
        throw form.problem(name, "is missing; the service takes \(names) only together")
      }
      let value = try form.number(name)
      guard range.contains(value) else {
        throw form.problem(name, "must be from \(range.lowerBound) to \(range.upperBound)")
      }
      space.append(JSONValue.Member(name, form[name] ?? .double(value)))
    }
    let image = try form["ImageParam"].map { _ throws(JSONFormProblem) in try form.object("ImageParam").json }
    let known = Set(Self.ranges.map(\.name) + ["BackgroundUrl", "ImageParam"])
    for member in all where !known.contains(member.name) {
      throw form.problem(member.name, "is not known; known are \(known.sorted().joined(separator: ", "))")
    }
    members = [
      JSONValue.Member("SpaceParam", .object(space)),
      JSONValue.Member("ImageParam", image ?? .object([] as [JSONValue.Member])),
    ]
  }

  private static func background(_ form: JSONForm) throws(JSONFormProblem) -> String {
    let url = try form.string("BackgroundUrl")
    let path = url.lowercased().prefix { $0 != "?" && $0 != "#" }
    guard path.hasPrefix("http://") || path.hasPrefix("https://") else {
      throw form.problem("BackgroundUrl", "must begin with http:// or https://: the service downloads it")
    }
    guard [".jpg", ".jpeg", ".png"].contains(where: path.hasSuffix) else {
      throw form.problem("BackgroundUrl", "must be a .jpg, .jpeg or .png file of less than 1 MB")
    }
    return url
  }
}
