#include "CMillraceKernels.h"

#include <stdatomic.h>
#include <string.h>

typedef float v8f __attribute__((vector_size(32)));
typedef double v8d __attribute__((vector_size(64)));
// Eight floats at any alignment of a float.
typedef float v8f_unaligned __attribute__((vector_size(32), aligned(4), may_alias));
#define LOAD8(p) ((v8f)*(const v8f_unaligned *)(p))
#define STORE8(p, v) (*(v8f_unaligned *)(p) = (v))

#define MK(name) name##_baseline
#include "fourier.inc"
#include "spectra.inc"
#include "kernels.inc"
#undef MK

#if defined(__x86_64__)
#define MK(name) name##_avx2
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#include "fourier.inc"
#include "spectra.inc"
#include "kernels.inc"
#pragma clang attribute pop
#undef MK
#endif

const mk_kernels *mk_kernels_at(mk_level level) {
  if (level == mk_level_baseline) return &table_baseline;
#if defined(__x86_64__)
  if (level == mk_level_avx2) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &table_avx2;
  }
#endif
  return NULL;
}

// Threads may select concurrently: they all select the same table, so a relaxed store is enough.
static const mk_kernels *_Atomic chosen;

static const mk_kernels *choose(void) {
  const mk_kernels *best = mk_kernels_at(mk_level_avx2);
  if (best == NULL) best = &table_baseline;
  atomic_store_explicit(&chosen, best, memory_order_relaxed);
  return best;
}

static inline const mk_kernels *kernels(void) {
  const mk_kernels *known = atomic_load_explicit(&chosen, memory_order_relaxed);
  return known != NULL ? known : choose();
}

mk_level mk_level_in_use(void) { return kernels() == &table_baseline ? mk_level_baseline : mk_level_avx2; }

float mk_dot_f32(const float *a, const float *b, size_t n) { return kernels()->dot_f32(a, b, n); }

void mk_polyphase_f32(const float *x, const float *table, size_t taps, size_t phases, size_t step, size_t part,
                      size_t phase, float *out, size_t stride, size_t count) {
  kernels()->polyphase_f32(x, table, taps, phases, step, part, phase, out, stride, count);
}

void mk_f32_to_s16(const float *in, int16_t *out, size_t n) { kernels()->f32_to_s16(in, out, n); }
void mk_s16_to_f32(const int16_t *in, float *out, size_t n) { kernels()->s16_to_f32(in, out, n); }

void mk_gain_f32(const float *in, float *out, size_t n, float gain) { kernels()->gain_f32(in, out, n, gain); }
void mk_gain_s16(const int16_t *in, int16_t *out, size_t n, float gain) { kernels()->gain_s16(in, out, n, gain); }

void mk_mix_f32(const float *in, float *acc, size_t n, float gain) { kernels()->mix_f32(in, acc, n, gain); }
void mk_mix_s16_f32(const int16_t *in, float *acc, size_t n, float gain) { kernels()->mix_s16_f32(in, acc, n, gain); }

void mk_energy_s16(const int16_t *in, size_t n, uint64_t *squares, uint32_t *peak) {
  kernels()->energy_s16(in, n, squares, peak);
}

void mk_energy_f32(const float *in, size_t n, double *squares, float *peak) {
  kernels()->energy_f32(in, n, squares, peak);
}

void mk_deinterleave_f32(const float *in, size_t channels, size_t channel, float *out, size_t n) {
  kernels()->deinterleave_f32(in, channels, channel, out, n);
}

void mk_deinterleave_s16(const int16_t *in, size_t channels, size_t channel, int16_t *out, size_t n) {
  kernels()->deinterleave_s16(in, channels, channel, out, n);
}

void mk_deinterleave_s16_f32(const int16_t *in, size_t channels, size_t channel, float *out, size_t n) {
  kernels()->deinterleave_s16_f32(in, channels, channel, out, n);
}

void mk_interleave_f32(const float *in, float *out, size_t channels, size_t channel, size_t n) {
  kernels()->interleave_f32(in, out, channels, channel, n);
}

void mk_interleave_s16(const int16_t *in, int16_t *out, size_t channels, size_t channel, size_t n) {
  kernels()->interleave_s16(in, out, channels, channel, n);
}

void mk_fourier_first(const float *re, const float *im, float *out_re, float *out_im, size_t quarter,
                      const float *turns) {
  kernels()->fourier_first(re, im, out_re, out_im, quarter, turns);
}

void mk_fourier_pass4(const float *re, const float *im, float *out_re, float *out_im, size_t quarter, size_t stride,
                      const float *turns) {
  kernels()->fourier_pass4(re, im, out_re, out_im, quarter, stride, turns);
}

void mk_fourier_pass2(const float *re, const float *im, float *out_re, float *out_im, size_t stride) {
  kernels()->fourier_pass2(re, im, out_re, out_im, stride);
}

void mk_fourier_part(const float *re, const float *im, float *out_re, float *out_im, size_t half, const float *turns) {
  kernels()->fourier_part(re, im, out_re, out_im, half, turns);
}

void mk_fourier_join(const float *re, const float *im, float *out_re, float *out_im, size_t half, const float *turns,
                     float scale) {
  kernels()->fourier_join(re, im, out_re, out_im, half, turns, scale);
}

void mk_fourier_weave(const float *re, const float *im, float *out, size_t n) { kernels()->fourier_weave(re, im, out, n); }

void mk_dense_f32(const float *weights, const float *biases, const float *in, size_t inputs, size_t stride,
                  size_t rows, float *out, size_t outputs) {
  kernels()->dense_f32(weights, biases, in, inputs, stride, rows, out, outputs);
}

void mk_spectrum_multiply_add(const float *ar, const float *ai, const float *br, const float *bi, float *sum_r,
                              float *sum_i, size_t n) {
  kernels()->spectrum_multiply_add(ar, ai, br, bi, sum_r, sum_i, n);
}

void mk_spectrum_power(const float *re, const float *im, float *power, size_t n) {
  kernels()->spectrum_power(re, im, power, n);
}

void mk_product_add(const float *a, const float *b, float *sum, size_t n) { kernels()->product_add(a, b, sum, n); }

void mk_kalman_innovate(const float *xr, const float *xi, const float *power, const float *er, const float *ei,
                        const float *inverse, float *doubt, float *gr, float *gi, float keep, size_t n) {
  kernels()->kalman_innovate(xr, xi, power, er, ei, inverse, doubt, gr, gi, keep, n);
}

void mk_kalman_correct(const float *gr, const float *gi, float *wr, float *wi, float *doubt, float renewal,
                       float least, size_t n) {
  kernels()->kalman_correct(gr, gi, wr, wi, doubt, renewal, least, n);
}
