// Pixel formats and colours of pictures under names that Swift imports.
#pragma once

#include <stdbool.h>

#include <libavutil/pixdesc.h>
#include <libavutil/pixfmt.h>
#include <libswscale/swscale.h>

#pragma clang assume_nonnull begin

/// Planar YUV 4:2:0 (`AV_PIX_FMT_YUV420P`), in the integer type of `AVFrame.format`.
static const int millrace_av_pixel_i420 = AV_PIX_FMT_YUV420P;

/// As `millrace_av_pixel_i420`, of full range (`AV_PIX_FMT_YUVJ420P`, which FFmpeg has given up but its decoders still say).
static const int millrace_av_pixel_i420_full = AV_PIX_FMT_YUVJ420P;

/// Y plane and interleaved UV, 4:2:0 (`AV_PIX_FMT_NV12`).
static const int millrace_av_pixel_nv12 = AV_PIX_FMT_NV12;

/// Red, green, blue of 8 bits (`AV_PIX_FMT_RGB24`).
static const int millrace_av_pixel_rgb24 = AV_PIX_FMT_RGB24;

/// Blue, green, red and a byte without meaning (`AV_PIX_FMT_BGR0`).
static const int millrace_av_pixel_bgrx = AV_PIX_FMT_BGR0;

/// No pixel format: not yet known (`AV_PIX_FMT_NONE`).
static const int millrace_av_pixel_none = AV_PIX_FMT_NONE;

/// Whether pictures of a format hold luma and colour differences, which may be of full or of video range.
static inline bool millrace_av_pixel_is_yuv(int format) {
  const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get((enum AVPixelFormat)format);
  return descriptor && !(descriptor->flags & AV_PIX_FMT_FLAG_RGB) && descriptor->nb_components >= 3;
}

/// Whether pictures of a format hold luma only, with or without transparency.
static inline bool millrace_av_pixel_is_grey(int format) {
  const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get((enum AVPixelFormat)format);
  return descriptor && !(descriptor->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) &&
         descriptor->nb_components <= 2;
}

/// Whether a format is one of the `yuvj` formats, which are of full range whatever the frame says.
static inline bool millrace_av_pixel_is_full_by_name(int format) {
  return format == AV_PIX_FMT_YUVJ420P || format == AV_PIX_FMT_YUVJ422P || format == AV_PIX_FMT_YUVJ444P ||
         format == AV_PIX_FMT_YUVJ440P || format == AV_PIX_FMT_YUVJ411P;
}

/// The plain format in place of a `yuvj` one; any other as it is.
static inline int millrace_av_pixel_plain(int format) {
  switch (format) {
    case AV_PIX_FMT_YUVJ420P: return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P: return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ444P: return AV_PIX_FMT_YUV444P;
    case AV_PIX_FMT_YUVJ440P: return AV_PIX_FMT_YUV440P;
    case AV_PIX_FMT_YUVJ411P: return AV_PIX_FMT_YUV411P;
    default: return format;
  }
}

/// Tells a scaler the colours of both sides: each is one of `SWS_CS_...`, and full range or not. Negative when the pair cannot
/// be converted.
static inline int millrace_sws_set_colours(struct SwsContext *context, int from, bool from_full, int to,
                                           bool to_full) {
  return sws_setColorspaceDetails(context, sws_getCoefficients(from), from_full, sws_getCoefficients(to), to_full, 0,
                                  1 << 16, 1 << 16);
}

#pragma clang assume_nonnull end
