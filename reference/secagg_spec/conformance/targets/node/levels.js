// SPDX-License-Identifier: Apache-2.0
//
// The quantiser with levels (HeteroSAg, section 3).

'use strict';

const { refuse } = require('./refusals');
const { checkLength } = require('./integers');
const { readReals, writeVector, readDecimal, readBoolean } = require('./encodings');

const MOST_LEVELS = 2147483648; // [HSA-10]

/** [HSA-10] */
function checkLevels(levels) {
  if (!(levels >= 2 && levels <= MOST_LEVELS)) {
    refuse('bad_param', `${levels} levels are not in [2, 2**31] [HSA-10]`);
  }
}

/** [HSA-05] The ends of a range. */
function checkRange(range) {
  checkLength(range.length, 2, 'range');
  const [low, high] = range;
  if (!(low < high && Number.isFinite(low) && Number.isFinite(high) && Number.isFinite(high - low))) {
    refuse('bad_param', `the range ${low}, ${high} is not allowed [HSA-05]`);
  }
}

/** [HSA-07] A number in the range; what is no number is not in reach of any clipping. */
function inRange(x, [low, high], clip) {
  if (x >= low && x <= high) return x;
  if (!clip || Number.isNaN(x)) refuse('out_of_range', `${x} is not in [${low}, ${high}] [HSA-07]`);
  return x < low ? low : high;
}

/** [HSA-09] */
function checkDraw(u) {
  if (!(u >= 0 && u < 1)) refuse('out_of_range', `the draw ${u} is not in [0, 1) [HSA-09]`);
}

/** [HSA-08] The integer above y with the probability of its fraction; y - floor is exact, since y is not negative. */
function quantizeNumber(x, [low, high], levels, u) {
  const y = (levels - 1) * ((x - low) / (high - low));
  const floor = Math.floor(y);
  return y - floor > u ? floor + 1 : floor;
}

/** [HSA-07] [HSA-08] [HSA-09] levelsAt(i): the levels of entry i. */
function quantizeAll(x, range, levelsAt, clip, rounding) {
  checkLength(rounding.length, x.length, 'rounding');
  return Uint32Array.from(x, (entry, i) => {
    checkDraw(rounding[i]);
    return quantizeNumber(inRange(entry, range, clip), range, levelsAt(i), rounding[i]);
  });
}

const operations = {
  'quantize.levels': {
    params: { levels: readDecimal, range: readReals, clip: readBoolean, x: readReals },
    rand: { rounding: readReals },
    run({ levels, range, clip, x }, { rounding }) {
      checkLevels(levels);
      checkRange(range);
      return { value: writeVector(quantizeAll(x, range, () => levels, clip, rounding)) };
    },
  },
};

module.exports = { checkLevels, checkRange, quantizeAll, operations };
