#include "CPeerGStreamer.h"

#if __has_include(<gst/base/gstpushsrc.h>)
#include "pipelines.h"

/// When the first buffer and the end reached a pad.
typedef struct {
  int64_t first, end;
} Span;

static GstPadProbeReturn note_span(GstPad *pad, GstPadProbeInfo *info, gpointer user) {
  (void)pad;
  Span *span = user;
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    if (!span->first) span->first = peer_now();
    return GST_PAD_PROBE_OK;
  }
  if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_EOS) span->end = peer_now();
  return GST_PAD_PROBE_OK;
}

/// Removes the probe after the first buffer, so that the others do not pay for it.
static GstPadProbeReturn note_first(GstPad *pad, GstPadProbeInfo *info, gpointer user) {
  note_span(pad, info, user);
  return GST_PAD_PROBE_REMOVE;
}

static double run(const char *middle, int64_t buffers) {
  gchar *line = g_strdup_printf(
      "fakesrc num-buffers=%" G_GINT64_FORMAT
      " sizetype=fixed sizemax=8 filltype=nothing %s ! fakesink name=sink sync=false async=false",
      buffers, middle);
  GstElement *pipeline = peer_make(line);
  g_free(line);
  if (!pipeline) return -1;
  Span span = {0};
  GstPad *pad = peer_sink_pad(pipeline, "sink");
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, note_first, &span, NULL);
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, note_span, &span, NULL);
  gst_object_unref(pad);
  gboolean ended = peer_play(pipeline);
  peer_drop(pipeline);
  return ended ? (double)(span.end - span.first) * 1e-9 : -1;
}

double peer_gst_chain(int passes, int64_t buffers) {
  GString *middle = g_string_new(NULL);
  // Without signals: they are on by default and have no listener here.
  for (int i = 0; i < passes; i++) g_string_append(middle, "! identity signal-handoffs=false ");
  double time = run(middle->str, buffers);
  g_string_free(middle, TRUE);
  return time;
}

double peer_gst_queue(int64_t buffers) { return run("! queue", buffers); }

/// When each buffer left the source, and its delay at the sink; written by one thread each.
typedef struct {
  int count, left, came;
  int64_t *leaving;
  double *delays;
} Flights;

static GstPadProbeReturn note_leaving(GstPad *pad, GstPadProbeInfo *info, gpointer user) {
  (void)pad, (void)info;
  Flights *flights = user;
  if (flights->left < flights->count) flights->leaving[flights->left++] = peer_now();
  return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn note_coming(GstPad *pad, GstPadProbeInfo *info, gpointer user) {
  (void)pad, (void)info;
  Flights *flights = user;
  int64_t now = peer_now();
  if (flights->came < flights->count) {
    flights->delays[flights->came] = (double)(now - flights->leaving[flights->came]);
    flights->came++;
  }
  return GST_PAD_PROBE_OK;
}

int peer_gst_queue_delays(int buffers, int64_t interval, double *nanoseconds) {
  GstElement *pipeline = peer_make("peersrc name=src ! queue ! fakesink name=sink sync=false async=false");
  if (!pipeline) return -1;
  GstElement *source = gst_bin_get_by_name(GST_BIN(pipeline), "src");
  peer_source_set((PeerSource *)source, NULL, 0, 0, interval, buffers);
  // The pipeline is playing by then.
  peer_source_start((PeerSource *)source, peer_now() + 50000000);
  Flights flights = {.count = buffers, .leaving = g_new0(int64_t, (gsize)buffers), .delays = nanoseconds};
  GstPad *out = gst_element_get_static_pad(source, "src"), *in = peer_sink_pad(pipeline, "sink");
  gst_pad_add_probe(out, GST_PAD_PROBE_TYPE_BUFFER, note_leaving, &flights, NULL);
  gst_pad_add_probe(in, GST_PAD_PROBE_TYPE_BUFFER, note_coming, &flights, NULL);
  gboolean ended = peer_play(pipeline);
  gst_object_unref(out);
  gst_object_unref(in);
  gst_object_unref(source);
  peer_drop(pipeline);
  g_free(flights.leaving);
  return ended ? flights.came : -1;
}
#endif
