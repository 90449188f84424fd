internal import MillraceNet
internal import MillraceRTCWire

/// What a WHIP or WHEP server has said of a session: where it is, and what may be done with it. Source: RFC 9725 sections 4.2 and 4.3.
struct WHIPResource: Sendable {
  /// Where PATCH and DELETE go.
  let address: WebAddress
  /// The entity tag of the ICE session; nil: the server knows none.
  var etag: String?
  var takesCandidates: Bool
  var takesRestarts: Bool

  /// The resource that a response names; nil: none, or one that must not be asked: from https: nothing is sent to http:.
  init?(_ response: HTTPClient.Response, _ access: SignalAccess) {
    guard let location = response.location, access.mayGo(from: response.address, to: location) else {
      return nil
    }
    address = location
    etag = response["ETag"].flatMap { $0.isEmpty ? nil : $0 }
    let patches = response.values(of: "Accept-Patch").joined(separator: ",").lowercased()
    let saysNo = !patches.isEmpty && !patches.contains(TrickleFragment.mediaType)
    takesCandidates = !saysNo && (etag != nil || !patches.isEmpty)
    // The tag tells ICE sessions apart: without one there is only the first.
    takesRestarts = !saysNo && etag != nil
  }

  /// The condition of a PATCH with candidates.
  var condition: [(name: String, value: String)] { etag.map { [(name: "If-Match", value: $0)] } ?? [] }
}
