// GStreamer doing what Millrace is measured at. Compiles without GStreamer, too; only `peer_gst_missing` may be called then.
//
// Times are seconds unless a name says otherwise. A call that fails answers a negative number (or NULL) and leaves words for
// `peer_gst_problem`. One call at a time, except `peer_gst_hold`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

/// What is missing to measure GStreamer, or NULL. Loads it on the first call.
const char *peer_gst_missing(void);

/// Why the last call failed.
const char *peer_gst_problem(void);

/// fakesrc, `passes` times identity, fakesink, on one thread: from the first buffer at the sink to the end.
double peer_gst_chain(int passes, int64_t buffers);

/// fakesrc, queue, fakesink: the same through two threads.
double peer_gst_queue(int64_t buffers);

/// A source that pushes a buffer every `interval_ns`, a queue, a sink: how many nanoseconds each buffer took. Answers how many
/// there are.
int peer_gst_queue_delays(int buffers, int64_t interval_ns, double *nanoseconds);

/// The voice uplink from a WAV file to an Ogg file. Answers the time until the first buffer reached the file's writer.
double peer_gst_uplink(const char *input, const char *output);

/// Starts a live uplink from a file to another, in time with the clock. The answer is for `peer_gst_release`.
void *peer_gst_hold(const char *input, const char *output);
void peer_gst_release(void *pipeline);

/// Live sessions from memory, all threads on one processor.
typedef struct {
  int sessions;
  int processor;
  /// 48 kHz, one channel.
  const int16_t *voice;
  int64_t voice_samples;
  /// Where in the voice each session begins, in samples.
  const int64_t *offsets;
  /// Packets of a session that do not count, those that do, and whole frames a packet comes later than the one it is due with.
  int warm_up, measured, frames_behind;
  /// Packets by how late they were.
  int64_t step_ns;
  int bar_count;
  int64_t *bars;
} peer_gst_load;

/// Answers 0 when all sessions have had their time.
int peer_gst_live(peer_gst_load *load);

/// A sink that takes a buffer every 20 ms behind `passes` times identity and a queue with `backlog` buffers: a flushing seek
/// drops everything and begins anew. Answers for each of `rounds` the nanoseconds until the sink had got the flush.
int peer_gst_interrupt(int backlog, int passes, int rounds, double *nanoseconds);
