#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// secagg-spec-node: LightSecAgg and its conventions behind the adapter protocol, version 1.0.
//
// Written from the text alone: spec/conventions.md, spec/lightsecagg.md and spec/adapter.md. It shares no code with
// the reference, and no idea that the text does not give. Node 20, no dependency.
//
//   node adapter.js < requests.jsonl > answers.jsonl
//
// The ids in brackets, such as [MOD-03], name the sentence of the text that a piece of code carries out.
// Parts: 1 refusals, 2 integers modulo R, 3 the code, 4 the quantiser, 5 LightSecAgg, 6 encodings, 7 operations,
// 8 requests and answers, 9 standard input and output.

'use strict';

const fs = require('node:fs');
const { isUtf8 } = require('node:buffer');

const MAX_LINE = 67108864; // bytes [ADP-02]
const MAX_MODULUS = 4294967296; // [MOD-01]
const COUNT_LIMIT = 2147483648; // counts, users and weights are below 2**31 (adapter, section 3)

// ------------------------------------------------------------------------------------------------------------------
// 1. Refusals

/** The implementation says no, on purpose. `code` is one of section 5 of the adapter page [ADP-09]. */
class Reject extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Allowed by the text, but too large to be offered here [ADP-06]. */
class Unsupported extends Error {}

function refuse(code, message) {
  throw new Reject(code, message);
}

/** A value for a message: short, whatever it is. */
function show(value) {
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? value.slice(0, 40) + '…' : value);
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'a list' : 'an object';
  return String(value);
}

// ------------------------------------------------------------------------------------------------------------------
// 2. Integers modulo R
//
// An element is a Number below 2**32, a vector a Uint32Array. Numbers are exact up to 2**53; every intermediate value
// below is kept under that, so that nothing is ever rounded [MOD-03].

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
 * [MOD-04] The product of a (rows × inner) and b (inner × columns). The low and the high halves of b are accumulated
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

// ------------------------------------------------------------------------------------------------------------------
// 3. The code that shares a mask

/** The default point of user j [MDS-02]: distinct and not 0, since j < N < q. */
function pointOf(user) {
  return user + 1;
}

/** [MDS-01] 1 <= T < U <= N < q, with q a prime. */
function checkCode(q, N, U, T) {
  checkFieldModulus(q);
  if (!(1 <= T && T < U && U <= N && N < q)) {
    refuse('bad_param', `1 <= T < U <= N < q does not hold for T=${T}, U=${U}, N=${N}, q=${q} [MDS-01]`);
  }
}

/** L, the number of elements of a share. */
function shareLength(d, U, T) {
  return Math.ceil(d / (U - T));
}

/** What no machine does in an acceptable time is not offered. */
function checkWork(products) {
  if (products > 1e10) throw new Unsupported('too much work');
}

/** The shares of all users, without checks. mask: d elements; noise: T·L elements, row by row. */
function encode(q, N, U, T, mask, noise) {
  const L = shareLength(mask.length, U, T);
  // [MDS-03] U rows of L columns: the mask continued by zeros, then the noise.
  const matrix = new Uint32Array(U * L);
  matrix.set(mask, 0);
  matrix.set(noise, (U - T) * L);
  // [MDS-04] The polynomial of each column, at the point of each user, by Horner's rule.
  const shares = [];
  for (let j = 0; j < N; j += 1) {
    const share = matrix.slice((U - 1) * L);
    const a = pointOf(j);
    for (let k = U - 2; k >= 0; k -= 1) {
      const row = k * L;
      for (let l = 0; l < L; l += 1) share[l] = multiplyAdd(a, share[l], matrix[row + l], q);
    }
    shares.push(share);
  }
  return shares;
}

/** Sum over i of weights[i] · vectors[i][l], for every l. */
function combine(weights, vectors, length, q) {
  const sum = new Uint32Array(length);
  for (let i = 0; i < weights.length; i += 1) {
    const weight = weights[i];
    const vector = vectors[i];
    for (let l = 0; l < length; l += 1) sum[l] = multiplyAdd(weight, vector[l], sum[l], q);
  }
  return sum;
}

/**
 * [MDS-05] [MDS-06] [MDS-09] The vector of d elements from the shares of at least U distinct users, checked before.
 *
 * Each column of M is a polynomial of degree below U, known at the points of the first U users. With
 * A(X) = (X - a_1)…(X - a_U) and A_i = A / (X - a_i), Lagrange's basis is A_i / A_i(a_i); row k of M is the
 * combination of the shares with the coefficients of X**k in that basis. Each further share must be the value of the
 * same polynomial at its own point.
 */
function decode(q, U, T, d, users, shares) {
  const L = shareLength(d, U, T);
  const points = users.map(pointOf);

  // A, lowest coefficient first.
  const product = new Uint32Array(U + 1);
  product[0] = 1;
  for (let i = 0; i < U; i += 1) {
    for (let k = i + 1; k >= 0; k -= 1) {
      const shifted = k > 0 ? product[k - 1] : 0;
      product[k] = subtract(shifted, multiply(points[i], product[k], q), q);
    }
  }

  // rows[k][i]: the coefficient of X**k in the basis polynomial of user i; scale[i] = 1 / A_i(a_i).
  const wanted = U - T;
  const rows = Array.from({ length: wanted }, () => new Uint32Array(U));
  const scale = new Uint32Array(U);
  const quotient = new Uint32Array(U);
  for (let i = 0; i < U; i += 1) {
    let coefficient = 0;
    let value = 0; // A_i(a_i), by Horner's rule along the division
    for (let k = U - 1; k >= 0; k -= 1) {
      coefficient = multiplyAdd(points[i], coefficient, product[k + 1], q);
      quotient[k] = coefficient;
      value = multiplyAdd(points[i], value, coefficient, q);
    }
    scale[i] = inverse(value, q);
    for (let k = 0; k < wanted; k += 1) rows[k][i] = multiply(scale[i], quotient[k], q);
  }

  // [MDS-09] [LSA-15] The basis at a further point x is A(x) / (x - a_i) · scale[i].
  for (let extra = U; extra < users.length; extra += 1) {
    const x = points[extra];
    let atX = 1;
    for (let i = 0; i < U; i += 1) atX = multiply(atX, subtract(x, points[i], q), q);
    const weights = new Uint32Array(U);
    for (let i = 0; i < U; i += 1) {
      weights[i] = multiply(multiply(atX, scale[i], q), inverse(subtract(x, points[i], q), q), q);
    }
    const expected = combine(weights, shares, L, q);
    for (let l = 0; l < L; l += 1) {
      if (expected[l] !== shares[extra][l]) {
        refuse('bad_share', `the shares of the users ${users.join(', ').slice(0, 200)} lie on no codeword [MDS-09]`);
      }
    }
  }

  const vector = new Uint32Array(wanted * L);
  for (let k = 0; k < wanted; k += 1) vector.set(combine(rows[k], shares, L, q), k * L);
  return vector.subarray(0, d);
}

/** [MDS-07] [MDS-08] and the form of the shares; then the decoder. */
function checkedDecode(q, N, U, T, d, users, shares) {
  checkLength(shares.length, users.length, 'shares');
  checkUserList(users, N, 'users'); // [MDS-08]
  if (users.length < U) refuse('below_threshold', `${users.length} shares are fewer than U = ${U} [MDS-07]`);
  const L = shareLength(d, U, T);
  shares.forEach((share, i) => checkVector(share, L, q, `shares[${i}]`));
  checkWork(U * users.length + U * (users.length - T) * L);
  return decode(q, U, T, d, users, shares);
}

/** No user twice, and none outside [0, N). */
function checkUserList(users, N, name) {
  const seen = new Set();
  for (const user of users) {
    if (!(user >= 0 && user < N)) refuse('unknown_peer', `${name}: user ${user} is not in [0, ${N})`);
    if (seen.has(user)) refuse('duplicate_id', `${name}: user ${user} is named twice`);
    seen.add(user);
  }
  return seen;
}

// ------------------------------------------------------------------------------------------------------------------
// 4. The quantiser

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
    if (!(u >= 0 && u < 1)) refuse('out_of_range', `rounding[${i}] = ${u} is not in [0, 1)`);
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

// ------------------------------------------------------------------------------------------------------------------
// 5. LightSecAgg

/** [LSA-01] */
function checkLightSecAgg({ q, N, D, U, T, d }) {
  checkFieldModulus(q);
  const holds = T >= 1 && U > T && D >= 0 && N - D >= U && N - D >= T + 2 && q > N && d >= 1;
  if (!holds) {
    refuse('bad_param', `not allowed together: q=${q}, N=${N}, D=${D}, U=${U}, T=${T}, d=${d} [LSA-01]`);
  }
}

/**
 * What a user checks before it answers a surviving set. The one code says "a set of users that cannot be right", which
 * stays true when a set breaks several of the rules.
 */
function checkSurvivingSet(surviving, N, T, held) {
  const members = new Set(surviving);
  for (const user of members) {
    if (!(user >= 0 && user < N)) {
      refuse('inconsistent_sets', `the surviving set names user ${user}, outside [0, ${N}) [LSA-10]`);
    }
  }
  if (members.size !== surviving.length) {
    refuse('inconsistent_sets', 'the surviving set names a user twice [LSA-10]');
  }
  if (members.size < T + 2) {
    refuse('inconsistent_sets', `the surviving set has ${members.size} members, fewer than T + 2 = ${T + 2} [LSA-09]`);
  }
  for (const user of members) {
    if (!held.has(user)) refuse('inconsistent_sets', `no share is held of user ${user} [LSA-11]`);
  }
}

/** [LSA-08] */
function sumOfShares(surviving, held, q) {
  const sum = new Uint32Array(held.get(surviving[0]).length);
  for (const user of surviving) addInto(sum, held.get(user), q);
  return sum;
}

class User {
  constructor(parameters, index) {
    this.p = parameters;
    this.index = index;
    this.mask = null;
    this.held = new Map(); // sender -> its share for this user
    this.uploaded = false;
    this.answered = false;
  }

  /** Step 1. The shares for the other users, by receiver. */
  share(mask, noise) {
    const { q, N, U, T } = this.p;
    const shares = encode(q, N, U, T, mask, noise);
    this.mask = mask;
    const outgoing = new Map();
    shares.forEach((share, j) => (j === this.index ? this.held : outgoing).set(j, share));
    return outgoing;
  }

  receive(sender, share) {
    if (this.held.has(sender)) refuse('replay', `a second share of user ${sender} [MSG-04]`);
    this.held.set(sender, share);
  }

  /** Step 3. [LSA-02] [LSA-03] [LSA-04] */
  upload(update) {
    const { q, d } = this.p;
    if (this.uploaded) refuse('replay', 'a second upload [LSA-04]');
    checkVector(update, d, q, 'update');
    const masked = elementwise(add, update, this.mask, q);
    this.uploaded = true;
    this.mask = null;
    return masked;
  }

  /** Step 5. [LSA-08] to [LSA-12] */
  answer(surviving) {
    const { q, N, T } = this.p;
    if (this.answered) refuse('replay', 'a second aggregated share [LSA-12]');
    checkSurvivingSet(surviving, N, T, this.held);
    const share = sumOfShares(surviving, this.held, q);
    this.answered = true;
    this.held = new Map();
    return share;
  }
}

class Server {
  constructor(parameters) {
    this.p = parameters;
    this.sharers = [];
    this.masked = new Map(); // sharer -> masked update
    this.surviving = null;
    this.answers = new Map(); // member of the surviving set -> aggregated share
  }

  /** Step 2. [LSA-05] arrived: sender -> receiver -> share. The answer is a list of [sender, receiver, share]. */
  relay(arrived) {
    const relayed = [];
    for (const [sender, shares] of arrived) {
      let whole = shares.size === this.p.N - 1;
      for (let j = 0; j < this.p.N; j += 1) whole = whole && (j === sender || shares.has(j));
      if (!whole) continue;
      this.sharers.push(sender);
      for (const [receiver, share] of shares) relayed.push([sender, receiver, share]);
    }
    return relayed;
  }

  /** [LSA-16] */
  acceptMasked(sender, masked) {
    if (!this.sharers.includes(sender)) refuse('unknown_peer', `user ${sender} is not a sharer [LSA-16]`);
    if (this.masked.has(sender)) refuse('replay', `a second masked update of user ${sender} [MSG-04]`);
    checkVector(masked, this.p.d, this.p.q, 'masked');
    this.masked.set(sender, masked);
  }

  /** Step 4. [LSA-06] [LSA-07] */
  announce() {
    const { U, T } = this.p;
    const surviving = [...this.masked.keys()].sort((a, b) => a - b);
    if (surviving.length < Math.max(U, T + 2)) {
      refuse('below_threshold', `${surviving.length} users survive, fewer than U = ${U} or T + 2 = ${T + 2} [LSA-07]`);
    }
    this.surviving = surviving;
    return surviving;
  }

  /** [LSA-16] */
  acceptAnswer(sender, share) {
    const { q, U, T, d } = this.p;
    if (!this.surviving.includes(sender)) refuse('unknown_peer', `user ${sender} does not survive [LSA-16]`);
    if (this.answers.has(sender)) refuse('replay', `a second answer of user ${sender} [MSG-04]`);
    checkVector(share, shareLength(d, U, T), q, 'share');
    this.answers.set(sender, share);
  }

  /** Step 6. */
  recover() {
    return recoverSum(this.p, this.surviving.map((i) => this.masked.get(i)), [...this.answers.keys()],
      [...this.answers.values()]);
  }
}

/** [LSA-13] [LSA-14] [LSA-15] The sum of the masked updates less that of the masks; all is of the right form. */
function recoverSum({ q, U, T, d }, masked, users, shares) {
  if (users.length < U) refuse('below_threshold', `${users.length} answers are fewer than U = ${U} [LSA-14]`);
  const masks = decode(q, U, T, d, users, shares);
  const sum = new Uint32Array(d);
  for (const vector of masked) addInto(sum, vector, q);
  return elementwise(subtract, sum, masks, q);
}

/** Section 4: one round in which drop[phase] holds the users that are gone from their step of that phase on. */
function playRound(parameters, updates, masks, noises, drop) {
  const server = new Server(parameters);
  const all = Array.from({ length: parameters.N }, (_, i) => new User(parameters, i));

  let present = all.filter((user) => !drop.share.has(user.index));
  const arrived = new Map();
  for (const user of present) arrived.set(user.index, user.share(masks[user.index], noises[user.index]));
  for (const [sender, receiver, share] of server.relay(arrived)) all[receiver].receive(sender, share);

  present = present.filter((user) => !drop.upload.has(user.index));
  for (const user of present) server.acceptMasked(user.index, user.upload(updates[user.index]));
  const surviving = server.announce();

  present = present.filter((user) => !drop.recover.has(user.index));
  for (const user of present) server.acceptAnswer(user.index, user.answer(surviving));
  return { aggregate: server.recover(), contributors: surviving }; // [LSA-17]
}

// ------------------------------------------------------------------------------------------------------------------
// 6. Encodings (adapter, section 3). Each reader takes a JSON value and a name, and refuses any other form of value as
// `malformed`.

/** Bytes as lowercase hex digits. */
function readBytes(value, name) {
  if (typeof value !== 'string' || value.length % 2 !== 0 || /[^0-9a-f]/.test(value)) {
    refuse('malformed', `${name} is not a string of pairs of lowercase hex digits`);
  }
  return Buffer.from(value, 'hex');
}

function readWords(value, name, size) {
  const bytes = readBytes(value, name);
  if (bytes.length % size !== 0) refuse('malformed', `${name} is not a sequence of ${size}-byte numbers`);
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

function readVector(value, name) {
  const view = readWords(value, name, 4);
  const vector = new Uint32Array(view.byteLength / 4);
  for (let i = 0; i < vector.length; i += 1) vector[i] = view.getUint32(4 * i, true);
  return vector;
}

function readReals(value, name) {
  const view = readWords(value, name, 8);
  const vector = new Float64Array(view.byteLength / 8);
  for (let i = 0; i < vector.length; i += 1) vector[i] = view.getFloat64(8 * i, true);
  return vector;
}

function writeVector(vector) {
  const bytes = Buffer.allocUnsafe(4 * vector.length);
  for (let i = 0; i < vector.length; i += 1) bytes.writeUInt32LE(vector[i], 4 * i);
  return bytes.toString('hex');
}

function writeReals(vector, format) {
  const size = format === 'binary64' ? 8 : 4;
  const bytes = Buffer.allocUnsafe(size * vector.length);
  for (let i = 0; i < vector.length; i += 1) {
    if (size === 8) bytes.writeDoubleLE(vector[i], 8 * i);
    else bytes.writeFloatLE(vector[i], 4 * i);
  }
  return bytes.toString('hex');
}

/**
 * A modulus or a level: a decimal string. Whoever asks checks the range; a string of more digits than any range has
 * becomes an infinity, which no range holds. A number that is not written as an integer breaks QNT-08 (a level that is
 * no integer) rather than the form of a request.
 */
function readDecimal(value, name) {
  if (typeof value !== 'string' || value === '' || /[^0-9.eE+-]/.test(value)) {
    refuse('malformed', `${name} is not a decimal string: ${show(value)}`);
  }
  const negative = value[0] === '-';
  const digits = negative ? value.slice(1) : value;
  if (digits === '' || /[^0-9]/.test(digits) || (digits[0] === '0' && value !== '0')) {
    refuse('bad_param', `${name} is not an integer in decimal digits: ${show(value)}`);
  }
  const magnitude = digits.length > 15 ? Infinity : Number(digits);
  return negative ? -magnitude : magnitude;
}

/** A JSON integer; its range is checked where it is used. */
function readInteger(value, name) {
  if (!Number.isInteger(value)) refuse('malformed', `${name} is not an integer: ${show(value)}`);
  return value;
}

/** A count or a weight: a JSON integer below 2**31. */
function readCount(value, name) {
  readInteger(value, name);
  if (value >= COUNT_LIMIT) refuse('bad_param', `${name} = ${value} is not below 2**31`);
  return value;
}

/** A count that may be 0 and not less. */
function readSize(value, name) {
  readCount(value, name);
  if (value < 0) refuse('bad_param', `${name} = ${value} is below 0`);
  return value;
}

function readList(value, name, readItem) {
  if (!Array.isArray(value)) refuse('malformed', `${name} is not a list`);
  return value.map((item, i) => readItem(item, `${name}[${i}]`));
}

const readUsers = (value, name) => readList(value, name, readInteger);
const readVectors = (value, name) => readList(value, name, readVector);

/** `held`: a list of [user, vector]. */
function readHeld(value, name) {
  return readList(value, name, (item, at) => {
    if (!Array.isArray(item) || item.length !== 2) refuse('malformed', `${at} is not a pair of a user and a vector`);
    return [readInteger(item[0], at), readVector(item[1], at)];
  });
}

/** `drop`: three lists of users, by phase. */
function readDrop(value, name) {
  return readMembers(value, name, { share: readUsers, upload: readUsers, recover: readUsers });
}

function readString(value, name) {
  if (typeof value !== 'string') refuse('malformed', `${name} is not a string`);
  return value;
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** [ADP-05] [RND-04] An object with exactly the members that `readers` names, each read by its reader. */
function readMembers(object, name, readers) {
  if (!isObject(object)) refuse('malformed', `${name} is not an object`);
  for (const member of Object.keys(object)) {
    if (!Object.hasOwn(readers, member)) refuse('malformed', `${name} holds an unknown member ${show(member)}`);
  }
  const read = {};
  for (const member of Object.keys(readers)) {
    if (!Object.hasOwn(object, member)) refuse('malformed', `${name} lacks the member ${member}`);
    read[member] = readers[member](object[member], `${name}.${member}`);
  }
  return read;
}

// ------------------------------------------------------------------------------------------------------------------
// 7. Operations (adapter, section 4)

/** name -> { params, rand, run }: the readers of both kinds of members, and the work. */
const OPERATIONS = new Map();

function operation(name, params, rand, run) {
  OPERATIONS.set(name, { params, rand, run });
}

// `echo` does not pass through here: see answerEcho.
operation('echo', { data: (value) => value }, {}, null);

for (const [name, arithmetic] of [['add', add], ['subtract', subtract], ['multiply', multiply]]) {
  operation(`field.${name}`, { q: readDecimal, a: readVector, b: readVector }, {}, ({ q, a, b }) => {
    checkModulus(q);
    checkLength(b.length, a.length, 'b');
    checkElements(a, q, 'a');
    checkElements(b, q, 'b');
    return { value: writeVector(elementwise(arithmetic, a, b, q)) }; // [MOD-03]
  });
}

operation('field.inverse', { q: readDecimal, a: readVector }, {}, ({ q, a }) => {
  checkFieldModulus(q);
  checkElements(a, q, 'a');
  return { value: writeVector(a.map((x) => inverse(x, q))) };
});

operation('field.matmul', {
  q: readDecimal, rows: readSize, inner: readSize, columns: readSize, a: readVector, b: readVector,
}, {}, ({ q, rows, inner, columns, a, b }) => {
  checkModulus(q);
  checkVector(a, rows * inner, q, 'a');
  checkVector(b, inner * columns, q, 'b');
  checkAnswerSize(8 * rows * columns);
  return { value: writeVector(matrixProduct(a, b, rows, inner, columns, q)) };
});

operation('sample.field', { q: readDecimal, n: readSize, bytes: readBytes }, {}, ({ q, n, bytes }) => {
  checkModulus(q);
  return { value: writeVector(sampleElements(bytes, n, q)) };
});

operation('mds.encode', {
  q: readDecimal, N: readCount, U: readCount, T: readCount, mask: readVector,
}, { noise: readVector }, ({ q, N, U, T, mask }, { noise }) => {
  checkCode(q, N, U, T);
  if (mask.length === 0) refuse('bad_param', 'an empty vector cannot be shared [MDS-01]');
  const L = shareLength(mask.length, U, T);
  checkElements(mask, q, 'mask');
  checkVector(noise, T * L, q, 'noise');
  checkAnswerSize(N * (8 * L + 3));
  checkWork(N * U * L);
  return { shares: encode(q, N, U, T, mask, noise).map(writeVector) };
});

operation('mds.decode', {
  q: readDecimal, N: readCount, U: readCount, T: readCount, d: readSize, users: readUsers, shares: readVectors,
}, {}, ({ q, N, U, T, d, users, shares }) => {
  checkCode(q, N, U, T);
  if (d === 0) refuse('bad_param', 'd = 0: there is nothing to decode [MDS-01]');
  return { mask: writeVector(checkedDecode(q, N, U, T, d, users, shares)) };
});

operation('quantizer.quantize', {
  q: readDecimal, level: readDecimal, weight: readCount, x: readReals,
}, { rounding: readReals }, ({ q, level, weight, x }, { rounding }) => {
  checkModulus(q);
  checkLevel(level);
  if (weight < 1) refuse('bad_param', `the weight ${weight} is below 1 [QNT-08]`);
  checkLength(rounding.length, x.length, 'rounding');
  return { value: writeVector(quantize(q, level, weight, x, rounding)) };
});

operation('quantizer.dequantize', {
  q: readDecimal, level: readDecimal, format: readString, value: readVector,
}, {}, ({ q, level, format, value }) => {
  checkModulus(q);
  checkLevel(level);
  if (format !== 'binary64' && format !== 'binary32') refuse('bad_param', `no such format: ${show(format)}`);
  checkElements(value, q, 'value');
  return { x: writeReals(dequantize(q, level, format, value), format) };
});

operation('lightsecagg.mask', { q: readDecimal, update: readVector, mask: readVector }, {}, ({ q, update, mask }) => {
  checkFieldModulus(q); // q is a prime and d at least 1 [LSA-01]
  checkLength(mask.length, update.length, 'mask');
  if (update.length < 1) refuse('bad_param', 'an update has at least one element [LSA-01]');
  checkElements(update, q, 'update'); // [LSA-03]
  checkElements(mask, q, 'mask');
  return { masked: writeVector(elementwise(add, update, mask, q)) }; // [LSA-02]
});

operation('lightsecagg.aggregate_shares', {
  q: readDecimal, N: readCount, T: readCount, surviving: readUsers, held: readHeld,
}, {}, ({ q, N, T, surviving, held }) => {
  checkFieldModulus(q);
  // [LSA-01], as far as it can be seen from N and T.
  if (!(T >= 1 && N >= T + 2 && q > N)) refuse('bad_param', `not allowed together: q=${q}, N=${N}, T=${T} [LSA-01]`);
  checkUserList(held.map(([user]) => user), N, 'held');
  for (const [user, share] of held) {
    if (share.length < 1) refuse('bad_param', 'a share has at least one element [LSA-01]');
    checkVector(share, held[0][1].length, q, `the share of user ${user}`);
  }
  const shares = new Map(held);
  checkSurvivingSet(surviving, N, T, shares); // [LSA-09] [LSA-10] [LSA-11]
  return { share: writeVector(sumOfShares(surviving, shares, q)) };
});

operation('lightsecagg.recover', {
  q: readDecimal, N: readCount, D: readCount, U: readCount, T: readCount, d: readCount,
  surviving: readUsers, masked: readVectors, users: readUsers, shares: readVectors,
}, {}, (p) => {
  const { q, N, U, T, d, surviving, masked, users, shares } = p;
  checkLightSecAgg(p);
  const members = checkUserList(surviving, N, 'surviving');
  checkLength(masked.length, surviving.length, 'masked');
  checkLength(shares.length, users.length, 'shares');
  for (const user of users) {
    if (!members.has(user)) refuse('unknown_peer', `user ${user} answers and does not survive [LSA-16]`);
  }
  checkUserList(users, N, 'users');
  if (members.size < Math.max(U, T + 2)) {
    refuse('below_threshold', `${members.size} users survive, fewer than U = ${U} or T + 2 = ${T + 2} [LSA-07]`);
  }
  if (users.length < U) refuse('below_threshold', `${users.length} answers are fewer than U = ${U} [LSA-14]`);
  const L = shareLength(d, U, T);
  masked.forEach((vector, i) => checkVector(vector, d, q, `masked[${i}]`));
  shares.forEach((vector, i) => checkVector(vector, L, q, `shares[${i}]`));
  checkWork(U * users.length + U * (users.length - T) * L);
  return { aggregate: writeVector(recoverSum(p, masked, users, shares)) };
});

operation('lightsecagg.round', {
  q: readDecimal, N: readCount, D: readCount, U: readCount, T: readCount, d: readCount,
  updates: readVectors, drop: readDrop,
}, { masks: readVectors, noises: readVectors }, (p, { masks, noises }) => {
  const { q, N, U, T, d, updates, drop } = p;
  checkLightSecAgg(p);
  const L = shareLength(d, U, T);
  checkLength(updates.length, N, 'updates');
  checkLength(masks.length, N, 'masks');
  checkLength(noises.length, N, 'noises');
  // All that is given is checked, also what belongs to a user that is gone before it would use it [MOD-06] [MOD-07].
  for (let i = 0; i < N; i += 1) {
    checkVector(updates[i], d, q, `updates[${i}]`); // [LSA-03]
    checkVector(masks[i], d, q, `masks[${i}]`);
    checkVector(noises[i], T * L, q, `noises[${i}]`);
  }
  checkUserList([...drop.share, ...drop.upload, ...drop.recover], N, 'drop');
  checkWork(N * N * U * L);
  const gone = { share: new Set(drop.share), upload: new Set(drop.upload), recover: new Set(drop.recover) };
  const { aggregate, contributors } = playRound(p, updates, masks, noises, gone);
  return { aggregate: writeVector(aggregate), contributors };
});

// ------------------------------------------------------------------------------------------------------------------
// 8. Requests and answers

function checkAnswerSize(bytes) {
  if (bytes > MAX_LINE) throw new Unsupported('the answer would not fit into a line');
}

/** Section 2. [ADP-07] */
function hello(params) {
  if (!isObject(params)) refuse('malformed', 'params is not an object');
  const readers = { protocol: (value, name) => readList(value, name, readInteger) };
  if (Object.hasOwn(params, 'max_line')) readers.max_line = readInteger;
  readMembers(params, 'params', readers);
  const operations = {};
  for (const name of OPERATIONS.keys()) operations[name] = {};
  return {
    protocol: [1, 0],
    implementation: { name: 'secagg-spec-node', version: '0.1.0', language: 'javascript' },
    randomness: 'explicit',
    operations,
    policy: { 'mds.code': 'vandermonde', 'quantizer.rounding': 'stochastic', 'quantizer.middle': 'positive' },
  };
}

const rejection = (code, message) => `"reject":${JSON.stringify({ code, message })}`;

/** The answer to one line, as text without a line feed. Nothing is kept between calls [ADP-03]. */
function answerLine(line) {
  let request;
  try {
    request = JSON.parse(line);
  } catch (problem) {
    if (!(problem instanceof SyntaxError)) throw problem;
    return `{"id":null,${rejection('malformed', 'the line is not JSON')}}`;
  }
  if (!isObject(request) || !Number.isInteger(request.id)) {
    return `{"id":null,${rejection('malformed', 'the line is not an object with an integer id')}}`;
  }
  // An id that a Number does not hold exactly is given back as it was written.
  const id = Number.isSafeInteger(request.id) ? request.id : memberText(line, 'id');
  let body;
  try {
    body = answerRequest(request, line);
    if (body.length > MAX_LINE) throw new Unsupported('the answer does not fit into a line');
  } catch (problem) {
    if (problem instanceof Reject) body = rejection(problem.code, problem.message);
    else if (problem instanceof Unsupported) body = '"unsupported":true';
    else body = `"error":${JSON.stringify({ message: String(problem && problem.message) })}`;
  }
  return `{"id":${id},${body}}`;
}

function answerRequest(request, line) {
  const { op } = request;
  if (typeof op !== 'string') refuse('malformed', 'op is not a string');
  const found = OPERATIONS.get(op);
  if (found === undefined && op !== 'hello') throw new Unsupported('not declared'); // [ADP-04]
  for (const member of Object.keys(request)) {
    if (!['id', 'op', 'params', 'rand'].includes(member)) {
      refuse('malformed', `a request has no member ${show(member)}`);
    }
  }
  if (!Object.hasOwn(request, 'params')) refuse('malformed', 'the request lacks params');
  // [RND-04] Exactly the names that the operation lists; without any, an absent `rand` is the same as an empty one.
  const rand = readMembers(Object.hasOwn(request, 'rand') ? request.rand : {}, 'rand', found ? found.rand : {});
  if (op === 'hello') return `"result":${JSON.stringify(hello(request.params))}`;
  const params = readMembers(request.params, 'params', found.params);
  if (op === 'echo') return `"result":{"data":${memberText(line, 'params', 'data')}}`;
  return `"result":${JSON.stringify(found.run(params, rand))}`;
}

/**
 * The text of a member of the request (or, with two names, of a member of that member), as it was written: so `echo`
 * gives numbers back that a Number would round. The line is known to be JSON; of equal names the last one counts.
 */
function memberText(line, ...path) {
  let start = skipSpace(line, 0);
  let end = line.length;
  for (const name of path) {
    let at = skipSpace(line, start + 1); // behind the brace
    let found = null;
    while (line[at] === '"') {
      const keyEnd = skipValue(line, at);
      const valueStart = skipSpace(line, skipSpace(line, keyEnd) + 1); // behind the colon
      const valueEnd = skipValue(line, valueStart);
      if (JSON.parse(line.slice(at, keyEnd)) === name) found = [valueStart, valueEnd];
      at = skipSpace(line, valueEnd);
      if (line[at] === ',') at = skipSpace(line, at + 1);
    }
    [start, end] = found;
  }
  return line.slice(start, end);
}

function skipSpace(text, at) {
  while (at < text.length && text.charCodeAt(at) <= 32) at += 1;
  return at;
}

function skipString(text, at) {
  for (let quote = text.indexOf('"', at + 1); ; quote = text.indexOf('"', quote + 1)) {
    let before = quote - 1;
    while (text.charCodeAt(before) === 92) before -= 1; // backslashes
    if ((quote - before) % 2 === 1) return quote + 1; // an even number of them: the quote is not escaped
  }
}

/** The index behind the JSON value that starts at `at`. */
function skipValue(text, at) {
  let depth = 0;
  for (let i = at; i < text.length;) {
    switch (text.charCodeAt(i)) {
      case 34: // "
        i = skipString(text, i);
        if (depth === 0) return i;
        break;
      case 91: // [
      case 123: // {
        depth += 1;
        i += 1;
        break;
      case 93: // ]
      case 125: // }
        if (depth === 0) return i; // the end of a number or word inside the enclosing value
        depth -= 1;
        i += 1;
        if (depth === 0) return i;
        break;
      case 9: case 13: case 32: case 44: // white space or a comma
        if (depth === 0) return i;
        i += 1;
        break;
      default:
        i += 1;
    }
  }
  return text.length;
}

// ------------------------------------------------------------------------------------------------------------------
// 9. Standard input and output. Both are used synchronously: one line, one answer, the next line [ADP-01].

const HARD_LIMIT = 4 * MAX_LINE; // a longer line is not kept; it is refused once it has ended

/** fs.readSync or fs.writeSync, also where somebody has made the pipe non-blocking. */
function patiently(call) {
  for (;;) {
    try {
      return call();
    } catch (problem) {
      if (problem.code === 'EOF') return 0; // how some systems tell the end of input
      if (problem.code !== 'EAGAIN' && problem.code !== 'EINTR') throw problem;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function writeLine(text) {
  const bytes = Buffer.from(text + '\n', 'utf8');
  let done = 0;
  while (done < bytes.length) done += patiently(() => fs.writeSync(1, bytes, done, bytes.length - done));
}
function answerBytes(bytes) {
  let answer;
  try {
    answer = isUtf8(bytes)
      ? answerLine(bytes.toString('utf8'))
      : `{"id":null,${rejection('malformed', 'the line is not UTF-8')}}`;
  } catch (problem) {
    answer = `{"id":null,"error":${JSON.stringify({ message: String(problem && problem.message) })}}`;
  }
  writeLine(answer);
}

function main() {
  let buffer = Buffer.allocUnsafe(1 << 16);
  let start = 0; // where the current line starts
  let end = 0; // where what was read ends
  let overlong = false; // inside a line above the hard limit
  for (;;) {
    const count = patiently(() => fs.readSync(0, buffer, end, buffer.length - end, null));
    if (count === 0) break;
    let from = end;
    end += count;
    const read = buffer.subarray(0, end);
    for (let feed = read.indexOf(10, from); feed >= 0; feed = read.indexOf(10, from)) {
      if (overlong) writeLine(`{"id":null,${rejection('malformed', 'the line is too long')}}`);
      else answerBytes(buffer.subarray(start, feed));
      overlong = false;
      start = feed + 1;
      from = start;
    }
    if (overlong || end - start > HARD_LIMIT) {
      overlong = true;
      start = end;
    }
    if (start === end) {
      start = 0;
      end = 0;
    } else if (end === buffer.length) {
      // No room: move the unfinished line to the front of a buffer that is at most half full.
      const rest = end - start;
      const next = 2 * rest > buffer.length ? Buffer.allocUnsafe(2 * buffer.length) : buffer;
      buffer.copy(next, 0, start, end);
      buffer = next;
      start = 0;
      end = rest;
    }
  }
  if (end > start) answerBytes(buffer.subarray(start, end)); // a last line without its line feed
}

try {
  main();
} catch (problem) {
  if (problem.code !== 'EPIPE') throw problem; // nobody reads the answers any more
}
