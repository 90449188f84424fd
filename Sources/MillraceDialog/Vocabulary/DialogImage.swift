internal import MillraceJSON

/// An image of a question.
public enum DialogImage: Sendable, Hashable {
  /// Its URL, readable by the service.
  case url(String)
  /// JPEG in standard Base64, without a prefix.
  case base64(String)
}

extension DialogImage {
  var json: JSONValue {
    switch self {
    case .url(let text): ["url": .string(text)]
    case .base64(let text): ["base64": .string(text)]
    }
  }

  static func list(_ form: JSONForm) throws(JSONFormProblem) -> [DialogImage] {
    guard form.json["images"] != nil else { return [] }
    var result: [DialogImage] = []
    for image in try form.array("images") {
      if let text = image.json["url"]?.string {
        result.append(.url(text))
      } else if let text = image.json["base64"]?.string {
        result.append(.base64(text))
      } else {
        throw JSONFormProblem(image.path, "must have a string \"url\" or \"base64\"")
      }
    }
    return result
  }
}
