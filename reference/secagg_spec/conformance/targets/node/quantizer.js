// SPDX-License-Identifier: Apache-2.0
//
// The quantiser

'use strict';

const { refuse } = require('./refusals');

/** [QNT-08], for the level. */
function checkLevel(level) {
  if (!(Number.isInteger(level) && level >= 1 && level <= 4294967296)) {
    refuse('bad_param', `the level ${level} is not in [1, 2**32] [QNT-08]`);
  }
}

/**
 * Whether u < y - ⌊y⌋ [QNT-03], for real numbers and not for rounded ones. The binary64 difference is exact but for
 * -1 < y < 0; there the condition is u + |y| < 1, and the sum is taken together with its rounding error.
 */
function roundsUp(u, y, floor) {
  if (!(y > -1 && y < 0)) return u < y - floor;
  const magnitude = -y;
  const sum = u + magnitude;
  if (sum !== 1) return sum < 1;
  const part = sum - u;
  const error = (u - (sum - part)) + (magnitude - part);
  return error < 0;
}

function quantize(q, level, weight, x, rounding) {
  const limit = Math.floor(Math.floor((q - 1) / 2) / weight); // |v|·W <= ⌊(R-1)/2⌋ exactly when |v| <= limit
  const value = new Uint32Array(x.length);
  for (let i = 0; i < x.length; i += 1) {
    const u = rounding[i];
    if (!(u >= 0 && u < 1)) refuse('out_of_range', `rounding[${i}] = ${u} is not in [0, 1) [QNT-09]`);
    if (!Number.isInteger(u * 2 ** 53)) {
      refuse('out_of_range', `rounding[${i}] = ${u} is not a multiple of 2**-53 [QNT-10]`);
    }
    const y = level * x[i];
    if (!Number.isFinite(x[i]) || !Number.isFinite(y)) {
      refuse('out_of_range', `x[${i}] = ${x[i]}, or its product with the level, is not finite [QNT-01]`);
    }
    const floor = Math.floor(y);
    const v = roundsUp(u, y, floor) ? floor + 1 : floor; // [QNT-02] [QNT-03]
    if (Math.abs(v) > limit) {
      refuse('out_of_range', `x[${i}]: |${v}|·${weight} is above ⌊(${q}-1)/2⌋ [QNT-04]`);
    }
    value[i] = v < 0 ? v + q : v; // [QNT-05]
  }
  return value;
}

/** v/c rounded once to binary32 [QNT-07]; |v| <= 2**31, 1 <= c <= 2**32, so that no result is subnormal. */
function divideToBinary32(v, c) {
  const wide = v / c;
  const narrow = Math.fround(wide);
  // Rounding twice goes wrong only where the first rounding ends in the middle between two binary32 numbers and was
  // not exact. A middle has 25 significant bits; there, compare v/c with it exactly.
  if (narrow === wide) return narrow;
  const away = wide - narrow;
  const other = narrow + 2 * away; // the other neighbour if `wide` is a middle
  if (Math.fround(other) !== other) return narrow;
  const scaled = BigInt(Math.abs(wide) * 2 ** 57) * BigInt(c);
  const exact = BigInt(Math.abs(v)) << 57n;
  if (exact === scaled) return narrow; // a true tie: to even, as Math.fround does
  const larger = Math.abs(narrow) > Math.abs(other) ? narrow : other;
  const smaller = larger === narrow ? other : narrow;
  return exact > scaled ? larger : smaller;
}

/** [QNT-06] [QNT-07] */
function dequantize(q, level, format, value) {
  const largest = Math.floor((q - 1) / 2);
  const x = new Float64Array(value.length);
  for (let i = 0; i < value.length; i += 1) {
    const v = value[i] <= largest ? value[i] : value[i] - q;
    x[i] = format === 'binary64' ? v / level : divideToBinary32(v, level);
  }
  return x;
}

module.exports = { checkLevel, roundsUp, quantize, divideToBinary32, dequantize };
