#if __has_include(<gst/base/gstpushsrc.h>)
#include "pipelines.h"

#include <errno.h>
#include <gst/base/gstpushsrc.h>
#include <time.h>

enum { frame = 960 };

struct PeerSource {
  GstPushSrc parent;
  const int16_t *voice;
  int64_t samples, offset, start, interval, count, next;
};

typedef struct {
  GstPushSrcClass parent;
} PeerSourceClass;

G_DEFINE_TYPE(PeerSource, peer_source, GST_TYPE_PUSH_SRC)

static GstStaticPadTemplate pad_template = GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

static GstFlowReturn create(GstPushSrc *base, GstBuffer **out) {
  PeerSource *self = (PeerSource *)base;
  if (self->next == self->count) return GST_FLOW_EOS;
  // The base class would count from its first call; here every frame has an absolute time, and this is the cheapest wait.
  int64_t due = self->start + self->next * self->interval;
  struct timespec time = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {}
  GstBuffer *buffer;
  if (self->voice) {
    int64_t at = (self->offset + self->next * frame) % self->samples;
    // No copy: the voice outlives the pipeline.
    buffer = gst_buffer_new_wrapped_full(
        GST_MEMORY_FLAG_READONLY, (gpointer)(self->voice + at), 2 * frame, 0, 2 * frame, NULL, NULL);
  } else {
    buffer = gst_buffer_new_allocate(NULL, 8, NULL);
  }
  GST_BUFFER_PTS(buffer) = (GstClockTime)(self->next * self->interval);
  GST_BUFFER_DURATION(buffer) = (GstClockTime)self->interval;
  self->next++;
  *out = buffer;
  return GST_FLOW_OK;
}

static void peer_source_class_init(PeerSourceClass *class) {
  gst_element_class_add_static_pad_template(GST_ELEMENT_CLASS(class), &pad_template);
  gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(class), "peersrc", "Source", "a voice from memory", "Millrace");
  GST_PUSH_SRC_CLASS(class)->create = create;
}

static void peer_source_init(PeerSource *self) {
  gst_base_src_set_live(GST_BASE_SRC(self), TRUE);
  gst_base_src_set_format(GST_BASE_SRC(self), GST_FORMAT_TIME);
}

void peer_source_start(PeerSource *self, int64_t start) { self->start = start; }

void peer_source_set(
    PeerSource *self, const int16_t *voice, int64_t samples, int64_t offset, int64_t interval, int64_t count) {
  self->voice = voice;
  self->samples = samples;
  self->offset = offset;
  self->interval = interval;
  self->count = count;
}
#endif
