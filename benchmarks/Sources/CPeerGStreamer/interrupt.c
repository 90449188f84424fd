#include "CPeerGStreamer.h"

#if __has_include(<gst/base/gstpushsrc.h>)
#include "pipelines.h"

static GstPadProbeReturn note_flush(GstPad *pad, GstPadProbeInfo *info, gpointer user) {
  (void)pad;
  if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_FLUSH_START)
    __atomic_store_n((int64_t *)user, peer_now(), __ATOMIC_RELEASE);
  return GST_PAD_PROBE_OK;
}

int peer_gst_interrupt(int backlog, int passes, int rounds, double *nanoseconds) {
  GString *line = g_string_new("audiotestsrc samplesperbuffer=960 ! audio/x-raw,rate=48000,channels=1 ");
  g_string_append_printf(line, "! queue max-size-buffers=%d max-size-bytes=0 max-size-time=0 ", backlog);
  for (int i = 0; i < passes; i++) g_string_append(line, "! identity signal-handoffs=false ");
  g_string_append(line, "! fakesink name=out sync=true");
  GstElement *pipeline = peer_make(line->str);
  g_string_free(line, TRUE);
  if (!pipeline) return -1;
  int64_t notified = 0;
  GstPad *pad = peer_sink_pad(pipeline, "out");
  gst_pad_add_probe(
      pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH, note_flush, &notified, NULL);
  gst_object_unref(pad);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  gst_element_get_state(pipeline, NULL, NULL, 5 * GST_SECOND);
  int done = 0;
  for (; done < rounds; done++) {
    // The queue fills up while the sink waits for the clock.
    g_usleep(20000);
    int64_t start = peer_now();
    if (!gst_element_seek_simple(pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, 0)) break;
    int64_t seen = __atomic_load_n(&notified, __ATOMIC_ACQUIRE);
    if (seen < start) break;
    nanoseconds[done] = (double)(seen - start);
    gst_element_get_state(pipeline, NULL, NULL, 5 * GST_SECOND);
  }
  peer_drop(pipeline);
  if (done < rounds) peer_fail("a GStreamer pipeline could not be flushed");
  return done == rounds ? done : -1;
}
#endif
