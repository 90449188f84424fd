public import MillraceCore

extension Catalogue {
  /// The video nodes: files, screens, live streams, coding for live connections, scaling, and JPEG under a byte budget.
  public static let videoNodes: Catalogue = {
    var catalogue = Catalogue()
    catalogue.add(VideoRead.self)
    catalogue.add(VideoCapture.self)
    catalogue.add(RTMPPull.self)
    catalogue.add(VideoScale.self)
    catalogue.add(VideoCompose.self)
    catalogue.add(VideoSample.self)
    catalogue.add(VideoSnapshot.self)
    catalogue.add(ImageWrite.self)
    catalogue.add(VideoRecord.self)
    catalogue.add(RTMPPush.self)
    catalogue.add(VideoEncode.self)
    catalogue.add(VideoDecode.self)
    return catalogue
  }()
}
