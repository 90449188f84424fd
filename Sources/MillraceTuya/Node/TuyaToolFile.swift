internal import Glibc
internal import MillraceCore
internal import MillraceJSON

/// The file of the parameter `tools`.
enum TuyaToolFile {
  /// The largest file in bytes.
  private static let mostBytes = 1 << 20

  /// Reads the tools. Blocks; called before the graph runs.
  static func read(_ path: String) throws(NodeProblem) -> TuyaTools {
    let bytes = try content(path)
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: bytes) } catch {
      throw problem(path, error.description)
    }
    do throws(JSONFormProblem) { return try TuyaTools(json) } catch {
      throw problem(path, error.description)
    }
  }

  private static func problem(_ path: String, _ text: String) -> NodeProblem {
    NodeProblem(
      "cannot read the tools from \"\(path)\": \(text)", parameter: "tools",
      cure:
        "write an object with the array \"tools\" of objects with \"name\", \"description\" and \"inputSchema\""
    )
  }

  private static func content(_ path: String) throws(NodeProblem) -> [UInt8] {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      let reason = unsafe String(cString: strerror(errno)).lowercased()
      throw NodeProblem("cannot read the tools from \"\(path)\": \(reason)", parameter: "tools")
    }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: mostBytes + 1)
    var count = 0
    while count < bytes.count {
      let got = unsafe bytes.withUnsafeMutableBytes {
        unsafe Glibc.read(file, $0.baseAddress! + count, $0.count - count)
      }
      if got < 0 && errno == EINTR { continue }
      guard got >= 0 else {
        let reason = unsafe String(cString: strerror(errno)).lowercased()
        throw NodeProblem("cannot read the tools from \"\(path)\": \(reason)", parameter: "tools")
      }
      if got == 0 { break }
      count += got
    }
    guard count <= mostBytes else {
      throw problem(path, "it has more than \(mostBytes) bytes")
    }
    return Array(bytes[..<count])
  }
}
