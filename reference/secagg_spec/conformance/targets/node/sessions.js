// SPDX-License-Identifier: Apache-2.0
//
// Sessions: parties that are kept between requests (adapter, section 4).

'use strict';

const { Unsupported, refuse, show } = require('./refusals');
const {
  readBytes, readVector, writeVector, readSize, readCount, readDecimal, readRound, readList, readUsers, readString,
  isObject, readMembers,
} = require('./encodings');
const { ELEMENT, readElement } = require('./shamir');
const { readKeys } = require('./crypto');
const { readSteps, refusalOf } = require('./scripts');
const lightsecagg = require('./scripts');
const active = require('./active');
const secagg = require('./secagg');
const secaggActive = require('./secagg_active');
const basecagg = require('./basecagg_parties');
const basecaggActive = require('./basecagg_active');
const basa = require('./basa_parties');
const heterosag = require('./heterosag');

/** Numbers of 66 bytes each, one after the other. */
function readElements(value, name) {
  const bytes = readBytes(value, name);
  const count = Math.ceil(bytes.length / ELEMENT);
  return Array.from({ length: count }, (_, i) => readElement(bytes.subarray(ELEMENT * i, ELEMENT * (i + 1)), name));
}

// ------------------------------------------------------------------------------------------------------------------
// The parties: what each is given, what it samples, and how it starts. A party takes steps by `step(phase, inbox)`.

const LIGHT = { q: readDecimal, N: readCount, D: readCount, U: readCount, T: readCount, d: readCount };

/** A party of a protocol that has scripts. */
function scripted({ parties, advance }, role) {
  const { setup, rand, steps, start } = parties[role];
  const open = (p, sampled) => {
    let party = start(p, sampled);
    const step = (phase, inbox) => {
      const [entry, next] = advance(steps, party, { phase, inbox });
      party = next;
      return entry;
    };
    return { phases: Object.keys(steps), step };
  };
  return { setup, rand, open };
}

/** A party of SecAgg or HeteroSAg, as its module makes it; phases: the names of its steps. */
function ofSecAgg(start, setup, rand, phases = secagg.PHASES) {
  const open = (p, sampled) => {
    const party = start(p, sampled);
    const step = (phase, inbox) => {
      const { outbox, aggregate } = party.step(phase, inbox);
      const shown = aggregate === undefined ? {} : { aggregate: writeVector(aggregate) };
      return { outbox: outbox.map((bytes) => bytes.toString('hex')), ...shown };
    };
    return { phases, step, past: () => party.past() };
  };
  return { setup, rand, open, phases };
}

const PARTIES = {
  'lightsecagg.user': { numbers: LIGHT, ...scripted(lightsecagg, 'user') },
  'lightsecagg.server': { numbers: LIGHT, ...scripted(lightsecagg, 'server') },
  'lightsecagg-active.user': { numbers: { ...LIGHT, W: readCount }, ...scripted(active, 'user') },
  'lightsecagg-active.server': { numbers: { ...LIGHT, W: readCount }, ...scripted(active, 'server') },
};
PARTIES['basecagg.user'] = { numbers: basecagg.NUMBERS, ...scripted(basecagg, 'user') };
PARTIES['basecagg.server'] = { numbers: basecagg.NUMBERS, ...scripted(basecagg, 'server') };
for (const role of ['user', 'server']) {
  PARTIES[`basecagg-active.${role}`] = { numbers: basecaggActive.NUMBERS, ...scripted(basecaggActive, role) };
}
for (const role of ['user', 'server', 'authority']) {
  PARTIES[`basa.${role}`] = { numbers: basa.NUMBERS, ...scripted(basa, role) };
}
const SECAGG = {
  R: readDecimal, N: readCount, D: readCount, T: readCount, t: readCount, k: readCount, d: readCount,
};
const SAMPLED = {
  sealing_key: readBytes, masking_key: readBytes, self_seed: readBytes,
  key_coefficients: readElements, seed_coefficients: readElements,
};
const readPast = (value, name) => readList(value, name, readUsers);
PARTIES['secagg.user'] = {
  numbers: SECAGG,
  ...ofSecAgg(secagg.newUser, { user: readSize, order: readUsers, update: readVector }, SAMPLED),
};
PARTIES['secagg.server'] = { numbers: SECAGG, ...ofSecAgg(secagg.newServer, { order: readUsers }, {}) };
PARTIES['secagg-active.user'] = {
  numbers: SECAGG,
  ...ofSecAgg(
    secaggActive.newUser, { user: readSize, signing: readBytes, verification: readKeys, update: readVector }, SAMPLED,
    secaggActive.PHASES,
  ),
};
PARTIES['secagg-active.server'] = {
  numbers: SECAGG, ...ofSecAgg(secaggActive.newServer, { verification: readKeys }, {}, secaggActive.PHASES),
};
PARTIES['heterosag.user'] = {
  numbers: heterosag.NUMBERS,
  ...ofSecAgg(heterosag.newUser, { user: readSize, past: readPast, update: readVector }, SAMPLED),
};
PARTIES['heterosag.server'] = { numbers: heterosag.NUMBERS, ...ofSecAgg(heterosag.newServer, { past: readPast }, {}) };

/** The script of a party of SecAgg or HeteroSAg: the steps of one session, in one request. */
function scriptOfSecAgg({ numbers, setup, rand, open: start, phases }) {
  return {
    params: { ...numbers, session: readBytes, round: readRound, ...setup, steps: readSteps(phases) },
    rand,
    run(p, sampled) {
      const party = start(p, sampled);
      return { steps: p.steps.map(({ phase, inbox }) => entryOf(() => party.step(phase, inbox))) };
    },
  };
}

/** The entry of a step: what it gives, or how it is refused. */
function entryOf(step) {
  try {
    return step();
  } catch (problem) {
    return refusalOf(problem);
  }
}

// ------------------------------------------------------------------------------------------------------------------
// Operations

/** handle -> the party, the names of its phases, its name, and what it was given in its last round. */
const open = new Map();

/** What a party is not given again in a later round: the same user, and what it remembers. */
const REMEMBERED = ['user', 'past'];
/** [ADP-52] */
const WITHOUT_ROUNDS = ['basecagg', 'basa.'];

/** [ADP-27] */
function partyOf({ protocol, role }) {
  const name = `${protocol}.${role}`;
  if (!Object.hasOwn(PARTIES, name)) refuse('bad_param', `no party ${show(name)} [ADP-27]`);
  return PARTIES[name];
}

/** [ADP-23] */
function sessionOf(handle) {
  if (!open.has(handle)) refuse('bad_param', `no session ${show(handle)} is open [ADP-23]`);
  return open.get(handle);
}

/** [ADP-51] [ADP-52] The open session of a party that goes on from round to round. */
function goingOn(handle) {
  const session = sessionOf(handle);
  if (WITHOUT_ROUNDS.some((start) => session.name.startsWith(start))) throw new Unsupported('it has no rounds');
  return session;
}

function readObject(value, name) {
  if (!isObject(value)) refuse('malformed', `${name} is not an object`);
  return value;
}

const operations = {
  'secagg.user': scriptOfSecAgg(PARTIES['secagg.user']),
  'secagg.server': scriptOfSecAgg(PARTIES['secagg.server']),
  'secagg_active.user': scriptOfSecAgg(PARTIES['secagg-active.user']),
  'secagg_active.server': scriptOfSecAgg(PARTIES['secagg-active.server']),
  'heterosag.user': scriptOfSecAgg(PARTIES['heterosag.user']),
  'heterosag.server': scriptOfSecAgg(PARTIES['heterosag.server']),
  'session.new': {
    declared: { parties: Object.keys(PARTIES) },
    params: {
      handle: readString, protocol: readString, role: readString, numbers: readObject, session: readBytes,
      round: readRound, setup: readObject,
    },
    rand: (params) => partyOf(params).rand,
    run(params, rand) {
      const { handle, session, round } = params;
      const { numbers, setup, open: start } = partyOf(params);
      const given = { ...readMembers(params.numbers, 'numbers', numbers), ...readMembers(params.setup, 'setup', setup) };
      if (open.has(handle)) refuse('duplicate_id', `the session ${show(handle)} is open [ADP-22]`);
      const all = { ...given, session, round };
      open.set(handle, { ...start(all, rand), name: `${params.protocol}.${params.role}`, given: all });
      return {};
    },
  },
  'session.again': {
    params: { handle: readString, round: readRound, setup: readObject },
    rand: ({ handle }) => PARTIES[goingOn(handle).name].rand,
    run({ handle, round, setup }, rand) {
      const session = goingOn(handle);
      const { name, given, past } = session;
      const again = Object.entries(PARTIES[name].setup).filter(([member]) => !REMEMBERED.includes(member));
      const anew = readMembers(setup, 'setup', Object.fromEntries(again)); // [ADP-53]
      if (round <= given.round) {
        refuse('bad_param', `round ${round} is not above ${given.round}, the last one [SES-01]`);
      }
      if (name === 'lightsecagg-active.user' && anew.roster[given.user].equals(given.roster[given.user])) {
        refuse('bad_param', 'the sealing key is that of the round before [LSA-35]');
      }
      const all = { ...given, ...anew, round };
      if (given.past !== undefined) all.past = past(); // [HSA-27] [HSA-28]
      open.set(handle, { ...PARTIES[name].open(all, rand), name, given: all });
      return {};
    },
  },
  'session.step': {
    params: { handle: readString, phase: readString, inbox: (list, name) => readList(list, name, readBytes) },
    rand: {},
    run({ handle, phase, inbox }) {
      const { phases, step } = sessionOf(handle);
      if (!phases.includes(phase)) refuse('bad_param', `no phase ${show(phase)} [ADP-27]`);
      return step(phase, inbox);
    },
  },
  'session.free': {
    params: { handle: readString },
    rand: {},
    run({ handle }) {
      sessionOf(handle);
      open.delete(handle);
      return {};
    },
  },
};

module.exports = { operations };
