// libasound for Swift: sound cards without a server, and ALSA's plugins.
#pragma once

#include <alsa/asoundlib.h>

// An error handler is variadic, which Swift cannot express.
static inline void millrace_alsa_drop(const char *file, int line, const char *function, int code, const char *format, ...) {
  (void)file, (void)line, (void)function, (void)code, (void)format;
}

/// Stops libasound from printing to standard error, for the whole process: calls return the same errors as their status. Any
/// thread, any number of times; best before the first other call.
static inline void millrace_alsa_silence(void) { snd_lib_error_set_handler(millrace_alsa_drop); }
