// A JPEG encoder for rate control: raw planes as input, any scale of the tables, and the size even of a JPEG that does not fit.
#pragma once

#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// An encoder of baseline JPEG (JFIF, 4:2:0, optimised Huffman tables) over libjpeg. Reuses its working memory
/// for each picture. One thread at a time.
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

/// Creates an encoder; null when out of memory. Free it with `millrace_jpeg_free`.
millrace_jpeg *_Nullable millrace_jpeg_new(void);

/// Frees an encoder. Null is allowed.
void millrace_jpeg_free(millrace_jpeg *_Nullable encoder);

/// Encodes a picture, or a part of its rows.
///
/// `scale` is the scale of the standard tables (ITU-T T.81, annex K) in percent, 100 being quality 50 of libjpeg; any fraction.
/// Rows of 16 lines are taken from row `first_row` on, every `row_step`th of them; 0 and 1 take the whole picture. The JPEG of a
/// part has only those rows: it serves to estimate the size.
///
/// Returns the size of the JPEG in bytes, which may exceed `capacity`: then `target` holds only its beginning. Returns -1 when
/// libjpeg fails; `millrace_jpeg_error` has the message. libjpeg allocates heap memory for each picture.
int64_t millrace_jpeg_encode(millrace_jpeg *encoder, const millrace_jpeg_picture *picture, double scale, int first_row,
                             int row_step, uint8_t *_Nullable target, size_t capacity);

/// libjpeg's message for the last failure of this encoder; empty before one. Valid until its next failure.
const char *millrace_jpeg_error(const millrace_jpeg *encoder);

/// Decodes a 4:2:0 JPEG to planes, to measure the loss of an encoder. `planes` are Y, U, V without gaps, for `width` by `height`
/// pixels. Returns 0, or -1 when the JPEG is damaged, has another size or another chroma subsampling.
int millrace_jpeg_decode(const uint8_t *bytes, size_t count, int width, int height, uint8_t *planes);

/// Copies a plane rotated clockwise by multiples of 90 degrees, optionally mirrored horizontally first. `pixel_bytes` is 1 to 4. The
/// target has the rotated width and height.
void millrace_plane_turn(const uint8_t *source, ptrdiff_t source_stride, int width, int height, int pixel_bytes,
                         int quarters, int mirror, uint8_t *target, ptrdiff_t target_stride);

#pragma clang assume_nonnull end
