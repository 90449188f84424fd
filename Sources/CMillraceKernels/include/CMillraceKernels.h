#pragma once
#include <stddef.h>
#include <stdint.h>

// Inner loops over audio samples. Every function is written once (kernels.inc) and compiled twice on x86-64:
// for the SSE2 every such processor has, and for AVX2 with FMA. The first call asks the processor which of
// the two it can run; the answer stays for the life of the process, so results on one machine never depend on
// when or where a call is made.
//
// Rules for all of them: no allocation, no state, any thread; n may be 0 (pointers are then not read);
// pointers need the alignment of their element only; input and output may be the same array, but must not
// overlap in any other way. One f32 unit is full scale and equals 32768 in s16.

#ifdef __cplusplus
extern "C" {
#endif

/// Which compilation of the kernels is meant.
typedef enum mk_level {
  mk_level_baseline = 0,
  mk_level_avx2 = 1,
} mk_level;

/// One compilation of every kernel. Products call the functions below; tests compare the compilations through
/// this.
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
  /// acc = saturate(acc + in).
  void (*mix_s16)(const int16_t *in, int16_t *acc, size_t n);
  /// Sum of squares (exact while n < 2^33) and largest magnitude (up to 32768).
  void (*energy_s16)(const int16_t *in, size_t n, uint64_t *squares, uint32_t *peak);
  /// Sum of squares in double and largest magnitude. NaN samples count as 0.
  void (*energy_f32)(const float *in, size_t n, double *squares, float *peak);
  /// Takes channel `channel` of `n` interleaved frames.
  void (*deinterleave_f32)(const float *in, size_t channels, size_t channel, float *out, size_t n);
  void (*deinterleave_s16)(const int16_t *in, size_t channels, size_t channel, int16_t *out, size_t n);
  void (*deinterleave_s16_f32)(const int16_t *in, size_t channels, size_t channel, float *out, size_t n);
  /// Puts `n` samples into channel `channel` of interleaved frames; other channels are left alone.
  void (*interleave_f32)(const float *in, float *out, size_t channels, size_t channel, size_t n);
  void (*interleave_s16)(const int16_t *in, int16_t *out, size_t channels, size_t channel, size_t n);
} mk_kernels;

/// The kernels compiled for `level`, or NULL where this processor cannot run them.
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
void mk_mix_s16(const int16_t *in, int16_t *acc, size_t n);
void mk_energy_s16(const int16_t *in, size_t n, uint64_t *squares, uint32_t *peak);
void mk_energy_f32(const float *in, size_t n, double *squares, float *peak);
void mk_deinterleave_f32(const float *in, size_t channels, size_t channel, float *out, size_t n);
void mk_deinterleave_s16(const int16_t *in, size_t channels, size_t channel, int16_t *out, size_t n);
void mk_deinterleave_s16_f32(const int16_t *in, size_t channels, size_t channel, float *out, size_t n);
void mk_interleave_f32(const float *in, float *out, size_t channels, size_t channel, size_t n);
void mk_interleave_s16(const int16_t *in, int16_t *out, size_t channels, size_t channel, size_t n);

#ifdef __cplusplus
}
#endif
