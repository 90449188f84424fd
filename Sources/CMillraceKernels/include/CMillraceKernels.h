#pragma once
#include <stddef.h>
#include <stdint.h>

// Inner loops over audio samples. Every function is written once (kernels.inc) and compiled twice on x86-64:
// for SSE2, which every such processor has, and for AVX2 with FMA. The first call selects one by the processor's
// features; the choice is kept for the life of the process, so results on one machine never depend on when or
// where a call is made.
//
// Rules for all of them: no allocation, no state, any thread; n may be 0 (pointers are then not read);
// pointers need only the alignment of their element; input and output may be the same array, but must not
// overlap otherwise. One f32 unit is full scale and equals 32768 in s16.

#ifdef __cplusplus
extern "C" {
#endif

/// A compilation of the kernels.
typedef enum mk_level {
  mk_level_baseline = 0,
  mk_level_avx2 = 1,
} mk_level;

/// Outputs of a fully connected layer that are stored side by side.
#define MK_DENSE_BLOCK 16

/// One compilation of every kernel. Programs call the functions below; tests compare the compilations through this table.
typedef struct mk_kernels {
  /// Sum of a[i] * b[i]. The order of additions depends on n alone.
  float (*dot_f32)(const float *a, const float *b, size_t n);
  /// Polyphase FIR: count outputs. Output i is the dot product of `taps` coefficients, row `phase` of
  /// `table`, with the samples at `x`; then x moves by `step` and phase by `part`, with a carry into x at
  /// `phases`. `taps` must be a multiple of 8. Output i is written to out[i * stride].
  void (*polyphase_f32)(const float *x, const float *table, size_t taps, size_t phases, size_t step, size_t part,
                        size_t phase, float *out, size_t stride, size_t count);
  /// Round to nearest (ties to even), saturate, NaN becomes 0.
  void (*f32_to_s16)(const float *in, int16_t *out, size_t n);
  void (*s16_to_f32)(const int16_t *in, float *out, size_t n);
  void (*gain_f32)(const float *in, float *out, size_t n, float gain);
  /// out = saturate(round(in * gain)).
  void (*gain_s16)(const int16_t *in, int16_t *out, size_t n, float gain);
  /// acc += in * gain.
  void (*mix_f32)(const float *in, float *acc, size_t n, float gain);
  /// acc += in / 32768 * gain.
  void (*mix_s16_f32)(const int16_t *in, float *acc, size_t n, float gain);
  /// Sum of squares (exact while n < 2^33) and largest magnitude (up to 32768).
  void (*energy_s16)(const int16_t *in, size_t n, uint64_t *squares, uint32_t *peak);
  /// Sum of squares in double and largest magnitude. NaN samples count as 0.
  void (*energy_f32)(const float *in, size_t n, double *squares, float *peak);
  /// Extracts channel `channel` of `n` interleaved frames.
  void (*deinterleave_f32)(const float *in, size_t channels, size_t channel, float *out, size_t n);
  void (*deinterleave_s16)(const int16_t *in, size_t channels, size_t channel, int16_t *out, size_t n);
  void (*deinterleave_s16_f32)(const int16_t *in, size_t channels, size_t channel, float *out, size_t n);
  /// Stores `n` samples in channel `channel` of interleaved frames; other channels are unchanged.
  void (*interleave_f32)(const float *in, float *out, size_t channels, size_t channel, size_t n);
  void (*interleave_s16)(const int16_t *in, int16_t *out, size_t channels, size_t channel, size_t n);
  /// Passes of a complex Fourier transform of n = 4 * quarter * stride numbers; out of place, no array may overlap
  /// another. `turns` holds, for p below quarter, the real and then the imaginary parts of exp(-2 pi j p k / (4 quarter))
  /// for k = 1, 2, 3: six runs of `quarter` floats. First pass: stride 1, quarter a multiple of 4; with im NULL the
  /// numbers are pairs at re.
  void (*fourier_first)(const float *re, const float *im, float *out_re, float *out_im, size_t quarter,
                        const float *turns);
  /// A later pass: stride is a multiple of 4.
  void (*fourier_pass4)(const float *re, const float *im, float *out_re, float *out_im, size_t quarter, size_t stride,
                        const float *turns);
  /// The last pass when n is not a power of four: n = 2 * stride.
  void (*fourier_pass2)(const float *re, const float *im, float *out_re, float *out_im, size_t stride);
  /// half + 1 bins of a real transform from `half` bins of the complex one over pairs of neighbours. `turns` holds
  /// half / 2 real, then half / 2 imaginary parts of exp(-pi j k / half).
  void (*fourier_part)(const float *re, const float *im, float *out_re, float *out_im, size_t half, const float *turns);
  /// The inverse, times 2 * scale.
  void (*fourier_join)(const float *re, const float *im, float *out_re, float *out_im, size_t half, const float *turns,
                       float scale);
  /// n pairs: out[2 i] = re[i], out[2 i + 1] = im[i].
  void (*fourier_weave)(const float *re, const float *im, float *out, size_t n);
  /// Fully connected layer on `rows` inputs: out[r * outputs + o] = biases[o] + sum of weight(o, i) * in[r * stride + i].
  /// `outputs` is a multiple of MK_DENSE_BLOCK; weight(o, i) lies at
  /// weights[(o / MK_DENSE_BLOCK * inputs + i) * MK_DENSE_BLOCK + o % MK_DENSE_BLOCK].
  void (*dense_f32)(const float *weights, const float *biases, const float *in, size_t inputs, size_t stride,
                    size_t rows, float *out, size_t outputs);

  /// Loops over spectra with separate real and imaginary arrays: n is a multiple of 8, and no arrays overlap. sum += a * b.
  void (*spectrum_multiply_add)(const float *ar, const float *ai, const float *br, const float *bi, float *sum_r,
                                float *sum_i, size_t n);
  /// power = |re + j im|^2.
  void (*spectrum_power)(const float *re, const float *im, float *power, size_t n);
  /// sum += a * b, real.
  void (*product_add)(const float *a, const float *b, float *sum, size_t n);
  /// One partition of a frequency-domain Kalman filter: g = doubt * inverse * conj(x) * e is its correction, and doubt
  /// becomes the uncertainty after this observation, times keep. `power` is |x|^2.
  void (*kalman_innovate)(const float *xr, const float *xi, const float *power, const float *er, const float *ei,
                          const float *inverse, float *doubt, float *gr, float *gi, float keep, size_t n);
  /// w += g, and doubt grows by renewal * |w|^2 + least.
  void (*kalman_correct)(const float *gr, const float *gi, float *wr, float *wi, float *doubt, float renewal,
                         float least, size_t n);
} mk_kernels;

/// The kernels compiled for `level`, or NULL when this processor cannot run them.
const mk_kernels *mk_kernels_at(mk_level level);
/// The level the functions below use on this machine.
mk_level mk_level_in_use(void);

float mk_dot_f32(const float *a, const float *b, size_t n);
void mk_polyphase_f32(const float *x, const float *table, size_t taps, size_t phases, size_t step, size_t part,
                      size_t phase, float *out, size_t stride, size_t count);
void mk_f32_to_s16(const float *in, int16_t *out, size_t n);
void mk_s16_to_f32(const int16_t *in, float *out, size_t n);
void mk_gain_f32(const float *in, float *out, size_t n, float gain);
void mk_gain_s16(const int16_t *in, int16_t *out, size_t n, float gain);
void mk_mix_f32(const float *in, float *acc, size_t n, float gain);
void mk_mix_s16_f32(const int16_t *in, float *acc, size_t n, float gain);
void mk_energy_s16(const int16_t *in, size_t n, uint64_t *squares, uint32_t *peak);
void mk_energy_f32(const float *in, size_t n, double *squares, float *peak);
void mk_deinterleave_f32(const float *in, size_t channels, size_t channel, float *out, size_t n);
void mk_deinterleave_s16(const int16_t *in, size_t channels, size_t channel, int16_t *out, size_t n);
void mk_deinterleave_s16_f32(const int16_t *in, size_t channels, size_t channel, float *out, size_t n);
void mk_interleave_f32(const float *in, float *out, size_t channels, size_t channel, size_t n);
void mk_interleave_s16(const int16_t *in, int16_t *out, size_t channels, size_t channel, size_t n);
void mk_fourier_first(const float *re, const float *im, float *out_re, float *out_im, size_t quarter,
                      const float *turns);
void mk_fourier_pass4(const float *re, const float *im, float *out_re, float *out_im, size_t quarter, size_t stride,
                      const float *turns);
void mk_fourier_pass2(const float *re, const float *im, float *out_re, float *out_im, size_t stride);
void mk_fourier_part(const float *re, const float *im, float *out_re, float *out_im, size_t half, const float *turns);
void mk_fourier_join(const float *re, const float *im, float *out_re, float *out_im, size_t half, const float *turns,
                     float scale);
void mk_fourier_weave(const float *re, const float *im, float *out, size_t n);
void mk_dense_f32(const float *weights, const float *biases, const float *in, size_t inputs, size_t stride,
                  size_t rows, float *out, size_t outputs);
void mk_spectrum_multiply_add(const float *ar, const float *ai, const float *br, const float *bi, float *sum_r,
                              float *sum_i, size_t n);
void mk_spectrum_power(const float *re, const float *im, float *power, size_t n);
void mk_product_add(const float *a, const float *b, float *sum, size_t n);
void mk_kalman_innovate(const float *xr, const float *xi, const float *power, const float *er, const float *ei,
                        const float *inverse, float *doubt, float *gr, float *gi, float keep, size_t n);
void mk_kalman_correct(const float *gr, const float *gi, float *wr, float *wi, float *doubt, float renewal,
                       float least, size_t n);

#ifdef __cplusplus
}
#endif
