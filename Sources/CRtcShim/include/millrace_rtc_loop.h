// An event loop for ICE: a GLib main context, and one source through which the program is called.
#pragma once

#include <stdint.h>

#pragma clang assume_nonnull begin

typedef struct millrace_rtc_loop millrace_rtc_loop;

/// Creates a loop. `run` is called on the loop's thread after `wake`, and when the time that `set_due` gave has come.
millrace_rtc_loop *millrace_rtc_loop_new(void (*run)(void *_Nullable user), void *_Nullable user);

/// Runs until `quit`. The thread that calls it is the loop's thread: everything that belongs to the loop is called on it.
void millrace_rtc_loop_run(millrace_rtc_loop *loop);

/// Ends `run` after the present call of it. Any thread; also before `run`, which then returns at once.
void millrace_rtc_loop_quit(millrace_rtc_loop *loop);

/// Has `run` called soon, once however often it was woken since. Any thread.
void millrace_rtc_loop_wake(millrace_rtc_loop *loop);

/// When `run` is called next, in microseconds of CLOCK_MONOTONIC; -1: only when woken. On the loop's thread.
void millrace_rtc_loop_set_due(millrace_rtc_loop *loop, int64_t time);

/// Frees a loop that does not run.
void millrace_rtc_loop_free(millrace_rtc_loop *loop);

#pragma clang assume_nonnull end
