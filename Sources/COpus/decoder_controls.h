// Typed controls of an Opus decoder.
//
// `opus_decoder_ctl` is variadic, which Swift cannot call; here each request has a function instead. All are
// inlined, allocate nothing and take no lock. As with every call on the same decoder, only one
// thread at a time may make them. Each returns `OPUS_OK`, or a negative code for `opus_strerror`: `OPUS_BAD_ARG`
// for a value out of range, `OPUS_UNIMPLEMENTED` for a request that an older library does not support. Ranges are those
// of libopus 1.3.
#pragma once

#include <opus/opus.h>

#pragma clang assume_nonnull begin

/// Sets a gain applied to the output, in 1/256 dB, -32,768 to 32,767: the unit of the Ogg Opus header's output
/// gain (RFC 7845 section 5.1).
static inline int millrace_opus_decoder_set_gain(OpusDecoder *decoder, opus_int32 value) {
  return opus_decoder_ctl(decoder, OPUS_SET_GAIN(value));
}

/// Reads the gain applied to the output, in 1/256 dB.
static inline int millrace_opus_decoder_get_gain(OpusDecoder *decoder, opus_int32 *value) {
  return opus_decoder_ctl(decoder, OPUS_GET_GAIN(value));
}

/// Ignores phase inversion of stereo packets (1), for output that is folded to mono, or follows it (0, the
/// default).
static inline int millrace_opus_decoder_set_phase_inversion_disabled(OpusDecoder *decoder, opus_int32 value) {
  return opus_decoder_ctl(decoder, OPUS_SET_PHASE_INVERSION_DISABLED(value));
}

/// Reads whether phase inversion of stereo packets is ignored.
static inline int millrace_opus_decoder_get_phase_inversion_disabled(OpusDecoder *decoder, opus_int32 *value) {
  return opus_decoder_ctl(decoder, OPUS_GET_PHASE_INVERSION_DISABLED(value));
}

/// Reads the samples per channel of the last decoded or concealed packet, at the decoder's rate: the length to
/// request when the next packet is lost.
static inline int millrace_opus_decoder_get_last_packet_duration(OpusDecoder *decoder, opus_int32 *value) {
  return opus_decoder_ctl(decoder, OPUS_GET_LAST_PACKET_DURATION(value));
}

/// Reads the pitch period of the last frame in samples at 48 kHz, or 0 when there is none.
static inline int millrace_opus_decoder_get_pitch(OpusDecoder *decoder, opus_int32 *value) {
  return opus_decoder_ctl(decoder, OPUS_GET_PITCH(value));
}

/// Reads the bandwidth of the last packet, one of `OPUS_BANDWIDTH_...`.
static inline int millrace_opus_decoder_get_bandwidth(OpusDecoder *decoder, opus_int32 *value) {
  return opus_decoder_ctl(decoder, OPUS_GET_BANDWIDTH(value));
}

/// Reads the sample rate in Hz given at creation.
static inline int millrace_opus_decoder_get_sample_rate(OpusDecoder *decoder, opus_int32 *value) {
  return opus_decoder_ctl(decoder, OPUS_GET_SAMPLE_RATE(value));
}

/// Reads the range coder's final state after the last packet; equals the encoder's when the packet arrived whole.
static inline int millrace_opus_decoder_get_final_range(OpusDecoder *decoder, opus_uint32 *value) {
  return opus_decoder_ctl(decoder, OPUS_GET_FINAL_RANGE(value));
}

/// Resets the signal state, as if newly created, and keeps every setting.
static inline int millrace_opus_decoder_reset(OpusDecoder *decoder) {
  return opus_decoder_ctl(decoder, OPUS_RESET_STATE);
}

#pragma clang assume_nonnull end
