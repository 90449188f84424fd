#include "CPeerGStreamer.h"

#include <stddef.h>

#if __has_include(<gst/base/gstpushsrc.h>)
#include "pipelines.h"

#include <stdarg.h>
#include <time.h>

static char problem[512];

const char *peer_gst_problem(void) { return problem; }

void peer_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_vsnprintf(problem, sizeof problem, format, arguments);
  va_end(arguments);
}

/// Every element the measurements use, and the Debian package it comes in.
static const char *const needed[][2] = {
    {"fakesrc", "libgstreamer1.0-0"},
    {"queue", "libgstreamer1.0-0"},
    {"audiotestsrc", "gstreamer1.0-plugins-base"},
    {"audioresample", "gstreamer1.0-plugins-base"},
    {"opusenc", "gstreamer1.0-plugins-base"},
    {"oggmux", "gstreamer1.0-plugins-base"},
    {"wavparse", "gstreamer1.0-plugins-good"},
    {"level", "gstreamer1.0-plugins-good"},
};

static const char *look(void) {
  GError *error = NULL;
  if (!gst_init_check(NULL, NULL, &error)) {
    peer_fail("GStreamer does not start: %s", error ? error->message : "no reason given");
    g_clear_error(&error);
    return problem;
  }
  gst_element_register(NULL, "peersrc", GST_RANK_NONE, peer_source_get_type());
  for (size_t i = 0; i < G_N_ELEMENTS(needed); i++) {
    GstElementFactory *factory = gst_element_factory_find(needed[i][0]);
    if (!factory) {
      peer_fail("no element %s (%s): make bench-peers", needed[i][0], needed[i][1]);
      return problem;
    }
    gst_object_unref(factory);
  }
  return NULL;
}

const char *peer_gst_missing(void) {
  static gsize looked = 0;
  static const char *missing = NULL;
  if (g_once_init_enter(&looked)) {
    missing = g_strdup(look());
    g_once_init_leave(&looked, 1);
  }
  return missing;
}

int64_t peer_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

GstElement *peer_make(const char *line) {
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch(line, &error);
  if (error) {
    peer_fail("GStreamer refuses \"%s\": %s", line, error->message);
    g_clear_error(&error);
    g_clear_pointer(&pipeline, gst_object_unref);
  }
  return pipeline;
}

void peer_set_location(GstElement *pipeline, const char *element, const char *path) {
  GstElement *file = gst_bin_get_by_name(GST_BIN(pipeline), element);
  g_object_set(file, "location", path, NULL);
  gst_object_unref(file);
}

gboolean peer_play(GstElement *pipeline) {
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  GstBus *bus = gst_element_get_bus(pipeline);
  GstMessage *message =
      gst_bus_timed_pop_filtered(bus, 120 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  gboolean ended = message && GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS;
  if (!message) peer_fail("a GStreamer pipeline did not end within two minutes");
  if (message && !ended) {
    GError *error = NULL;
    gst_message_parse_error(message, &error, NULL);
    peer_fail("GStreamer: %s", error->message);
    g_clear_error(&error);
  }
  if (message) gst_message_unref(message);
  gst_object_unref(bus);
  return ended;
}

void peer_drop(GstElement *pipeline) {
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(pipeline);
}

GstPad *peer_sink_pad(GstElement *pipeline, const char *element) {
  GstElement *found = gst_bin_get_by_name(GST_BIN(pipeline), element);
  GstPad *pad = gst_element_get_static_pad(found, "sink");
  gst_object_unref(found);
  return pad;
}
#else
const char *peer_gst_missing(void) { return "not installed: make bench-peers"; }
const char *peer_gst_problem(void) { return peer_gst_missing(); }
double peer_gst_chain(int passes, int64_t buffers) { return -1; }
double peer_gst_queue(int64_t buffers) { return -1; }
int peer_gst_queue_delays(int buffers, int64_t interval_ns, double *nanoseconds) { return -1; }
double peer_gst_uplink(const char *input, const char *output) { return -1; }
void *peer_gst_hold(const char *input, const char *output) { return NULL; }
void peer_gst_release(void *pipeline) {}
int peer_gst_live(peer_gst_load *load) { return -1; }
int peer_gst_interrupt(int backlog, int passes, int rounds, double *nanoseconds) { return -1; }
#endif
