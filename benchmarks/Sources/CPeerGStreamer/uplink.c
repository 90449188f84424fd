#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CPeerGStreamer.h"

#if __has_include(<gst/base/gstpushsrc.h>)
#include "pipelines.h"

#include <sched.h>

#define ENCODER "opusenc bitrate=24000 complexity=5 bitrate-type=constrained-vbr audio-type=voice frame-size=20"
#define SPEECH "audioresample ! audio/x-raw,rate=16000"

static GstElement *make_uplink(const char *input, const char *output, gboolean live) {
  GstElement *pipeline = peer_make(
      "filesrc name=in ! wavparse ! " SPEECH " ! level interval=100000000 ! " ENCODER
      " ! oggmux ! filesink name=out async=false");
  if (!pipeline) return NULL;
  peer_set_location(pipeline, "in", input);
  peer_set_location(pipeline, "out", output);
  GstElement *file = gst_bin_get_by_name(GST_BIN(pipeline), "out");
  g_object_set(file, "sync", live, NULL);
  gst_object_unref(file);
  return pipeline;
}

static GstPadProbeReturn note_first(GstPad *pad, GstPadProbeInfo *info, gpointer user) {
  (void)pad, (void)info;
  *(int64_t *)user = peer_now();
  return GST_PAD_PROBE_REMOVE;
}

double peer_gst_uplink(const char *input, const char *output) {
  int64_t start = peer_now(), first = 0;
  GstElement *pipeline = make_uplink(input, output, FALSE);
  if (!pipeline) return -1;
  GstPad *pad = peer_sink_pad(pipeline, "out");
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, note_first, &first, NULL);
  gst_object_unref(pad);
  gboolean ended = peer_play(pipeline);
  peer_drop(pipeline);
  return ended ? (double)(first - start) * 1e-9 : -1;
}

void *peer_gst_hold(const char *input, const char *output) {
  GstElement *pipeline = make_uplink(input, output, TRUE);
  if (pipeline) gst_element_set_state(pipeline, GST_STATE_PLAYING);
  return pipeline;
}

void peer_gst_release(void *pipeline) { peer_drop(pipeline); }

// MARK: Live sessions from memory

/// One session: its start, and its next packet.
typedef struct {
  peer_gst_load *load;
  GstElement *pipeline;
  PeerSource *source;
  int64_t start;
  int next;
  gboolean ended;
} Session;

enum { frame_ns = 20000000 };

/// Binds the streaming thread to the load's processor; the thread calls it when it starts.
static GstBusSyncReply bind_thread(GstBus *bus, GstMessage *message, gpointer user) {
  (void)bus;
  Session *session = user;
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_STREAM_STATUS) {
    GstStreamStatusType type;
    gst_message_parse_stream_status(message, &type, NULL);
    if (type == GST_STREAM_STATUS_TYPE_ENTER) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(session->load->processor, &set);
      sched_setaffinity(0, sizeof set, &set);
    }
  }
  gst_message_unref(message);
  return GST_BUS_DROP;
}

static GstPadProbeReturn note_packet(GstPad *pad, GstPadProbeInfo *info, gpointer user) {
  (void)pad;
  Session *session = user;
  peer_gst_load *load = session->load;
  if (info->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) {
    if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_EOS)
      __atomic_store_n(&session->ended, TRUE, __ATOMIC_RELEASE);
    return GST_PAD_PROBE_OK;
  }
  int number = session->next++;
  if (number < load->warm_up || number >= load->warm_up + load->measured) return GST_PAD_PROBE_OK;
  int64_t due = session->start + (int64_t)(number + load->frames_behind) * frame_ns;
  int64_t bar = (peer_now() - due) / load->step_ns;
  bar = CLAMP(bar, 0, load->bar_count - 1);
  __atomic_add_fetch(&load->bars[bar], 1, __ATOMIC_RELAXED);
  return GST_PAD_PROBE_OK;
}

static gboolean prepare(Session *session, int number) {
  peer_gst_load *load = session->load;
  session->pipeline = peer_make(
      "peersrc name=src ! audio/x-raw,format=S16LE,layout=interleaved,rate=48000,channels=1 ! " SPEECH " ! " ENCODER
      " ! fakesink name=out sync=false async=false");
  if (!session->pipeline) return FALSE;
  GstElement *source = gst_bin_get_by_name(GST_BIN(session->pipeline), "src");
  // One frame more than the measured packets need, so that the end of the stream does not affect them.
  peer_source_set(
      (PeerSource *)source, load->voice, load->voice_samples, load->offsets[number], frame_ns,
      load->warm_up + load->measured + load->frames_behind + 1);
  session->source = (PeerSource *)source;
  gst_object_unref(source);
  GstPad *pad = peer_sink_pad(session->pipeline, "out");
  gst_pad_add_probe(
      pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, note_packet, session, NULL);
  gst_object_unref(pad);
  GstBus *bus = gst_element_get_bus(session->pipeline);
  gst_bus_set_sync_handler(bus, bind_thread, session, NULL);
  gst_object_unref(bus);
  gst_element_set_state(session->pipeline, GST_STATE_PAUSED);
  return TRUE;
}

int peer_gst_live(peer_gst_load *load) {
  Session *sessions = g_new0(Session, (gsize)load->sessions);
  int made = 0;
  for (; made < load->sessions; made++) {
    sessions[made].load = load;
    if (!prepare(&sessions[made], made)) break;
  }
  if (made == load->sessions) {
    // Starting takes well under a millisecond per pipeline.
    int64_t begin = peer_now() + 100000000 + (int64_t)made * 1000000;
    for (int i = 0; i < made; i++) {
      sessions[i].start = begin + (int64_t)(i % 20) * 1000000;
      peer_source_start(sessions[i].source, sessions[i].start);
      gst_element_set_state(sessions[i].pipeline, GST_STATE_PLAYING);
    }
    int64_t frames = load->warm_up + load->measured + load->frames_behind + 1;
    int64_t limit = begin + 2 * frames * frame_ns + 1000000000;
    for (int i = 0; i < made; i++)
      while (!__atomic_load_n(&sessions[i].ended, __ATOMIC_ACQUIRE) && peer_now() < limit) g_usleep(5000);
  }
  for (int i = 0; i < made; i++) peer_drop(sessions[i].pipeline);
  int missing = load->sessions - made;
  g_free(sessions);
  return missing == 0 ? 0 : -1;
}
#endif
