// SPDX-License-Identifier: Apache-2.0
//
// The packed form of segments (HeteroSAg, section 5).

'use strict';

const { refuse } = require('./refusals');

/** The bits of an element: the least b with 2**b >= R. */
function bitsOf(R) {
  return 32 - Math.clz32(R - 1);
}

/** The bytes of `length` elements modulo R. */
function packedSize(length, R) {
  return Math.ceil((bitsOf(R) * length) / 8);
}

/** [HSA-15] */
function pack(elements, R) {
  const bits = bitsOf(R);
  const bytes = Buffer.alloc(packedSize(elements.length, R));
  elements.forEach((element, i) => {
    for (let k = 0; k < bits; k += 1) {
      const place = i * bits + k;
      bytes[Math.floor(place / 8)] |= ((element >>> k) & 1) << (place % 8);
    }
  });
  return bytes;
}

/** [HSA-16] The elements of a packed segment, whose length is checked before. */
function unpack(bytes, length, R) {
  const bits = bitsOf(R);
  const bitAt = (place) => (bytes[Math.floor(place / 8)] >>> (place % 8)) & 1;
  const elements = new Uint32Array(length);
  for (let place = 0; place < 8 * bytes.length; place += 1) {
    if (bitAt(place) === 1) {
      if (place >= bits * length) refuse('malformed', 'a left-over bit is not zero [HSA-16]');
      elements[Math.floor(place / bits)] += 2 ** (place % bits);
    }
  }
  const wrong = elements.find((element) => element >= R);
  if (wrong !== undefined) refuse('malformed', `the element ${wrong} is not below ${R} [HSA-16]`);
  return elements;
}

module.exports = { packedSize, pack, unpack };
