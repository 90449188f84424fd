// Channel layouts and sample formats under names that Swift can import.
#pragma once

#include <stdbool.h>

#include <libavutil/channel_layout.h>
#include <libavutil/samplefmt.h>

#pragma clang assume_nonnull begin

/// The default layout of a channel count: 1 is mono, 2 is stereo, 6 is 5.1. For other counts the order is
/// unspecified. Owns no memory, so it may be copied and need not be freed.
static inline AVChannelLayout millrace_av_default_layout(int channels) {
  AVChannelLayout layout = {0};
  av_channel_layout_default(&layout, channels);
  return layout;
}

/// Whether two layouts are the same; false too for layouts that cannot be compared.
static inline bool millrace_av_layouts_equal(const AVChannelLayout *a, const AVChannelLayout *b) {
  return av_channel_layout_compare(a, b) == 0;
}

/// Interleaved signed 16 bits, full scale at 32,768 (`AV_SAMPLE_FMT_S16`), in the integer type of
/// `AVFrame.format` and `AVCodecParameters.format`.
static const int millrace_av_sample_s16 = AV_SAMPLE_FMT_S16;

/// As `millrace_av_sample_s16`, one plane per channel (`AV_SAMPLE_FMT_S16P`).
static const int millrace_av_sample_s16_planar = AV_SAMPLE_FMT_S16P;

/// Interleaved 32-bit floats, full scale at 1 (`AV_SAMPLE_FMT_FLT`).
static const int millrace_av_sample_f32 = AV_SAMPLE_FMT_FLT;

/// As `millrace_av_sample_f32`, one plane per channel (`AV_SAMPLE_FMT_FLTP`).
static const int millrace_av_sample_f32_planar = AV_SAMPLE_FMT_FLTP;

/// No sample format: not known yet (`AV_SAMPLE_FMT_NONE`).
static const int millrace_av_sample_none = AV_SAMPLE_FMT_NONE;

#pragma clang assume_nonnull end
