/// The page for browsers, as it lies in the program: it needs no files at run time.
enum RoomPage {
  /// The files by their path on the server, with their media types.
  static let files: [String: (type: String, bytes: [UInt8])] = [
    "/": (type: "text/html; charset=utf-8", bytes: PackageResources.room_html),
    scriptPath: (type: "text/javascript; charset=utf-8", bytes: PackageResources.room_js),
  ]

  /// Where the page's script is.
  static let scriptPath = "/room.js"
}
