#include "millrace_rtc_loop.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "internal.h"

struct millrace_rtc_loop {
  GMainContext *context;
  GSource *source;
  void (*run)(void *user);
  void *user;
  atomic_bool is_awake;
  atomic_bool is_over;
  /// Agents that still talk to their TURN servers.
  int closing;
};

// Microseconds that agents have when the loop ends. libnice 0.1.21 gives a TURN server up 2 s after it asked for the end of an allocation;
// the rest is for a busy machine.
enum { longest_end = 10000000 };

typedef struct {
  GSource source;
  millrace_rtc_loop *loop;
} loop_source;

static gboolean is_woken(GSource *source) { return atomic_load(&((loop_source *)source)->loop->is_awake); }

static gboolean prepare(GSource *source, gint *timeout) {
  *timeout = -1;
  return is_woken(source);
}

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer user) {
  (void)callback;
  (void)user;
  millrace_rtc_loop *loop = ((loop_source *)source)->loop;
  // Cleared first: what is put in place while the callback runs wakes it again.
  atomic_store(&loop->is_awake, false);
  if (atomic_load(&loop->is_over)) return G_SOURCE_CONTINUE;
  g_source_set_ready_time(source, -1);
  loop->run(loop->user);
  return G_SOURCE_CONTINUE;
}

static GSourceFuncs functions = {.prepare = prepare, .check = is_woken, .dispatch = dispatch};

millrace_rtc_loop *millrace_rtc_loop_new(void (*run)(void *), void *user) {
  millrace_rtc_loop *loop = g_new0(millrace_rtc_loop, 1);
  loop->run = run;
  loop->user = user;
  loop->context = g_main_context_new();
  loop->source = g_source_new(&functions, sizeof(loop_source));
  ((loop_source *)loop->source)->loop = loop;
  g_source_attach(loop->source, loop->context);
  return loop;
}

// Agents release their allocations at TURN servers. One whose server does not answer is freed only when libnice has given up: the thread
// stays for that long, and nothing waits for it.
static void finish(millrace_rtc_loop *loop) {
  int64_t end = g_get_monotonic_time() + longest_end;
  g_source_set_ready_time(loop->source, end);
  while (loop->closing > 0 && g_get_monotonic_time() < end) g_main_context_iteration(loop->context, TRUE);
}

void millrace_rtc_loop_run(millrace_rtc_loop *loop) {
  g_main_context_push_thread_default(loop->context);
  while (!atomic_load(&loop->is_over)) g_main_context_iteration(loop->context, TRUE);
  finish(loop);
  g_main_context_pop_thread_default(loop->context);
}

void millrace_rtc_loop_quit(millrace_rtc_loop *loop) {
  atomic_store(&loop->is_over, true);
  g_main_context_wakeup(loop->context);
}

void millrace_rtc_loop_wake(millrace_rtc_loop *loop) {
  if (!atomic_exchange(&loop->is_awake, true)) g_main_context_wakeup(loop->context);
}

void millrace_rtc_loop_set_due(millrace_rtc_loop *loop, int64_t time) {
  g_source_set_ready_time(loop->source, time);
}

void millrace_rtc_loop_free(millrace_rtc_loop *loop) {
  g_source_destroy(loop->source);
  g_source_unref(loop->source);
  g_main_context_unref(loop->context);
  g_free(loop);
}

void millrace_rtc_loop_begin_close(millrace_rtc_loop *loop) { loop->closing++; }

void millrace_rtc_loop_end_close(millrace_rtc_loop *loop) { loop->closing--; }

GMainContext *millrace_rtc_loop_context(millrace_rtc_loop *loop) { return loop->context; }
