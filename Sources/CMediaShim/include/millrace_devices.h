// Screens and cameras: libavdevice, loaded on first use.
#pragma once

#include <libavformat/avformat.h>

#pragma clang assume_nonnull begin

/// Finds an input device of libavdevice, such as `x11grab`, `v4l2` or `lavfi`; null when the library is missing or does not have
/// it.
///
/// The first call loads the library. It depends on some eighty others (X11, sound servers, filters), which would slow the start of
/// programs that do not use them. Any thread; best on the control side.
const AVInputFormat *_Nullable millrace_av_find_device(const char *name);

/// Why libavdevice could not be loaded; empty when it was loaded, or was never needed.
const char *millrace_av_device_error(void);

#pragma clang assume_nonnull end
