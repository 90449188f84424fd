internal import MillraceDialog

/// Who is in the slots of a session, as its signalling says: by the place of the medium among those of its kind that are received. On the
/// thread of the call's loop.
struct CallSlots: Sendable {
  private var sounds: [Int: String] = [:]
  private var pictures: [Int: String] = [:]
  /// The places of the sounds of those who are seen, by the place of their pictures.
  private var matched: [UInt8] = []

  /// The places that somebody has.
  var taken: [(track: DialogTrack, place: Int)] {
    sounds.keys.sorted().map { (.audio, $0) } + pictures.keys.sorted().map { (.video, $0) }
  }

  /// Puts somebody, or nobody, into a slot.
  mutating func assign(_ track: DialogTrack, _ place: Int, to peer: String?) {
    if track == .audio { sounds[place] = peer } else { pictures[place] = peer }
    let count = (pictures.keys.max() ?? -1) + 1
    matched = (0..<count).map { place in
      guard let peer = pictures[place] else { return PictureDownHead.anySound }
      let sound = sounds.first { $0.value == peer }?.key
      return sound.map { UInt8(clamping: $0) } ?? PictureDownHead.noSound
    }
  }

  /// The place of the sound of who is seen at a place, as in `PictureDownHead.sound`. No heap request.
  func sound(ofPictures place: UInt8) -> UInt8 {
    place < matched.count ? matched[Int(place)] : PictureDownHead.anySound
  }
}
