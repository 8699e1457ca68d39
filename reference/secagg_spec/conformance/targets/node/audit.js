// SPDX-License-Identifier: Apache-2.0
//
// What a log of rounds tells (Multi-RoundSecAgg, section 4; adapter, section 4).
//
// Users of a class are in the same sets, so that combinations are taken of classes instead: a log is a matrix with a
// row for each round and a column for each class. Everything is exact: BigInts, and Numbers where they are exact.

'use strict';

const { Unsupported, refuse } = require('./refusals');
const { checkUserList } = require('./code');
const { readCount, readList, readUsers } = require('./encodings');

const SEARCHED = 16; // classes of which the weak privacy is found; 12 would do [MRA-14]
const MOST_WORK = 1.5e7; // products of BigInts that are offered; those of a round that tells nothing new are fewer

function gcd(a, b) {
  let [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}

/** a/b in lowest terms, as an answer has it. */
function fraction(a, b) {
  const common = b < 0n ? -gcd(a, b) : gcd(a, b);
  return [String(a / common), String(b / common)];
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const least = (numbers) => numbers.reduce((a, b) => Math.min(a, b), Infinity);
const greatest = (numbers) => numbers.reduce((a, b) => Math.max(a, b), 0);

// ------------------------------------------------------------------------------------------------------------------
// Classes

/** user -> the rounds in whose sets the user is, ascending; users of no set are not in it. */
function roundsByUser(sets) {
  const rounds = new Map();
  sets.forEach((users, t) => {
    for (const user of users) {
      if (!rounds.has(user)) rounds.set(user, []);
      rounds.get(user).push(t);
    }
  });
  return rounds;
}

/** The classes of a log: the users of each, and the rounds that they are in. */
function classesOf(rounds) {
  const classes = new Map();
  for (const [user, held] of rounds) {
    const key = held.join();
    if (!classes.has(key)) classes.set(key, { users: [], rounds: held });
    classes.get(key).users.push(user);
  }
  return [...classes.values()];
}

/** A row for each round. */
function matrixOf(classes, J) {
  const rows = Array.from({ length: J }, () => new Array(classes.length).fill(0n));
  classes.forEach(({ rounds }, c) => rounds.forEach((t) => { rows[t][c] = 1n; }));
  return rows;
}

// ------------------------------------------------------------------------------------------------------------------
// Combinations

/**
 * The combinations of the rounds so far: the rows of a matrix in reduced echelon form, each times `scale`, and for each
 * of them how it is combined of the rounds of `rounds`. All entries are minors of the log, so that divisions are exact.
 */
class Combinations {
  constructor(columns) {
    this.columns = columns;
    this.scale = 1n;
    this.rounds = []; // those that are no combination of the ones before
    this.rows = []; // { entries: by column, then by place in rounds; pivot }
  }

  /** A further round; whether it tells anything new. */
  add(row, t) {
    if (this.rows.length === this.columns) return false;
    const width = this.columns + this.rounds.length + 1;
    for (const { entries } of this.rows) entries.push(0n);
    const entries = [...row, ...new Array(width - this.columns).fill(0n)].map((entry) => entry * this.scale);
    entries[width - 1] = this.scale;
    for (const { entries: other, pivot } of this.rows) {
      if (row[pivot] !== 0n) for (let c = 0; c < width; c += 1) entries[c] -= row[pivot] * other[c];
    }
    const pivot = entries.findIndex((entry, c) => c < this.columns && entry !== 0n);
    if (pivot < 0) for (const { entries: other } of this.rows) other.pop();
    else this.insert({ entries, pivot }, t);
    return pivot >= 0;
  }

  insert(added, t) {
    const by = added.entries[added.pivot];
    for (const { entries } of this.rows) {
      const from = entries[added.pivot];
      for (let c = 0; c < entries.length; c += 1) {
        entries[c] = (entries[c] * by - added.entries[c] * from) / this.scale;
      }
    }
    this.rows.push(added);
    this.rounds.push(t);
    this.scale = by;
  }

  /** The rows that are 0 but at their pivots. */
  units() {
    const isUnit = ({ entries, pivot }) => entries.every((x, c) => x === 0n || c === pivot || c >= this.columns);
    return this.rows.filter(isUnit);
  }

  /** How a row is combined of rounds. */
  combinationOf({ entries }) {
    const shares = this.rounds.map((t, i) => [t, entries[this.columns + i]]);
    return shares.filter(([, share]) => share !== 0n).map(([t, share]) => [t, fraction(share, this.scale)]);
  }

  /** The rows without a common factor. */
  primitive() {
    return this.rows.map(({ entries }) => {
      const row = entries.slice(0, this.columns);
      const common = row.reduce(gcd, 0n);
      return row.map((entry) => entry / common);
    });
  }
}

/** What would take a machine too long is not offered. */
function checkWork(J, columns) {
  const rank = Math.min(J, columns);
  if ((rank + J / 10) * rank * (columns + rank) > MOST_WORK) throw new Unsupported('too much work');
}

/** [MRA-10] [MRA-11] The combinations of a log, and class -> { round, combination } of those that can be had alone. */
function combine(matrix, columns) {
  const combinations = new Combinations(columns);
  const alone = new Map();
  matrix.forEach((row, t) => {
    if (!combinations.add(row, t)) return;
    for (const unit of combinations.units().filter(({ pivot }) => !alone.has(pivot))) {
      alone.set(unit.pivot, { round: t + 1, combination: combinations.combinationOf(unit) });
    }
  });
  return { combinations, alone };
}

/** A class of one user is this user. */
function recoverableUsers(classes, alone) {
  const single = [...alone].filter(([c]) => classes[c].users.length === 1);
  return single.map(([c, found]) => ({ user: classes[c].users[0], ...found })).sort((a, b) => a.user - b.user);
}

// ------------------------------------------------------------------------------------------------------------------
// Weak privacy
//
// A combination of least weight is, up to a factor, the only one that is 0 where it is. So it is found by asking of one
// class after the other whether it is 0 there. `space` is a basis in reduced echelon form of the combinations that are
// left, each row without a common factor: its entries are minors of a 0/1 matrix over their common factor. Those of
// 16 columns are below 2**19 (Hadamard), and products of two are exact.

const weightOf = (entries, sizes) => sum(entries.map((entry, c) => (Number(entry) === 0 ? 0 : sizes[c])));

function gcdOfNumbers(a, b) {
  let [x, y] = [Math.abs(a), Math.abs(b)];
  while (y !== 0) [x, y] = [y, x % y];
  return x;
}

function withoutFactor(entries) {
  const common = entries.reduce(gcdOfNumbers, 0);
  return common === 1 ? entries : entries.map((entry) => entry / common);
}

/** The combinations of a space that are 0 in a class, where not all are. */
function zeroAt(space, c) {
  const used = space.find((row) => row[c] !== 0);
  return space.filter((row) => row !== used).map((row) => (
    row[c] === 0 ? row : withoutFactor(row.map((entry, i) => entry * used[c] - used[i] * row[c]))
  ));
}

/** The least weight in a space, or `best` if that is less; `kept` is the weight of classes that shall not be 0. */
function search(space, sizes, c, kept, best) {
  if (space.length === 1) return Math.min(best, weightOf(space[0], sizes));
  if (kept >= best || c === sizes.length) return best;
  if (space.every((row) => row[c] === 0)) return search(space, sizes, c + 1, kept, best);
  const found = search(zeroAt(space, c), sizes, c + 1, kept, best);
  return search(space, sizes, c + 1, kept + sizes[c], found);
}

/** Two numbers, with the weak privacy between them; it is not above the weight of a set or row. [MRA-13] [MRA-14] */
function weakPrivacy(combinations, classes, sets, strong) {
  const order = classes.map((_, c) => c).sort((a, b) => classes[b].users.length - classes[a].users.length);
  const sizes = order.map((c) => classes[c].users.length);
  const rows = combinations.primitive().map((row) => order.map((c) => row[c]));
  const weights = [...rows.map((row) => weightOf(row, sizes)), ...sets.map((users) => users.length)];
  const lightest = rows.length === 0 ? 0 : least(weights.filter((weight) => weight > 0));
  if (lightest === strong || sizes.length > SEARCHED) return [strong, lightest];
  const found = search(rows.map((row) => row.map(Number)), sizes, 0, 0, lightest);
  return [found, found];
}

// ------------------------------------------------------------------------------------------------------------------
// The audit

/** [MRA-15] and the order of a set's users. */
function checkLog(sets, N) {
  if (N < 1) refuse('bad_param', `N = ${N} is below 1 [MRA-01]`);
  sets.forEach((users, t) => {
    checkUserList(users, N, `rounds[${t}]`);
    const at = users.findIndex((user, i) => i > 0 && user < users[i - 1]);
    if (at >= 0) refuse('inconsistent_sets', `rounds[${t}]: user ${users[at]} comes after user ${users[at - 1]}`);
  });
}

/** [MRA-16] a/J, and 0 for no rounds. */
const ofRounds = (a, J) => (J === 0 ? fraction(0n, 1n) : fraction(BigInt(a), BigInt(J)));

/** [MRA-16] The difference of how often users were in the sum. */
function gapOf(rounds, N) {
  const counts = [...rounds.values()].map((held) => held.length);
  return greatest(counts) - (rounds.size < N ? 0 : least(counts));
}

function audit({ N, rounds: sets }) {
  checkLog(sets, N);
  const J = sets.length;
  const rounds = roundsByUser(sets);
  const classes = classesOf(rounds);
  checkWork(J, classes.length);
  const { combinations, alone } = combine(matrixOf(classes, J), classes.length);
  const strong = classes.length === 0 ? 0 : least(classes.map(({ users }) => users.length)); // [MRA-12]
  return {
    recoverable: recoverableUsers(classes, alone),
    strong,
    weak: weakPrivacy(combinations, classes, sets, strong),
    gap: ofRounds(gapOf(rounds, N), J),
    cardinality: ofRounds(sum(sets.map((users) => users.length)), J),
  };
}

const operations = {
  'audit.privacy': {
    params: { N: readCount, rounds: (value, name) => readList(value, name, readUsers) },
    rand: {},
    run: audit,
  },
};

module.exports = { operations };
