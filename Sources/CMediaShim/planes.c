#ifdef MILLRACE_VIDEO
#include "millrace_jpeg.h"

#include <string.h>

// The position in the source of the target's pixel (0, 0), and the steps to its right and lower neighbours.
typedef struct {
  ptrdiff_t start;
  ptrdiff_t right;
  ptrdiff_t down;
} walk;

static walk walk_of(ptrdiff_t stride, int width, int height, ptrdiff_t pixel, int quarters, int mirror) {
  ptrdiff_t x_step = mirror ? -pixel : pixel;
  ptrdiff_t left = mirror ? pixel * (width - 1) : 0;
  ptrdiff_t end = left + x_step * (width - 1), bottom = stride * (height - 1);
  switch (quarters & 3) {
    case 1: return (walk){left + bottom, -stride, x_step};
    case 2: return (walk){end + bottom, -x_step, -stride};
    case 3: return (walk){end, stride, -x_step};
    default: return (walk){left, x_step, stride};
  }
}

void millrace_plane_turn(const uint8_t *source, ptrdiff_t source_stride, int width, int height, int pixel_bytes,
                         int quarters, int mirror, uint8_t *target, ptrdiff_t target_stride) {
  walk walk = walk_of(source_stride, width, height, pixel_bytes, quarters, mirror);
  int columns = quarters & 1 ? height : width, lines = quarters & 1 ? width : height;
  for (int line = 0; line < lines; line++) {
    const uint8_t *from = source + walk.start + walk.down * line;
    uint8_t *to = target + target_stride * line;
    if (walk.right == pixel_bytes) {
      memcpy(to, from, (size_t)columns * (size_t)pixel_bytes);
    } else if (pixel_bytes == 1) {
      for (int column = 0; column < columns; column++) to[column] = from[walk.right * column];
    } else {
      for (int column = 0; column < columns; column++) {
        memcpy(to + (ptrdiff_t)column * pixel_bytes, from + walk.right * column, (size_t)pixel_bytes);
      }
    }
  }
}
#endif
