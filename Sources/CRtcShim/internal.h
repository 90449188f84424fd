// Shared by the files of this target.
#pragma once

#include <nice/agent.h>

#include "millrace_rtc_loop.h"

/// The main context of a loop.
GMainContext *millrace_rtc_loop_context(millrace_rtc_loop *loop);

/// An agent of the loop closes, and has closed: the loop's end waits for it a moment. On the loop's thread.
void millrace_rtc_loop_begin_close(millrace_rtc_loop *loop);
void millrace_rtc_loop_end_close(millrace_rtc_loop *loop);
