package import MillraceRoomWire

/// How much of the files that members share a hub keeps.
package struct RoomFileLimits: Sendable, Hashable {
  /// The most bytes of a file.
  package var file = 10_000_000
  /// The most bytes of all files of a room, and of all rooms.
  package var room = 64_000_000
  package var hub = 256_000_000
  /// The most bytes of all files that come from one address (`ClientAddress`): whoever opens many rooms does not fill the hub.
  package var address = 64_000_000
  /// How many files of one member may be announced or on their way at once.
  package var unfinished = 8
  /// How long an upload may wait for its beginning, and then for its end: a file of 10 MB takes as long at 133 kbit/s.
  package var ticketSeconds = 60
  package var uploadSeconds = 600
  /// How many may send and how many may read files at once, in all and of one address: each takes one of the connections by which pages are
  /// loaded and members come in, so both together are fewer than these.
  package var uploads = 32
  package var uploadsPerAddress = 16
  package var downloads = 64
  package var downloadsPerAddress = 32
  /// How long one may read: a file of 10 MB takes as long at 133 kbit/s.
  package var downloadSeconds = 600

  package init() {}
}

/// An upload that a hub takes.
package struct RoomUpload: Sendable, Hashable {
  /// The id of the file.
  package let file: RoomName
  /// How many bytes come.
  package let bytes: Int
}

/// Why a hub does not take an upload: a status of HTTP, and a text for people.
package struct RoomFileRefusal: Error, Sendable, Hashable {
  package let status: Int
  package let text: String

  init(_ status: Int, _ text: String) {
    self.status = status
    self.text = text
  }

  /// Enough others are sending files.
  static let crowded = RoomFileRefusal(503, "too many files are being sent; try again in 1 s")
  /// Nobody waits for the content of a file any more.
  static let over = RoomFileRefusal(
    410, "the member or the room has gone, or the upload took too long; share the file again")
}
