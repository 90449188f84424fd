// libasound as Swift sees it: sound cards without a server, and whatever ALSA's plugins make of them.
#pragma once

#include <alsa/asoundlib.h>

// A handler is variadic, which Swift cannot write.
static inline void millrace_alsa_drop(const char *file, int line, const char *function, int code, const char *format, ...) {
  (void)file, (void)line, (void)function, (void)code, (void)format;
}

/// Has libasound print nothing to standard error any more, for the whole process: what it says there comes back as the status of
/// the call as well. Any thread, any number of times; best before the first other call.
static inline void millrace_alsa_silence(void) { snd_lib_error_set_handler(millrace_alsa_drop); }
