#ifdef MILLRACE_VIDEO
#include "millrace_jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum {
  // Lines of luma that one row of 4:2:0 macroblocks (MCUs) covers, and of each chroma plane.
  luma_lines = 16,
  chroma_lines = 8,
  spare_bytes = 16384,
};

// The destination: stores bytes in the target while they fit, and counts the rest.
typedef struct {
  struct jpeg_destination_mgr manager;
  uint8_t *target;
  size_t capacity;
  int64_t written;
  uint8_t spare[spare_bytes];
} sink;

typedef struct {
  struct jpeg_error_mgr manager;
  jmp_buf back;
  char message[JMSG_LENGTH_MAX];
} failure;

struct millrace_jpeg {
  struct jpeg_compress_struct codec;
  failure failure;
  sink sink;
  // Rows padded to whole blocks by repeating their last pixel, for other widths.
  uint8_t *padding;
  size_t padding_bytes;
};

static void use_spare(sink *sink) {
  sink->manager.next_output_byte = sink->spare;
  sink->manager.free_in_buffer = spare_bytes;
}

static void begin_output(j_compress_ptr codec) {
  sink *sink = (void *)codec->dest;
  sink->written = 0;
  if (sink->capacity > 0) {
    sink->manager.next_output_byte = sink->target;
    sink->manager.free_in_buffer = sink->capacity;
  } else {
    use_spare(sink);
  }
}

static boolean turn_buffer(j_compress_ptr codec) {
  sink *sink = (void *)codec->dest;
  // The whole buffer is full: libjpeg's contract, whatever `free_in_buffer` says.
  sink->written += sink->written == 0 && sink->capacity > 0 ? (int64_t)sink->capacity : spare_bytes;
  use_spare(sink);
  return TRUE;
}

static void end_output(j_compress_ptr codec) {
  sink *sink = (void *)codec->dest;
  size_t size = sink->written == 0 && sink->capacity > 0 ? sink->capacity : spare_bytes;
  sink->written += (int64_t)(size - sink->manager.free_in_buffer);
}

// libjpeg must not return from an error. The jump stays within this file and crosses no Swift frame.
static void fail(j_common_ptr codec) {
  failure *failure = (void *)codec->err;
  failure->manager.format_message(codec, failure->message);
  longjmp(failure->back, 1);
}

// Prints nothing; a negative level means a damaged picture.
static void count_message(j_common_ptr codec, int level) {
  if (level < 0) codec->err->num_warnings++;
}

static void set_failure(failure *failure) {
  jpeg_std_error(&failure->manager);
  failure->manager.error_exit = fail;
  failure->manager.emit_message = count_message;
  failure->message[0] = 0;
}

millrace_jpeg *millrace_jpeg_new(void) {
  millrace_jpeg *encoder = calloc(1, sizeof *encoder);
  if (!encoder) return NULL;
  set_failure(&encoder->failure);
  encoder->codec.err = &encoder->failure.manager;
  if (setjmp(encoder->failure.back)) {
    free(encoder);
    return NULL;
  }
  jpeg_create_compress(&encoder->codec);
  encoder->sink.manager.init_destination = begin_output;
  encoder->sink.manager.empty_output_buffer = turn_buffer;
  encoder->sink.manager.term_destination = end_output;
  encoder->codec.dest = &encoder->sink.manager;
  return encoder;
}

void millrace_jpeg_free(millrace_jpeg *encoder) {
  if (!encoder) return;
  jpeg_destroy_compress(&encoder->codec);
  free(encoder->padding);
  free(encoder);
}

const char *millrace_jpeg_error(const millrace_jpeg *encoder) { return encoder->failure.message; }

// ITU-T T.81, tables K.1 and K.2, in natural order.
static const unsigned luma_table[DCTSIZE2] = {
    16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,   //
    14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,   //
    18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,   //
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};
static const unsigned chroma_table[DCTSIZE2] = {
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99,  //
    24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,  //
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,  //
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99};

static void add_table(j_compress_ptr codec, int which, const unsigned *base, double scale) {
  unsigned table[DCTSIZE2];
  for (int k = 0; k < DCTSIZE2; k++) {
    double value = base[k] * scale / 100 + 0.5;
    table[k] = value < 1 ? 1 : value > 255 ? 255 : (unsigned)value;
  }
  jpeg_add_quant_table(codec, which, table, 100, TRUE);
}

static int up_to(int value, int unit) { return (value + unit - 1) / unit * unit; }

static int rows_of(int height) { return (height + luma_lines - 1) / luma_lines; }

// One line of a plane, padded to a whole block in `place` by repeating its last pixel where necessary.
static JSAMPROW line_of(const uint8_t *plane, ptrdiff_t stride, int width, int height, int line, uint8_t *place) {
  const uint8_t *source = plane + stride * (line < height ? line : height - 1);
  int padded = up_to(width, DCTSIZE);
  if (padded == width) return (JSAMPROW)source;
  memcpy(place, source, (size_t)width);
  memset(place + width, source[width - 1], (size_t)(padded - width));
  return place;
}

static void write_row(millrace_jpeg *encoder, const millrace_jpeg_picture *picture, int row) {
  JSAMPROW y[luma_lines], u[chroma_lines], v[chroma_lines];
  JSAMPARRAY planes[3] = {y, u, v};
  int chroma_width = (picture->width + 1) / 2, chroma_height = (picture->height + 1) / 2;
  size_t step = (size_t)up_to(picture->width, luma_lines);
  uint8_t *place = encoder->padding;
  for (int k = 0; k < luma_lines; k++, place += step) {
    y[k] = line_of(picture->y, picture->y_stride, picture->width, picture->height, row * luma_lines + k, place);
  }
  for (int k = 0; k < chroma_lines; k++, place += step) {
    int line = row * chroma_lines + k;
    u[k] = line_of(picture->u, picture->chroma_stride, chroma_width, chroma_height, line, place);
    v[k] = line_of(picture->v, picture->chroma_stride, chroma_width, chroma_height, line, place + step / 2);
  }
  jpeg_write_raw_data(&encoder->codec, planes, luma_lines);
}

static int make_padding(millrace_jpeg *encoder, int width) {
  size_t needed = (size_t)up_to(width, luma_lines) * (luma_lines + chroma_lines);
  if (needed <= encoder->padding_bytes) return 1;
  uint8_t *memory = realloc(encoder->padding, needed);
  if (!memory) return 0;
  encoder->padding = memory;
  encoder->padding_bytes = needed;
  return 1;
}

int64_t millrace_jpeg_encode(millrace_jpeg *encoder, const millrace_jpeg_picture *picture, double scale, int first_row,
                             int row_step, uint8_t *target, size_t capacity) {
  j_compress_ptr codec = &encoder->codec;
  int rows = (rows_of(picture->height) - first_row + row_step - 1) / row_step;
  int is_whole = first_row == 0 && row_step == 1;
  if (picture->width < 1 || picture->height < 1 || rows < 1 || !make_padding(encoder, picture->width)) {
    snprintf(encoder->failure.message, sizeof encoder->failure.message, "invalid picture, or out of memory for its rows");
    return -1;
  }
  if (setjmp(encoder->failure.back)) {
    jpeg_abort_compress(codec);
    return -1;
  }
  encoder->sink.target = target;
  encoder->sink.capacity = target ? capacity : 0;
  codec->image_width = (JDIMENSION)picture->width;
  codec->image_height = (JDIMENSION)(is_whole ? picture->height : rows * luma_lines);
  codec->input_components = 3;
  codec->in_color_space = JCS_YCbCr;
  jpeg_set_defaults(codec);
  add_table(codec, 0, luma_table, scale);
  add_table(codec, 1, chroma_table, scale);
  codec->raw_data_in = TRUE;
  codec->optimize_coding = TRUE;
  codec->dct_method = JDCT_ISLOW;
  codec->comp_info[0].h_samp_factor = 2;
  codec->comp_info[0].v_samp_factor = 2;
  jpeg_start_compress(codec, TRUE);
  for (int row = 0; row < rows; row++) write_row(encoder, picture, first_row + row * row_step);
  jpeg_finish_compress(codec);
  return encoder->sink.written;
}

static int decode(struct jpeg_decompress_struct *codec, int width, int height, uint8_t *planes, uint8_t *rows) {
  if (jpeg_read_header(codec, TRUE) != JPEG_HEADER_OK) return -1;
  if ((int)codec->image_width != width || (int)codec->image_height != height || codec->num_components != 3) return -1;
  // Every plane: libjpeg writes whole blocks by its sampling factors, whatever the width of the rows here.
  for (int k = 0; k < 3; k++) {
    int factor = k == 0 ? 2 : 1;
    if (codec->comp_info[k].h_samp_factor != factor || codec->comp_info[k].v_samp_factor != factor) return -1;
  }
  codec->raw_data_out = TRUE;
  codec->dct_method = JDCT_ISLOW;
  jpeg_start_decompress(codec);
  int chroma_width = (width + 1) / 2, chroma_height = (height + 1) / 2;
  size_t step = (size_t)up_to(width, luma_lines);
  uint8_t *u_plane = planes + (size_t)width * (size_t)height;
  uint8_t *v_plane = u_plane + (size_t)chroma_width * (size_t)chroma_height;
  JSAMPROW y[luma_lines], u[chroma_lines], v[chroma_lines];
  JSAMPARRAY lines[3] = {y, u, v};
  for (int k = 0; k < luma_lines; k++) y[k] = rows + step * (size_t)k;
  for (int k = 0; k < chroma_lines; k++) {
    u[k] = rows + step * (size_t)(luma_lines + k);
    v[k] = u[k] + step / 2;
  }
  for (int row = 0; row < rows_of(height); row++) {
    jpeg_read_raw_data(codec, lines, luma_lines);
    for (int k = 0; k < luma_lines && row * luma_lines + k < height; k++) {
      memcpy(planes + (size_t)width * (size_t)(row * luma_lines + k), y[k], (size_t)width);
    }
    for (int k = 0; k < chroma_lines && row * chroma_lines + k < chroma_height; k++) {
      size_t place = (size_t)chroma_width * (size_t)(row * chroma_lines + k);
      memcpy(u_plane + place, u[k], (size_t)chroma_width);
      memcpy(v_plane + place, v[k], (size_t)chroma_width);
    }
  }
  jpeg_finish_decompress(codec);
  return codec->err->num_warnings == 0 ? 0 : -1;
}

int millrace_jpeg_decode(const uint8_t *bytes, size_t count, int width, int height, uint8_t *planes) {
  struct jpeg_decompress_struct codec = {0};
  failure failure;
  uint8_t *volatile rows = malloc((size_t)up_to(width, luma_lines) * (luma_lines + chroma_lines));
  volatile int status = -1;
  if (!rows) return status;
  set_failure(&failure);
  codec.err = &failure.manager;
  if (!setjmp(failure.back)) {
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, bytes, count);
    status = decode(&codec, width, height, planes, rows);
  } else {
    status = -1;
  }
  jpeg_destroy_decompress(&codec);
  free(rows);
  return status;
}
#endif
