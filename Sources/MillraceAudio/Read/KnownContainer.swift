internal import CFFmpeg

/// The files that are read: those that hold their sound and pictures themselves.
///
/// libavformat knows formats that name other files, whatever a file's own name ends with: playlists (HLS, DASH, ffconcat), descriptions
/// of sessions, names with a pattern for a series of pictures. Who hands such a file in would be shown files of the machine that are
/// none of theirs, or have one read without an end. SVG is left out because drawing is a program of the file's: two kilobytes of
/// filters take minutes, whatever size the picture has.
package enum KnownContainer {
  /// As libavformat calls its demuxers.
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
    // Pictures, by their content.
    "bmp_pipe", "gif_pipe", "j2k_pipe", "jpeg_pipe", "jpegls_pipe", "jpegxl_pipe", "pam_pipe", "pbm_pipe",
    "pcx_pipe", "pgm_pipe", "png_pipe", "ppm_pipe", "psd_pipe", "qoi_pipe", "sgi_pipe",
    "tiff_pipe", "webp_pipe", "xbm_pipe", "xpm_pipe",
  ]

  /// Options for opening a file: the containers above, decoders of all but drawings, nothing but files, and a name as it is, without a
  /// pattern in it.
  package static let options = [
    "format_whitelist": names.joined(separator: ","), "codec_whitelist": decoders.joined(separator: ","),
    "protocol_whitelist": "file", "pattern_type": "none",
  ]

  /// The decoders there are. Told by its name, a drawing is taken for a picture, and would be drawn when the file is looked at.
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

  /// What a file is that was refused for not being among them, as libavformat calls it; nil: that was not why.
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

  /// What to say of such a file.
  package static func refusal(_ name: String) -> (text: String, cure: String) {
    (
      "is no file that holds sound or pictures itself (FFmpeg calls it \(name)), and such files are not followed",
      name.hasPrefix("svg") ? "convert the drawing to a PNG" : "name the file it leads to, or convert it"
    )
  }
}
