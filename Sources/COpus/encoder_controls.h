// Typed controls of an Opus encoder.
//
// `opus_encoder_ctl` is variadic, which Swift cannot call; here each request has a function instead. All are
// inlined, allocate nothing and take no lock. As with every call on the same encoder, only one
// thread at a time may make them. Each returns `OPUS_OK`, or a negative code for `opus_strerror`: `OPUS_BAD_ARG`
// for a value out of range, `OPUS_UNIMPLEMENTED` for a request that an older library does not support. Ranges are those
// of libopus 1.3.
#pragma once

#include <opus/opus.h>

#pragma clang assume_nonnull begin

/// Sets the bitrate in bit/s: 500 to 512,000, `OPUS_AUTO`, or `OPUS_BITRATE_MAX` (as much as the
/// output buffer takes). May change between two frames.
static inline int millrace_opus_encoder_set_bitrate(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_BITRATE(value));
}

/// Reads the bitrate in bit/s; for `OPUS_AUTO` the rate the encoder chose.
static inline int millrace_opus_encoder_get_bitrate(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_BITRATE(value));
}

/// Sets the computational effort, 0 (cheapest) to 10 (best). May change between two frames.
static inline int millrace_opus_encoder_set_complexity(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_COMPLEXITY(value));
}

/// Reads the computational effort, 0 to 10.
static inline int millrace_opus_encoder_get_complexity(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_COMPLEXITY(value));
}

/// Changes the application (`OPUS_APPLICATION_...`) given at creation. Refused with `OPUS_BAD_ARG` after the
/// first frame, unless the value is the present one; the look-ahead may change with it.
static inline int millrace_opus_encoder_set_application(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_APPLICATION(value));
}

/// Reads the application, one of `OPUS_APPLICATION_...`.
static inline int millrace_opus_encoder_get_application(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_APPLICATION(value));
}

/// Chooses variable (1, the default) or constant (0) bitrate.
static inline int millrace_opus_encoder_set_vbr(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_VBR(value));
}

/// Reads whether the bitrate is variable (1) or constant (0).
static inline int millrace_opus_encoder_get_vbr(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_VBR(value));
}

/// Chooses constrained (1, the default) or free (0) variable bitrate. Constrained keeps to one frame of
/// buffering at the set rate. Without effect at constant bitrate.
static inline int millrace_opus_encoder_set_vbr_constraint(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_VBR_CONSTRAINT(value));
}

/// Reads whether variable bitrate is constrained (1) or free (0).
static inline int millrace_opus_encoder_get_vbr_constraint(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_VBR_CONSTRAINT(value));
}

/// Switches in-band forward error correction on (1) or off (0, the default): a coarse copy of the frame
/// before. Speech layer only, and only with an expected loss above zero.
static inline int millrace_opus_encoder_set_inband_fec(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_INBAND_FEC(value));
}

/// Reads whether in-band forward error correction is on.
static inline int millrace_opus_encoder_get_inband_fec(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_INBAND_FEC(value));
}

/// Sets the expected loss in percent, 0 (the default) to 100. Higher values trade clean quality for
/// resistance.
static inline int millrace_opus_encoder_set_packet_loss_perc(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_PACKET_LOSS_PERC(value));
}

/// Reads the expected loss in percent.
static inline int millrace_opus_encoder_get_packet_loss_perc(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_PACKET_LOSS_PERC(value));
}

/// Switches discontinuous transmission on (1) or off (0, the default): during silence most frames become
/// one or two bytes that need not be sent.
static inline int millrace_opus_encoder_set_dtx(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_DTX(value));
}

/// Reads whether discontinuous transmission is on.
static inline int millrace_opus_encoder_get_dtx(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_DTX(value));
}

/// Sets the type of the signal: `OPUS_AUTO`, `OPUS_SIGNAL_VOICE` or `OPUS_SIGNAL_MUSIC`. A hint, not a mode.
static inline int millrace_opus_encoder_set_signal(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_SIGNAL(value));
}

/// Reads the signal hint.
static inline int millrace_opus_encoder_get_signal(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_SIGNAL(value));
}

/// Forces the audio bandwidth, one of `OPUS_BANDWIDTH_...` or `OPUS_AUTO` (the default). To leave the
/// encoder free below a ceiling, set the highest bandwidth instead.
static inline int millrace_opus_encoder_set_bandwidth(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_BANDWIDTH(value));
}

/// Reads the bandwidth of the last frame, one of `OPUS_BANDWIDTH_...`. Not the forced value.
static inline int millrace_opus_encoder_get_bandwidth(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_BANDWIDTH(value));
}

/// Sets the highest audio bandwidth the encoder may choose, one of `OPUS_BANDWIDTH_...`.
static inline int millrace_opus_encoder_set_max_bandwidth(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_MAX_BANDWIDTH(value));
}

/// Reads the highest audio bandwidth the encoder may choose.
static inline int millrace_opus_encoder_get_max_bandwidth(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_MAX_BANDWIDTH(value));
}

/// Forces coding as mono (1) or stereo (2) whatever the input has, or `OPUS_AUTO` (the default).
static inline int millrace_opus_encoder_set_force_channels(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_FORCE_CHANNELS(value));
}

/// Reads the forced number of coded channels, or `OPUS_AUTO`.
static inline int millrace_opus_encoder_get_force_channels(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_FORCE_CHANNELS(value));
}

/// Sets the number of significant bits of a sample, 8 to 24 (the default; 16-bit input counts as 16 by itself).
/// Helps the encoder to recognise silence.
static inline int millrace_opus_encoder_set_lsb_depth(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_LSB_DEPTH(value));
}

/// Reads the number of significant bits of a sample.
static inline int millrace_opus_encoder_get_lsb_depth(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_LSB_DEPTH(value));
}

/// Sets the frame duration, one of `OPUS_FRAMESIZE_...`. With `OPUS_FRAMESIZE_ARG` (the default) it is the
/// number of samples of each call; otherwise a call must bring at least that many, and the rest is left.
static inline int millrace_opus_encoder_set_expert_frame_duration(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_EXPERT_FRAME_DURATION(value));
}

/// Reads the frame duration setting, one of `OPUS_FRAMESIZE_...`.
static inline int millrace_opus_encoder_get_expert_frame_duration(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_EXPERT_FRAME_DURATION(value));
}

/// Makes each frame nearly independent of the one before (1), at a loss of quality, or not (0, the default).
static inline int millrace_opus_encoder_set_prediction_disabled(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_PREDICTION_DISABLED(value));
}

/// Reads whether prediction between frames is reduced.
static inline int millrace_opus_encoder_get_prediction_disabled(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_PREDICTION_DISABLED(value));
}

/// Keeps stereo coding from inverting phase (1), for output that is folded to mono, or not (0, the default).
static inline int millrace_opus_encoder_set_phase_inversion_disabled(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_PHASE_INVERSION_DISABLED(value));
}

/// Reads whether phase inversion in stereo is disabled.
static inline int millrace_opus_encoder_get_phase_inversion_disabled(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_PHASE_INVERSION_DISABLED(value));
}

/// Reads the look-ahead in samples at the encoder's rate: the delay to write as Ogg Opus pre-skip
/// (times 48,000 / rate; RFC 7845 section 4.2).
static inline int millrace_opus_encoder_get_lookahead(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_LOOKAHEAD(value));
}

/// Reads the sample rate in Hz given at creation.
static inline int millrace_opus_encoder_get_sample_rate(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_SAMPLE_RATE(value));
}

/// Reads the range coder's final state after the last frame. A decoder of the same packet ends in the same
/// state, so two equal values prove a correct decode.
static inline int millrace_opus_encoder_get_final_range(OpusEncoder *encoder, opus_uint32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_FINAL_RANGE(value));
}

/// Reads whether the last frame was omitted or only carried comfort noise because of discontinuous
/// transmission (1) or was coded in full (0).
static inline int millrace_opus_encoder_get_in_dtx(OpusEncoder *encoder, opus_int32 *value) {
  return opus_encoder_ctl(encoder, OPUS_GET_IN_DTX(value));
}

/// Resets the signal state, as if newly created, and keeps every setting.
static inline int millrace_opus_encoder_reset(OpusEncoder *encoder) {
  return opus_encoder_ctl(encoder, OPUS_RESET_STATE);
}

#pragma clang assume_nonnull end
