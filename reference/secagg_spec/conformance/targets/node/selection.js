// SPDX-License-Identifier: Apache-2.0
//
// Multi-RoundSecAgg: who is chosen for a round, and what a user lets a server ask (Multi-RoundSecAgg, sections 2, 3
// and 6; adapter, section 4).

'use strict';

const crypto = require('node:crypto');
const { Unsupported, refuse, checkAnswerSize, show } = require('./refusals');
const { checkLength } = require('./integers');
const { checkUserList } = require('./code');
const { checkSessionId, fields, u32 } = require('./crypto');
const {
  readBytes, readInteger, readCount, readSize, readRound, readList, readUsers, readString,
} = require('./encodings');

const LISTED = 1000n; // a family of more sets is not listed (adapter, section 4)
const MOST_FACTORS = 20000; // of a binomial coefficient that is offered
const FREQUENCIES = 4294967296; // [MRA-09]

// ------------------------------------------------------------------------------------------------------------------
// Batches

/** [MRA-01] */
function checkSizes({ N, K, T }) {
  if (!(T >= 1 && T <= K && K <= N && N % T === 0 && K % T === 0)) {
    refuse('bad_param', `not allowed together: N=${N}, K=${K}, T=${T} [MRA-01]`);
  }
}

/** [MRA-17] What it says of N, K, T and c. */
function checkSession(p) {
  checkSizes(p);
  if (!(p.c >= 1 && p.T >= p.c + 2)) refuse('bad_param', `not allowed together: T=${p.T}, c=${p.c} [MRA-17]`);
}

/** The numbers 0 ... count - 1. */
const upTo = (count) => Array.from({ length: count }, (_, i) => i);
const ascending = (numbers) => [...numbers].sort((a, b) => a - b);
const isAscending = (users) => users.every((user, i) => i === 0 || users[i - 1] < user);

/** The users of some batches, ascending. */
function usersOf(batches, T) {
  return ascending(batches).flatMap((b) => upTo(T).map((i) => b * T + i));
}

/** Whether ascending users are all the users of some batches. */
function isUnion(users, T) {
  return users.length % T === 0 && users.every((user, i) => user % T === i % T && user - users[i - (i % T)] === i % T);
}

/** The batches that lack none of some users, ascending. */
function completeBatches(users, T) {
  const found = new Map();
  for (const user of users) {
    const b = Math.floor(user / T);
    found.set(b, (found.get(b) || 0) + 1);
  }
  return ascending([...found.keys()].filter((b) => found.get(b) === T));
}

// ------------------------------------------------------------------------------------------------------------------
// The family

/** How many sets of m of n things there are. */
function binomial(n, m) {
  const factors = Math.min(m, n - m);
  if (factors > MOST_FACTORS) throw new Unsupported('too much work');
  let count = 1n;
  for (let i = 1; i <= factors; i += 1) count = (count * BigInt(n - factors + i)) / BigInt(i);
  return count;
}

/** The sets of m of n numbers, in lexicographic order. */
function* setsOf(n, m) {
  const set = upTo(m);
  for (;;) {
    yield [...set];
    let at = m - 1;
    while (at >= 0 && set[at] === n - m + at) at -= 1;
    if (at < 0) return;
    set[at] += 1;
    for (let i = at + 1; i < m; i += 1) set[i] = set[i - 1] + 1;
  }
}

/** [MRA-02] All sets of the family, of which there are few. */
function familyOf({ N, K, T }, size) {
  checkAnswerSize(Number(size) * K * String(N).length);
  return [...setsOf(N / T, K / T)].map((batches) => usersOf(batches, T));
}

/** [MRA-20] Why users, as a list, are no set of the family; null when they are one. */
function faultOfChoice(users, { N, K, T }) {
  if (users.length !== K) return `${users.length} users, not ${K}`;
  const outside = users.find((user) => !(user >= 0 && user < N));
  if (outside !== undefined) return `user ${outside} is not in [0, ${N})`;
  if (!isAscending(users)) return 'the users do not ascend';
  return isUnion(users, T) ? null : `not a union of batches of ${T} users`;
}

function checkChoice(users, numbers) {
  const fault = faultOfChoice(users, numbers);
  if (fault !== null) refuse('inconsistent_sets', `chosen: ${fault} [MRA-20]`);
}

// ------------------------------------------------------------------------------------------------------------------
// Choosing

/** Given draws, each asked for by its bound, and none left at the end. [MRA-08] */
class GivenDraws {
  constructor(draws) {
    this.draws = draws;
    this.taken = 0;
  }

  below(bound) {
    if (this.taken === this.draws.length) {
      refuse('length_mismatch', `draws: ${this.taken} are fewer than the choice takes [MRA-08]`);
    }
    const draw = this.draws[this.taken];
    if (!(draw >= 0 && draw < bound)) {
      refuse('out_of_range', `draws[${this.taken}] = ${draw} is not in [0, ${bound}) [MRA-08]`);
    }
    this.taken += 1;
    return draw;
  }

  end() {
    if (this.taken < this.draws.length) {
      refuse('length_mismatch', `draws: ${this.draws.length}, and the choice takes ${this.taken} [MRA-08]`);
    }
  }
}

/** Draws of its own, uniform and independent. [MRA-07] */
const OWN_DRAWS = { below: (bound) => crypto.randomInt(bound), end() {} };

/** m of some items, which stand in ascending order. */
function draw(items, m, draws) {
  const places = [...items];
  for (let s = 0; s < m; s += 1) {
    const other = s + draws.below(places.length - s);
    [places[s], places[other]] = [places[other], places[s]];
  }
  return places.slice(0, m);
}

const leastOf = (numbers) => numbers.reduce((least, number) => Math.min(least, number), Infinity);

/** The items of the least value. */
function ofLeast(items, valueOf) {
  const least = leastOf(items.map(valueOf));
  return items.filter((item) => valueOf(item) === least);
}

/** Batches of one frequency after the other, the least one first. */
function byFrequency(batches, frequencyOf) {
  const groups = new Map();
  for (const batch of batches) {
    const frequency = frequencyOf(batch);
    if (!groups.has(frequency)) groups.set(frequency, []);
    groups.get(frequency).push(batch);
  }
  return ascending(groups.keys()).map((frequency) => groups.get(frequency));
}

/** All complete batches of a frequency while they fit, then some of those of the next. */
function chooseLeast(complete, count, frequencyOf, draws) {
  let chosen = [];
  for (const group of byFrequency(complete, frequencyOf)) {
    if (chosen.length + group.length > count) return [...chosen, ...draw(group, count - chosen.length, draws)];
    chosen = chosen.concat(group);
  }
  return chosen;
}

/** One of the complete batches of the least frequency, then some of the others. */
function chooseFair(complete, count, frequencyOf, draws) {
  const [first] = draw(ofLeast(complete, frequencyOf), 1, draws);
  return [first, ...draw(complete.filter((b) => b !== first), count - 1, draws)];
}

const chooseUniform = (complete, count, _, draws) => draw(complete, count, draws);

/** name -> { fits, choose }: which T a strategy is for, and how it chooses of enough complete batches. */
const STRATEGIES = new Map([
  ['random', { fits: ({ T }) => T === 1, choose: chooseUniform }],
  ['weighted', { fits: ({ T }) => T === 1, choose: chooseLeast }], // a batch is a user
  ['partition', { fits: ({ T, K }) => T === K, choose: chooseFair }],
  ['uniform', { fits: () => true, choose: chooseUniform }],
  ['fair', { fits: () => true, choose: chooseFair }],
  ['least', { fits: () => true, choose: chooseLeast }],
]);

/** [ADP-40] [MRA-09] */
function strategyOf({ strategy: name, ...numbers }) {
  const strategy = STRATEGIES.get(name);
  if (strategy === undefined) refuse('bad_param', `no such strategy: ${show(name)} [ADP-40]`);
  if (!strategy.fits(numbers)) refuse('bad_param', `T = ${numbers.T} does not fit the strategy ${name} [MRA-09]`);
  return strategy;
}

/** [MRA-09] */
function checkFrequencies(frequencies, N) {
  checkLength(frequencies.length, N, 'frequencies');
  const at = frequencies.findIndex((frequency) => !(frequency >= 0 && frequency < FREQUENCIES));
  if (at >= 0) refuse('out_of_range', `frequencies[${at}] = ${frequencies[at]} is not in [0, 2**32) [MRA-09]`);
}

/** [MRA-05] The users chosen, ascending, or null when there is no round [MRA-04]. */
function choose(p, draws) {
  const { N, K, T, frequencies, available } = p;
  checkSizes(p);
  const strategy = strategyOf(p);
  checkFrequencies(frequencies, N);
  checkUserList(available, N, 'available');
  const complete = completeBatches(available, T);
  const frequencyOf = (b) => leastOf(frequencies.slice(b * T, (b + 1) * T));
  const chosen = complete.length < K / T ? null : usersOf(strategy.choose(complete, K / T, frequencyOf, draws), T);
  draws.end();
  return chosen;
}

// ------------------------------------------------------------------------------------------------------------------
// A session

/** [MRA-19] */
function sessionOfRound({ N, K, T, session, round, chosen }) {
  const numbers = [round, N, K, T, ...chosen].map(u32);
  const bound = fields([Buffer.from('secagg-spec', 'ascii'), Buffer.from('multi-round', 'ascii'), session, ...numbers]);
  return crypto.createHash('sha256').update(bound).digest().subarray(0, 16);
}

/** [MRA-21] Survivors, by their numbers in the round, of whom the user is one. */
function checkSurvivors(survivors, number, { K, T }) {
  const wrong = (text) => refuse('inconsistent_sets', `survivors: ${text} [MRA-21]`);
  const outside = survivors.find((user) => !(user >= 0 && user < K));
  if (outside !== undefined) wrong(`user ${outside} is not in [0, ${K})`);
  if (!isAscending(survivors)) wrong('the users do not ascend');
  if (!survivors.includes(number)) wrong(`user ${number} is not among them`);
  if (!isUnion(survivors, T)) wrong(`not a union of batches of ${T} users`);
}

// ------------------------------------------------------------------------------------------------------------------
// Operations

// An adapter started with this argument draws on its own, and takes no draws; else all draws are given.
const DRAWS_ITSELF = process.argv.includes('--draw');
const readIntegers = (value, name) => readList(value, name, readInteger);
const SIZES = { N: readCount, K: readCount, T: readCount };

const operations = {
  'select.family': {
    params: SIZES,
    rand: {},
    run(p) {
      checkSizes(p);
      const size = binomial(p.N / p.T, p.K / p.T);
      return { size: String(size), sets: size > LISTED ? null : familyOf(p, size) };
    },
  },
  'select.batch': {
    params: { ...SIZES, strategy: readString, frequencies: readIntegers, available: readUsers },
    rand: DRAWS_ITSELF ? {} : { draws: readIntegers },
    run(p, { draws }) {
      return { chosen: choose(p, DRAWS_ITSELF ? OWN_DRAWS : new GivenDraws(draws)) };
    },
    declared: DRAWS_ITSELF ? { randomness: 'none' } : {},
  },
  'select.session': {
    params: { ...SIZES, session: readBytes, round: readRound, chosen: readUsers },
    rand: {},
    run(p) {
      checkSizes(p);
      checkSessionId(p.session);
      checkChoice(p.chosen, p);
      return { session: sessionOfRound(p).toString('hex') };
    },
  },
  'select.complete': {
    params: { ...SIZES, c: readCount, arrived: readUsers },
    rand: {},
    run(p) {
      checkSession(p);
      checkUserList(p.arrived, p.K, 'arrived');
      return { survivors: usersOf(completeBatches(p.arrived, p.T), p.T) }; // [MRA-18]
    },
  },
  'select.request': {
    params: { ...SIZES, c: readCount, user: readSize, chosen: readUsers, survivors: readUsers },
    rand: {},
    run(p) {
      checkSession(p);
      checkUserList([p.user], p.N, 'user');
      checkChoice(p.chosen, p);
      const number = p.chosen.indexOf(p.user);
      if (number < 0) refuse('inconsistent_sets', `chosen: user ${p.user} is not among them [MRA-20]`);
      checkSurvivors(p.survivors, number, p);
      return {};
    },
  },
};

module.exports = { operations };
