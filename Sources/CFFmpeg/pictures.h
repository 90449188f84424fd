// Pixel formats and colours of pictures under names that Swift can import.
#pragma once

#include <stdbool.h>

#include <libavutil/frame.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libavutil/pixfmt.h>
#include <libswscale/swscale.h>

#pragma clang assume_nonnull begin

/// Planar YUV 4:2:0 (`AV_PIX_FMT_YUV420P`), in the integer type of `AVFrame.format`.
static const int millrace_av_pixel_i420 = AV_PIX_FMT_YUV420P;

/// As `millrace_av_pixel_i420`, of full range (`AV_PIX_FMT_YUVJ420P`, which FFmpeg has deprecated but its decoders still report).
static const int millrace_av_pixel_i420_full = AV_PIX_FMT_YUVJ420P;

/// Y plane and interleaved UV, 4:2:0 (`AV_PIX_FMT_NV12`).
static const int millrace_av_pixel_nv12 = AV_PIX_FMT_NV12;

/// Red, green, blue of 8 bits (`AV_PIX_FMT_RGB24`).
static const int millrace_av_pixel_rgb24 = AV_PIX_FMT_RGB24;

/// Blue, green, red and an unused byte (`AV_PIX_FMT_BGR0`).
static const int millrace_av_pixel_bgrx = AV_PIX_FMT_BGR0;

/// No pixel format: not known yet (`AV_PIX_FMT_NONE`).
static const int millrace_av_pixel_none = AV_PIX_FMT_NONE;

/// Whether a format has luma and chroma, which may be of full or of limited range.
static inline bool millrace_av_pixel_is_yuv(int format) {
  const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get((enum AVPixelFormat)format);
  return descriptor && !(descriptor->flags & AV_PIX_FMT_FLAG_RGB) && descriptor->nb_components >= 3;
}

/// Whether a format has luma only, with or without alpha.
static inline bool millrace_av_pixel_is_grey(int format) {
  const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get((enum AVPixelFormat)format);
  return descriptor && !(descriptor->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) &&
         descriptor->nb_components <= 2;
}

/// Whether a format is one of the `yuvj` formats, which are of full range even if the frame says otherwise.
static inline bool millrace_av_pixel_is_full_by_name(int format) {
  return format == AV_PIX_FMT_YUVJ420P || format == AV_PIX_FMT_YUVJ422P || format == AV_PIX_FMT_YUVJ444P ||
         format == AV_PIX_FMT_YUVJ440P || format == AV_PIX_FMT_YUVJ411P;
}

/// The plain format for a `yuvj` one; any other format unchanged.
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

/// One side of a scaler: pixel format, size, colours (`SWS_CS_...`) and range.
typedef struct {
  int format;
  int width;
  int height;
  int colours;
  bool is_full_range;
} millrace_sws_side;

/// `AV_PKT_DATA_DISPLAYMATRIX`: the rotation of a stream's pictures, as side data of the stream. Swift does not import the
/// enumerator itself when another module's headers name its type.
static const enum AVPacketSideDataType millrace_av_display_matrix = AV_PKT_DATA_DISPLAYMATRIX;

/// `AV_FRAME_DATA_SEI_UNREGISTERED`: a message in an H.264 picture, as side data of the frame.
static const enum AVFrameSideDataType millrace_av_user_data = AV_FRAME_DATA_SEI_UNREGISTERED;

/// Creates a scaler, or returns null when the conversion is not supported. `flags` are `SWS_...`.
///
/// Range and colours are set before the scaler selects its conversion. When they are set afterwards, as `sws_getContext` requires,
/// some conversions (equal sizes and formats, 10 bits) silently keep the range.
static inline struct SwsContext *_Nullable millrace_sws_new(millrace_sws_side from, millrace_sws_side to, int flags) {
  struct SwsContext *context = sws_alloc_context();
  if (!context) return NULL;
  av_opt_set_int(context, "src_format", from.format, 0);
  av_opt_set_int(context, "srcw", from.width, 0);
  av_opt_set_int(context, "srch", from.height, 0);
  av_opt_set_int(context, "src_range", from.is_full_range, 0);
  av_opt_set_int(context, "dst_format", to.format, 0);
  av_opt_set_int(context, "dstw", to.width, 0);
  av_opt_set_int(context, "dsth", to.height, 0);
  av_opt_set_int(context, "dst_range", to.is_full_range, 0);
  av_opt_set_int(context, "sws_flags", flags, 0);
  // Fails when neither side has a range, such as RGB to RGB; then nothing needs to be set.
  sws_setColorspaceDetails(context, sws_getCoefficients(from.colours), from.is_full_range,
                           sws_getCoefficients(to.colours), to.is_full_range, 0, 1 << 16, 1 << 16);
  if (sws_init_context(context, NULL, NULL) >= 0) return context;
  sws_freeContext(context);
  return NULL;
}

#pragma clang assume_nonnull end
