internal import CFFmpeg

/// The file formats that may be read: those that contain their audio and video themselves.
///
/// libavformat also reads formats that refer to other files, whatever the extension: playlists (HLS, DASH, ffconcat), session
/// descriptions, file name patterns for picture sequences. A user who supplies such a file could read other files of the machine, or
/// make it read without end. SVG is excluded because rendering it executes the file's instructions: two kilobytes of filters take
/// minutes, whatever the picture size.
package enum SupportedContainer {
  /// libavformat's demuxer names.
  private static let names = [
    "3dostr", "aac", "ac3", "aiff", "amr", "amrnb", "amrwb", "ape", "apng", "aptx", "aptx_hd", "asf", "ast",
    "au",
    "av1", "avi", "caf", "codec2", "daud", "dirac", "dsf", "dts", "dtshd", "dv", "eac3", "flac", "flv",
    "g722",
    "g723_1", "g726", "g726le", "g729", "gif", "gsm", "gxf", "h261", "h263", "h264", "hevc", "ico", "iff",
    "ilbc",
    "image2", "ircam", "ivf", "loas", "m4v", "matroska", "webm", "mjpeg", "mjpeg_2000", "mlp", "mov", "mp4",
    "mp3",
    "mpc", "mpc8", "mpeg", "mpegts", "mpegvideo", "mxf", "nsv", "nut", "obu", "ogg", "oma", "qcp", "rm",
    "rso",
    "sbc", "smjpeg", "sox", "swf", "tak", "truehd", "tta", "vc1", "vc1test", "voc", "vvc", "w64", "wav",
    "webp",
    "wsd", "wtv", "wv", "xwma", "yuv4mpegpipe",
    // Pictures, by content.
    "bmp_pipe", "gif_pipe", "j2k_pipe", "jpeg_pipe", "jpegls_pipe", "jpegxl_pipe", "pam_pipe", "pbm_pipe",
    "pcx_pipe", "pgm_pipe", "png_pipe", "ppm_pipe", "psd_pipe", "qoi_pipe", "sgi_pipe",
    "tiff_pipe", "webp_pipe", "xbm_pipe", "xpm_pipe",
  ]

  /// Options for opening a file: the containers above, all decoders except drawings, the file protocol only, and no patterns in
  /// names.
  package static let options = [
    "format_whitelist": names.joined(separator: ","), "codec_whitelist": decoders.joined(separator: ","),
    "protocol_whitelist": "file", "pattern_type": "none",
  ]

  /// All decoders except SVG. By its name alone a drawing would count as a picture and be rendered on opening.
  private static var decoders: [String] {
    var names: [String] = []
    var place: UnsafeMutableRawPointer?
    while let codec = unsafe av_codec_iterate(&place) {
      if unsafe av_codec_is_decoder(codec) != 0 && codec.pointee.id != AV_CODEC_ID_SVG {
        unsafe names.append(String(cString: codec.pointee.name))
      }
    }
    return names
  }

  /// libavformat's name for a file that was refused because its format is not in the list; nil: it was refused for another reason.
  package static func unknownName(_ url: String, status: Int32) -> String? {
    guard status == -EINVAL else { return nil }
    var input: UnsafeMutablePointer<AVIOContext>?
    var format: UnsafePointer<AVInputFormat>?
    guard unsafe avio_open2(&input, url, AVIO_FLAG_READ, nil, nil) >= 0 else { return nil }
    let found = unsafe av_probe_input_buffer2(input, &format, url, nil, 0, 0)
    unsafe avio_closep(&input)
    guard found >= 0, let format = unsafe format else { return nil }
    let name = unsafe String(cString: format.pointee.name)
    return name.split(separator: ",").contains { names.contains(String($0)) } ? nil : name
  }

  /// The message for such a file.
  package static func refusal(_ name: String) -> (text: String, cure: String) {
    (
      "refers to other files instead of containing media (FFmpeg: \(name)), which is not supported",
      name.hasPrefix("svg") ? "convert the drawing to a PNG" : "name the file it refers to, or convert it"
    )
  }
}
