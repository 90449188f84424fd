// Shared by the measurements. Requires GStreamer.
#pragma once

#include <gst/gst.h>
#include <stdint.h>

/// Nanoseconds of CLOCK_MONOTONIC.
int64_t peer_now(void);

/// Sets the message of `peer_gst_problem`.
void peer_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/// Creates a pipeline from a launch line; NULL and a message on failure.
GstElement *peer_make(const char *line);

/// Sets an element's `location`.
void peer_set_location(GstElement *pipeline, const char *element, const char *path);

/// Plays to the end of the stream. False and a message on failure.
gboolean peer_play(GstElement *pipeline);

/// Stops a pipeline and releases it.
void peer_drop(GstElement *pipeline);

/// The sink pad of a named element. The caller releases it.
GstPad *peer_sink_pad(GstElement *pipeline, const char *element);

/// A live source of 20 ms frames from memory, or of empty buffers at any interval, registered as `peersrc`.
GType peer_source_get_type(void);

typedef struct PeerSource PeerSource;

/// Sets the source to `count` frames of 960 samples from `offset` on, or to empty buffers when `voice` is NULL.
void peer_source_set(
    PeerSource *source, const int16_t *voice, int64_t samples, int64_t offset, int64_t interval_ns, int64_t count);

/// Sets when the first buffer is due, in `peer_now` time. Call before the source plays.
void peer_source_start(PeerSource *source, int64_t start);
