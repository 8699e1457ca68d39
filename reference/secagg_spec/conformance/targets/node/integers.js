// SPDX-License-Identifier: Apache-2.0
//
// Integers modulo R
//
// An element is a Number below 2**32, a vector a Uint32Array. Numbers are exact up to 2**53; every intermediate value
// below is kept under that, so that nothing is ever rounded [MOD-03].

'use strict';

const { MAX_MODULUS, refuse } = require('./refusals');

/** t mod q, for integers 0 <= t < 2**52. The quotient, once rounded, is never too small and at most one too large. */
function reduce(t, q) {
  const r = t - Math.floor(t / q) * q;
  return r < 0 ? r + q : r;
}

function add(a, b, q) {
  const s = a + b;
  return s >= q ? s - q : s;
}

function subtract(a, b, q) {
  return a >= b ? a - b : a - b + q;
}

/** a*b + c mod q. b is cut into 16 high and 16 low bits: each product is below 2**48, the last sum below 2**50. */
function multiplyAdd(a, b, c, q) {
  const high = reduce(a * (b >>> 16), q);
  return reduce(high * 65536 + a * (b & 0xffff) + c, q);
}

function multiply(a, b, q) {
  return multiplyAdd(a, b, 0, q);
}

function power(base, exponent, q) {
  let result = 1 % q;
  let square = base;
  for (let e = exponent; e > 0; e = Math.floor(e / 2)) {
    if (e % 2 === 1) result = multiply(result, square, q);
    square = multiply(square, square, q);
  }
  return result;
}

/** [MOD-05] The inverse in a field, by Euclid; the factors of x stay below q in magnitude. */
function inverse(x, q) {
  if (x === 0) refuse('out_of_range', '0 has no inverse [MOD-05]');
  let [r0, r1, t0, t1] = [q, x, 0, 1];
  while (r1 !== 0) {
    const quotient = Math.floor(r0 / r1);
    [r0, r1] = [r1, r0 - quotient * r1];
    [t0, t1] = [t1, t0 - quotient * t1];
  }
  if (r0 !== 1) throw new Error('an element without an inverse in a field');
  return t0 < 0 ? t0 + q : t0;
}

/** Miller-Rabin; with the bases 2, 3, 5, 7 and 11 it is exact below 2152302898747. */
function isPrime(n) {
  for (const p of [2, 3, 5, 7, 11]) {
    if (n % p === 0) return n === p;
  }
  if (n < 2) return false;
  let odd = n - 1;
  let twos = 0;
  while (odd % 2 === 0) {
    odd /= 2;
    twos += 1;
  }
  for (const p of [2, 3, 5, 7, 11]) {
    let x = power(p, odd, n);
    let passes = x === 1 || x === n - 1;
    for (let i = 1; i < twos && !passes; i += 1) {
      x = multiply(x, x, n);
      passes = x === n - 1;
    }
    if (!passes) return false;
  }
  return true;
}

/** [MOD-01] */
function checkModulus(q) {
  if (!(q >= 2 && q <= MAX_MODULUS)) refuse('bad_param', `the modulus ${q} is not in [2, 2**32] [MOD-01]`);
}

/** [MOD-01] [MOD-02] */
function checkFieldModulus(q) {
  checkModulus(q);
  if (!isPrime(q)) refuse('bad_param', `the modulus ${q} is not a prime [MOD-02]`);
}

/** [MOD-06] */
function checkElements(vector, q, name) {
  for (let i = 0; i < vector.length; i += 1) {
    if (vector[i] >= q) refuse('noncanonical', `${name}[${i}] = ${vector[i]} is not in [0, ${q}) [MOD-06]`);
  }
}

/** [MOD-07] */
function checkLength(found, expected, name) {
  if (found !== expected) refuse('length_mismatch', `${name} has length ${found}, not ${expected} [MOD-07]`);
}

function checkVector(vector, length, q, name) {
  checkLength(vector.length, length, name);
  checkElements(vector, q, name);
}

function elementwise(operation, a, b, q) {
  const value = new Uint32Array(a.length);
  for (let i = 0; i < a.length; i += 1) value[i] = operation(a[i], b[i], q);
  return value;
}

function addInto(sum, vector, q) {
  for (let i = 0; i < sum.length; i += 1) sum[i] = add(sum[i], vector[i], q);
}

/**
 * [MOD-04] [MOD-08] The product of a (rows × inner) and b (inner × columns). The low and the high halves of b are accumulated
 * apart, 16 terms of less than 2**48 between reductions, so that both sums stay below 2**52.
 */
function matrixProduct(a, b, rows, inner, columns, q) {
  const value = new Uint32Array(rows * columns);
  const low = new Float64Array(inner);
  const high = new Float64Array(inner);
  for (let c = 0; c < columns; c += 1) {
    for (let k = 0; k < inner; k += 1) {
      const entry = b[k * columns + c];
      low[k] = entry & 0xffff;
      high[k] = entry >>> 16;
    }
    for (let r = 0; r < rows; r += 1) {
      const start = r * inner;
      let sum = 0;
      for (let from = 0; from < inner; from += 16) {
        const to = Math.min(from + 16, inner);
        let sumLow = 0;
        let sumHigh = 0;
        for (let k = from; k < to; k += 1) {
          const entry = a[start + k];
          sumLow += entry * low[k];
          sumHigh += entry * high[k];
        }
        sum = reduce(sum + reduce(sumHigh, q) * 65536 + reduce(sumLow, q), q);
      }
      value[r * columns + c] = sum;
    }
  }
  return value;
}

/** [RND-02] [RND-03] Elements from bytes; a last word that is not whole is no word. */
function sampleElements(bytes, n, q) {
  const end = Math.floor(2 ** 32 / q) * q; // words from here on are skipped
  const words = Math.floor(bytes.length / 4);
  if (n > words) refuse('bad_param', `${bytes.length} bytes run out before ${n} elements [RND-03]`);
  const value = new Uint32Array(n);
  let found = 0;
  for (let i = 0; i < words && found < n; i += 1) {
    const word = bytes.readUInt32LE(4 * i);
    if (word < end) {
      value[found] = word % q;
      found += 1;
    }
  }
  if (found < n) refuse('bad_param', `the bytes give ${found} elements, not ${n} [RND-03]`);
  return value;
}

module.exports = {
  reduce, add, subtract, multiplyAdd, multiply, power, inverse, isPrime, checkModulus, checkFieldModulus,
  checkElements, checkLength, checkVector, elementwise, addInto, matrixProduct, sampleElements,
};
