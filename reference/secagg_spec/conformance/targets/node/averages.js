// SPDX-License-Identifier: Apache-2.0
//
// From the sums of cells to an aggregate (HeteroSAg, section 7).

'use strict';

const { refuse, show } = require('./refusals');
const { checkLength } = require('./integers');
const { checkLevels, checkRange } = require('./levels');
const {
  readReals, writeReals, readInteger, readCount, readList, readVectors, readString,
} = require('./encodings');

/** [HSA-23] The mean of one coordinate in one cell; nothing in it is larger in magnitude than both ends of the range. */
function cellMean([low, high], { levels, count }, total) {
  return low + (high - low) * (total / (count * (levels - 1)));
}

/** [HSA-24] */
function weightedMean(means, counts) {
  const total = counts.reduce((all, count) => all + count, 0);
  return means.reduce((all, mean, i) => all + mean * (counts[i] / total), 0);
}

const ascendingNumbers = (numbers) => [...numbers].sort((a, b) => a - b);
const plainMean = (numbers) => weightedMean(numbers, numbers.map(() => 1));

/** [HSA-25] */
function median(means) {
  const sorted = ascendingNumbers(means);
  const middle = Math.floor(sorted.length / 2);
  return plainMean(sorted.slice(sorted.length % 2 === 1 ? middle : middle - 1, middle + 1));
}

/** [HSA-26] */
function trimmedMean(means, trim) {
  return plainMean(ascendingNumbers(means).slice(trim, means.length - trim));
}

/** Method -> how it makes a coordinate from the means of the cells, their numbers of survivors, and b. */
const METHODS = {
  mean: weightedMean,
  median: (means) => median(means),
  trimmed: (means, counts, trim) => trimmedMean(means, trim),
};

/** [ADP-39] */
function checkMethod(method, trim) {
  if (!Object.hasOwn(METHODS, method)) refuse('bad_param', `no method ${show(method)} [ADP-39]`);
  if (trim < 0 || (trim > 0 && method !== 'trimmed')) {
    refuse('bad_param', `trim = ${trim} with the method ${method} [ADP-39] [HSA-26]`);
  }
}

/** [HSA-26] */
function checkTrim(trim, cells) {
  if (!(2 * trim < cells)) refuse('bad_param', `twice the trim ${trim} is not below ${cells} cells [HSA-26]`);
}

/** A factor that takes numbers of magnitude below 1 far above those that binary64 holds with fewer digits; it is exact. */
function liftOf(range) {
  return Math.max(...range.map(Math.abs)) < 1 ? 2 ** 500 : 1;
}

/** A row of an aggregate; cells: list of { levels, count, sum }. No mean is outside the range but by rounding. */
function averageRow(range, cells, method, trim) {
  checkTrim(trim, cells.length);
  const lift = liftOf(range);
  const [low, high] = range.map((end) => end * lift);
  const counts = cells.map(({ count }) => count);
  return Float64Array.from(cells[0].sum, (_, i) => {
    const means = cells.map((cell) => cellMean([low, high], cell, cell.sum[i]));
    return Math.min(Math.max(METHODS[method](means, counts, trim), low), high) / lift;
  });
}

/** [HSA-10] [HSA-20] */
function checkCell({ levels, count, sum }, length) {
  checkLevels(levels);
  if (count < 1) refuse('bad_param', `a cell of ${count} survivors`);
  checkLength(sum.length, length, 'a sum');
  const most = count * (levels - 1);
  const wrong = sum.find((element) => element > most);
  if (wrong !== undefined) refuse('out_of_range', `a sum holds ${wrong}, above ${most} [HSA-20]`);
}

const operations = {
  'heterosag.average': {
    params: {
      range: readReals, levels: (list, name) => readList(list, name, readInteger),
      counts: (list, name) => readList(list, name, readCount), sums: readVectors, method: readString, trim: readCount,
    },
    rand: {},
    run({ range, levels, counts, sums, method, trim }) {
      checkRange(range);
      checkMethod(method, trim);
      if (sums.length === 0) refuse('bad_param', 'a row without cells');
      checkLength(levels.length, sums.length, 'levels');
      checkLength(counts.length, sums.length, 'counts');
      const cells = sums.map((sum, i) => ({ levels: levels[i], count: counts[i], sum }));
      for (const cell of cells) checkCell(cell, sums[0].length);
      return { segment: writeReals(averageRow(range, cells, method, trim), 'binary64') };
    },
  },
};

module.exports = { checkMethod, averageRow, operations };
