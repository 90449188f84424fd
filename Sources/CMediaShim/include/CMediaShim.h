// C helpers for media libraries that need storage of their own and so cannot be inline functions in a header.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avformat.h>

#include "millrace_devices.h"
#include "millrace_jpeg.h"

#pragma clang assume_nonnull begin

/// Captures FFmpeg's log for the whole process: nothing is printed any more, and each thread keeps its last line of level error or
/// worse, so that the caller of a failed function can report it. Any thread, any number of times; best before the first other call
/// of FFmpeg. For programs, never for libraries: FFmpeg has one log, whose callback cannot be read back, so a callback set before
/// is lost. Without this call the lines below stay empty.
void millrace_av_capture_log(void);

/// The last line FFmpeg logged on this thread since it was cleared, without the line end; empty when there is none. A line has at
/// most 511 bytes and may be cut in the middle of a character. Valid until this thread next calls FFmpeg. Lines logged by FFmpeg's
/// own codec threads are not included. May contain the name of the file or URL that was opened.
const char *millrace_av_last_log(void);

/// The first line since it was cleared, otherwise as `millrace_av_last_log`. In a stack of protocols the lowest logs the cause first;
/// those above it log only that they failed.
const char *millrace_av_first_log(void);

/// Clears this thread's lines; call it before the function whose failure you want to explain.
void millrace_av_clear_log(void);

/// The message for an FFmpeg error code, such as `Invalid data found when processing input`. Codes without a message give their
/// number. Valid until this thread's next call of this function.
const char *millrace_av_error_text(int averror);

/// `avformat_find_stream_info` with decoders that refuse pictures of more than `most_pixels` before they allocate one. Applies to the
/// streams known from the container's header: FLV and MPEG program and transport streams add theirs later.
int millrace_av_find_stream_info(AVFormatContext *context, int64_t most_pixels);

/// A bound on blocking calls of FFmpeg: once its deadline has passed or it was cancelled, they return `millrace_averror_exit`. FFmpeg
/// checks between reads, so a system call that never returns is not interrupted: network URLs are bounded, a named pipe without a
/// writer is not.
typedef struct millrace_av_bound millrace_av_bound;

/// Creates a bound without a deadline; null when out of memory. Free it with `millrace_av_bound_free`.
millrace_av_bound *_Nullable millrace_av_bound_new(void);

/// Frees a bound. Close the context it is attached to first. Null is allowed.
void millrace_av_bound_free(millrace_av_bound *_Nullable bound);

/// Applies the bound to the context's blocking calls. To bound opening, attach it to a context from
/// `avformat_alloc_context` before `avformat_open_input`. One bound may serve several contexts.
void millrace_av_bound_attach(const millrace_av_bound *bound, AVFormatContext *context);

/// Sets the deadline in nanoseconds from now, on the monotonic clock; a negative number removes it. Any thread.
void millrace_av_bound_set_deadline(millrace_av_bound *bound, int64_t nanoseconds);

/// Makes current and later calls return early, until `millrace_av_bound_reset`. Any thread.
void millrace_av_bound_cancel(millrace_av_bound *bound);

/// Clears the cancellation and removes the deadline. Any thread.
void millrace_av_bound_reset(millrace_av_bound *bound);

/// Whether the bound was cancelled or its deadline has passed. Any thread.
bool millrace_av_bound_is_reached(const millrace_av_bound *bound);

#pragma clang assume_nonnull end
