#include "CMediaShim.h"

#include <libavutil/dict.h>
#include <libavutil/mem.h>

int millrace_av_find_stream_info(AVFormatContext *context, int64_t most_pixels) {
  unsigned count = context->nb_streams;
  AVDictionary **options = count > 0 ? av_calloc(count, sizeof *options) : NULL;
  if (count > 0 && !options) return AVERROR(ENOMEM);
  for (unsigned index = 0; index < count; index++) av_dict_set_int(&options[index], "max_pixels", most_pixels, 0);
  int status = avformat_find_stream_info(context, options);
  for (unsigned index = 0; index < count; index++) av_dict_free(&options[index]);
  av_free(options);
  return status;
}
