// C parts around media libraries that need storage of their own, and so cannot be inlined from a header.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avformat.h>

#include "millrace_devices.h"
#include "millrace_jpeg.h"

#pragma clang assume_nonnull begin

/// Takes FFmpeg's log for the whole process: nothing is printed any more, and the last line of level error or worse
/// is kept per thread, so that the caller of a failed function can say what the library said. Any thread, any number
/// of times; best before the first other call of FFmpeg. For programs, never for libraries: FFmpeg has one log, whose
/// callback cannot be read back, so whoever set one before loses it. Without it the lines below stay empty.
void millrace_av_capture_log(void);

/// The last line FFmpeg logged on this thread since it was cleared, without the line end; empty when there is none.
/// A line has at most 511 bytes and may be cut in the middle of a character. Valid until this thread next calls
/// FFmpeg. Lines that FFmpeg's own codec threads log are not seen here. May name the file or address that was opened.
const char *millrace_av_last_log(void);

/// The first line since it was cleared, otherwise as `millrace_av_last_log`: where protocols lie on each other the lowest
/// says first why it failed, and those above it only that it did.
const char *millrace_av_first_log(void);

/// Empties this thread's lines; call before the function whose failure is to be explained.
void millrace_av_clear_log(void);

/// An FFmpeg error code in words, such as `Invalid data found when processing input`. Codes without a text give their
/// number. Valid until this thread's next call of this function.
const char *millrace_av_error_text(int averror);

/// `avformat_find_stream_info` whose decoders refuse pictures of more than `most_pixels` before they take memory for one. Holds for
/// the streams that the container has named by then: FLV and MPEG's program and transport streams name theirs later.
int millrace_av_find_stream_info(AVFormatContext *context, int64_t most_pixels);

/// A bound on blocking calls of FFmpeg: once its time has come or it was cancelled, they return
/// `millrace_averror_exit`. FFmpeg asks between reads, so a system call that itself never returns is not interrupted:
/// a network address is bounded, a named pipe that nobody writes to is not.
typedef struct millrace_av_bound millrace_av_bound;

/// Makes a bound without a deadline, or null without memory. Give it back with `millrace_av_bound_free`.
millrace_av_bound *_Nullable millrace_av_bound_new(void);

/// Gives a bound back. Not before the context it is attached to is closed. Null is accepted.
void millrace_av_bound_free(millrace_av_bound *_Nullable bound);

/// Makes the context's blocking calls heed the bound. For opening, attach to a context from
/// `avformat_alloc_context` before `avformat_open_input`. One bound may serve several contexts.
void millrace_av_bound_attach(const millrace_av_bound *bound, AVFormatContext *context);

/// Sets the deadline to so many nanoseconds from now, on the monotonic clock; a negative count removes it. Any thread.
void millrace_av_bound_set_deadline(millrace_av_bound *bound, int64_t nanoseconds);

/// Makes calls under way and later ones return early, until `millrace_av_bound_reset`. Any thread.
void millrace_av_bound_cancel(millrace_av_bound *bound);

/// Takes back cancellation and removes the deadline. Any thread.
void millrace_av_bound_reset(millrace_av_bound *bound);

/// Whether the bound was cancelled or its deadline has passed. Any thread.
bool millrace_av_bound_is_reached(const millrace_av_bound *bound);

#pragma clang assume_nonnull end
