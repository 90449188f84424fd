// A JPEG encoder for rate control: raw planes in, any scale of the tables, sizes told even when they do not fit.
#pragma once

#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// An encoder of baseline JPEG (JFIF, 4:2:0, optimised Huffman tables) over libjpeg. Keeps its working memory from picture to
/// picture. One thread at a time.
typedef struct millrace_jpeg millrace_jpeg;

/// A picture in planes: Y, U, V, BT.601 of full range, chroma of half width and height, rounded up. Rows may have gaps.
typedef struct {
  int width;
  int height;
  const uint8_t *y;
  const uint8_t *u;
  const uint8_t *v;
  ptrdiff_t y_stride;
  ptrdiff_t chroma_stride;
} millrace_jpeg_picture;

/// Makes an encoder, or null without memory. Give it back with `millrace_jpeg_free`.
millrace_jpeg *_Nullable millrace_jpeg_new(void);

/// Gives an encoder back. Null is accepted.
void millrace_jpeg_free(millrace_jpeg *_Nullable encoder);

/// Encodes a picture, or a sample of it.
///
/// `scale` is the scale of the standard tables (ITU-T T.81, annex K) in percent, 100 being quality 50 of libjpeg; any fraction.
/// Rows of 16 lines are taken from row `first_row` on, every `row_step` of them; 0 and 1 are the whole picture. The JPEG of a
/// sample shows only the rows taken: it is for its size.
///
/// Answers how many bytes the JPEG has, which may be more than `capacity`: then `target` holds only its beginning. -1 when
/// libjpeg refuses; `millrace_jpeg_error` says why. libjpeg takes heap memory for each picture.
int64_t millrace_jpeg_encode(millrace_jpeg *encoder, const millrace_jpeg_picture *picture, double scale, int first_row,
                             int row_step, uint8_t *_Nullable target, size_t capacity);

/// What libjpeg said at the last failure of this encoder; empty before one. Valid until its next failure.
const char *millrace_jpeg_error(const millrace_jpeg *encoder);

/// Decodes a JPEG of 4:2:0 to planes: for measuring what an encoder lost. `planes` are Y, U, V without gaps and have room for
/// `width` by `height` pixels. Answers 0, or -1 when the JPEG is damaged, of another size or of another sampling.
int millrace_jpeg_decode(const uint8_t *bytes, size_t count, int width, int height, uint8_t *planes);

/// Copies a plane turned by quarters of a circle, clockwise, after mirroring left and right where asked. `pixel_bytes` is 1 to 4.
/// The target has the turned width and height.
void millrace_plane_turn(const uint8_t *source, ptrdiff_t source_stride, int width, int height, int pixel_bytes,
                         int quarters, int mirror, uint8_t *target, ptrdiff_t target_stride);

#pragma clang assume_nonnull end
