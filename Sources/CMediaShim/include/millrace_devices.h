// Screens and cameras: libavdevice, loaded when it is first asked for.
#pragma once

#include <libavformat/avformat.h>

#pragma clang assume_nonnull begin

/// Finds an input device of libavdevice, such as `x11grab`, `v4l2` or `lavfi`; null when the library is not there or does not
/// know it.
///
/// The library is loaded by the first call: it brings some eighty others with it (X11, sound servers, filters), which would
/// cost every start of a program that has no use for them. Any thread; best on the control side.
const AVInputFormat *_Nullable millrace_av_find_device(const char *name);

/// Why libavdevice could not be loaded; empty when it was, or was never asked for.
const char *millrace_av_device_error(void);

#pragma clang assume_nonnull end
