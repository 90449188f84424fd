// The work of the suites, done by GStreamer. Compiles without GStreamer too; then only `peer_gst_missing` may be called.
//
// Times are seconds unless a name says otherwise. A call that fails returns a negative number (or NULL) and sets the message of
// `peer_gst_problem`. One call at a time, except `peer_gst_hold`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

/// What is missing to measure GStreamer, or NULL. The first call loads GStreamer.
const char *peer_gst_missing(void);

/// Why the last call failed.
const char *peer_gst_problem(void);

/// fakesrc, `passes` times identity, fakesink, on one thread: from the first buffer at the sink to the end.
double peer_gst_chain(int passes, int64_t buffers);

/// fakesrc, queue, fakesink: the same through two threads.
double peer_gst_queue(int64_t buffers);

/// A source that pushes a buffer every `interval_ns`, a queue, a sink: stores the nanoseconds each buffer took. Returns how many
/// there are.
int peer_gst_queue_delays(int buffers, int64_t interval_ns, double *nanoseconds);

/// The voice uplink from a WAV file to an Ogg file. Returns the time until the first buffer reached the file writer.
double peer_gst_uplink(const char *input, const char *output);

/// Starts a live uplink from one file to another, paced by the clock. Pass the result to `peer_gst_release`.
void *peer_gst_hold(const char *input, const char *output);
/// Stops and frees a pipeline of `peer_gst_hold`.
void peer_gst_release(void *pipeline);

/// Live sessions from memory, all threads on one processor.
typedef struct {
  int sessions;
  int processor;
  /// 48 kHz, one channel.
  const int16_t *voice;
  int64_t voice_samples;
  /// The sample of the voice at which each session begins.
  const int64_t *offsets;
  /// Packets of a session that are not measured, packets that are, and the pipeline's own delay in frames.
  int warm_up, measured, frames_behind;
  /// A histogram of lateness: `bar_count` bars of `step_ns`.
  int64_t step_ns;
  int bar_count;
  int64_t *bars;
} peer_gst_load;

/// Returns 0 when all sessions have ended.
int peer_gst_live(peer_gst_load *load);

/// A sink that takes a buffer every 20 ms behind `passes` times identity and a queue with `backlog` buffers: a flushing seek
/// drops everything and starts again. Stores the nanoseconds until the sink received the flush, one for each of `rounds`.
int peer_gst_interrupt(int backlog, int passes, int rounds, double *nanoseconds);
