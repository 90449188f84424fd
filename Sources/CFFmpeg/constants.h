// FFmpeg's error codes and times under names that Swift can import. The originals are compound macros.
#pragma once

#include <errno.h>
#include <stdint.h>

#include <libavutil/avutil.h>
#include <libavutil/error.h>

/// The end of the file or stream, or a flushed codec without further output (`AVERROR_EOF`).
static const int millrace_averror_eof = AVERROR_EOF;

/// More input is needed before output, or output must be taken before more input (`AVERROR(EAGAIN)`).
static const int millrace_averror_again = AVERROR(EAGAIN);

/// The data is damaged or not in the expected format (`AVERROR_INVALIDDATA`).
static const int millrace_averror_invalid_data = AVERROR_INVALIDDATA;

/// The interrupt callback ended the call: its deadline passed or it was cancelled (`AVERROR_EXIT`).
static const int millrace_averror_exit = AVERROR_EXIT;

/// The file has no stream of the requested type (`AVERROR_STREAM_NOT_FOUND`).
static const int millrace_averror_stream_not_found = AVERROR_STREAM_NOT_FOUND;

/// This build of FFmpeg cannot read the container (`AVERROR_DEMUXER_NOT_FOUND`).
static const int millrace_averror_demuxer_not_found = AVERROR_DEMUXER_NOT_FOUND;

/// This build of FFmpeg cannot decode the codec (`AVERROR_DECODER_NOT_FOUND`).
static const int millrace_averror_decoder_not_found = AVERROR_DECODER_NOT_FOUND;

/// This build of FFmpeg cannot write the container (`AVERROR_MUXER_NOT_FOUND`).
static const int millrace_averror_muxer_not_found = AVERROR_MUXER_NOT_FOUND;

/// This build of FFmpeg cannot encode the codec (`AVERROR_ENCODER_NOT_FOUND`).
static const int millrace_averror_encoder_not_found = AVERROR_ENCODER_NOT_FOUND;

/// This build of FFmpeg does not support the protocol of the URL (`AVERROR_PROTOCOL_NOT_FOUND`).
static const int millrace_averror_protocol_not_found = AVERROR_PROTOCOL_NOT_FOUND;

/// Unknown option (`AVERROR_OPTION_NOT_FOUND`).
static const int millrace_averror_option_not_found = AVERROR_OPTION_NOT_FOUND;

/// A feature of the format that FFmpeg does not support (`AVERROR_PATCHWELCOME`).
static const int millrace_averror_unsupported = AVERROR_PATCHWELCOME;

/// Out of memory (`AVERROR(ENOMEM)`).
static const int millrace_averror_no_memory = AVERROR(ENOMEM);

/// FFmpeg's error code of an `errno` value (`AVERROR`), for comparison with what a call returned.
static inline int millrace_averror(int errno_value) { return AVERROR(errno_value); }

/// The `errno` value of an FFmpeg error code (`AVUNERROR`). Only for codes made from one: FFmpeg's own tags, such
/// as the end of file, give a large number that is no `errno`.
static inline int millrace_averror_errno(int averror) { return AVUNERROR(averror); }

/// An unknown timestamp (`AV_NOPTS_VALUE`).
static const int64_t millrace_av_no_timestamp = AV_NOPTS_VALUE;

/// One microsecond, the time base of container durations and seeks without a stream (`AV_TIME_BASE_Q`).
static inline AVRational millrace_av_time_base(void) { return (AVRational){1, AV_TIME_BASE}; }
