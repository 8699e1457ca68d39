// SPDX-License-Identifier: Apache-2.0
//
// The parties of BASecAgg, step by step: scripts, sessions, and rounds of all of them (BASecAgg, sections 3 to 5;
// adapter, section 4).
//
// A party is a plain object that is never changed: a step makes the next one, or refuses and makes none [ERR-01].

'use strict';

const { SERVER, checkAnswerSize, refuse } = require('./refusals');
const { checkLength, checkVector } = require('./integers');
const { shareLength, checkWork, encode, checkUserList } = require('./code');
const { KINDS, checkDraw, weightOf } = require('./staleness');
const { NUMBERS, checkParameters, maskUpdate, checkBuffer, weighted, recoverWeighted } = require('./basecagg');
const { SealedChannel, checkSessionId, hashNumbers } = require('./crypto');
const { readEntries, writeEntries } = require('./messages');
const {
  plainChannel, message, readOfSession, checkRound, oneOfEach, blaming, perform, readChannel, scriptOf,
} = require('./scripts');
const {
  readBytes, readReals, writeVector, readSize, readRound, readList, readInteger, readUsers, readVectors,
  isObject, readMembers,
} = require('./encodings');

const MODEL_REQUEST = 769;
const MODEL_STAMP = 770;
const STAMPED_SHARE = 771;
const STAMPED_UPDATE = 772;
const BUFFERED_SET = 773;
const WEIGHTED_SHARE = 774;
const PROTOCOL = 'basecagg';
const LAST_ROUND = 2 ** 32 - 1;

/** The messages of a step, of one type, at most one of each of some senders. */
function readStep(party, inbox, type, senders) {
  return oneOfEach(party, readOfSession(party, inbox, [type]), senders);
}

function checkEmpty(inbox, phase) {
  if (inbox.length > 0) refuse('wrong_phase', `the step ${phase} receives nothing [MSG-03]`);
}

function checkStatus(party, wanted, phase) {
  if (![wanted].flat().includes(party.status)) {
    refuse('wrong_phase', `the step ${phase} of a party that is ${party.status}`);
  }
}

/** The first of what is left of sampled values or updates, and the others. */
function next(list, name) {
  if (list.length === 0) refuse('bad_param', `nothing is left of ${name}`);
  return [list[0], list.slice(1)];
}

/** A Map with one more entry. */
function withEntry(map, key, value) {
  return new Map(map).set(key, value);
}

// ------------------------------------------------------------------------------------------------------------------
// A user
//
// status: idle, asked or training; round: the latest one that it knows of; stamp, answered: its own stamp and the last
// round that it answered, or -1; held: user -> stamp and share; seen: user -> the newest stamp.

/** The one message that a step receives from the server. */
function readFromServer(user, inbox, type) {
  const [received] = readStep(user, inbox, type, (sender) => sender === SERVER);
  if (received === undefined) refuse('wrong_phase', `no message of type ${type} was received`);
  return received;
}

/** [BSA-26] */
function checkBufferRound(user, round) {
  if (round <= user.answered) {
    refuse('replay', `a buffer of round ${round}, and round ${user.answered} was answered [BSA-26]`);
  }
  if (round < user.stamp) refuse('wrong_phase', `a buffer of round ${round} before the stamp ${user.stamp} [BSA-26]`);
}

const userSteps = {
  request(user, inbox) {
    checkStatus(user, ['idle', 'asked'], 'request');
    checkEmpty(inbox, 'request');
    return [{ status: 'asked' }, [message(user, MODEL_REQUEST, SERVER, {})]];
  },

  /** [BSA-08] */
  share(user, inbox) {
    checkStatus(user, 'asked', 'share');
    const { round: stamp } = readFromServer(user, inbox, MODEL_STAMP);
    if (stamp <= user.stamp) {
      refuse('replay', `the stamp ${stamp} is not newer than ${user.stamp} [BSA-08]`, [SERVER]);
    }
    const { q, N, U, T } = user.parameters;
    const [mask, masks] = next(user.masks, 'masks');
    const [noise, noises] = next(user.noises, 'noises');
    const shares = encode(q, N, U, T, mask, noise);
    const channel = user.channelOf(stamp);
    const others = Array.from({ length: N }, (_, j) => j).filter((j) => j !== user.index);
    const outbox = others.map((j) => {
      const payload = channel.close(user.index, j, writeEntries(shares[j]));
      return message(user, STAMPED_SHARE, j, { round: stamp, payload });
    });
    const changes = {
      status: 'training', stamp, round: Math.max(user.round, stamp), mask, masks, noises,
      held: withEntry(user.held, user.index, { stamp, share: shares[user.index] }),
    };
    return [changes, outbox];
  },

  /** [BSA-09] [BSA-10] */
  hold(user, inbox) {
    const { q, N, U, T, d } = user.parameters;
    const [held, seen] = [new Map(user.held), new Map(user.seen)];
    for (const one of readStep(user, inbox, STAMPED_SHARE, (i) => i < N && i !== user.index)) {
      const { round: stamp, sender, payload } = one;
      if (seen.has(sender) && stamp <= seen.get(sender)) {
        refuse('replay', `a share of user ${sender} of round ${stamp}, not after ${seen.get(sender)} [BSA-09]`,
          [sender, SERVER]);
      }
      const share = readEntries(user.channelOf(stamp).open(sender, user.index, payload));
      checkVector(share, shareLength(d, U, T), q, `the share of user ${sender}`);
      held.set(sender, { stamp, share });
      seen.set(sender, stamp);
    }
    return [{ held, seen }, []];
  },

  /** [BSA-04] [BSA-06] [BSA-07] */
  upload(user, inbox) {
    checkStatus(user, 'training', 'upload');
    checkEmpty(inbox, 'upload');
    const [update, updates] = next(user.updates, 'updates');
    const masked = maskUpdate(user.parameters, update, user.mask);
    const sent = message(user, STAMPED_UPDATE, SERVER, { round: user.stamp, masked });
    return [{ status: 'idle', mask: null, updates }, [sent]];
  },

  abandon(user, inbox) {
    checkStatus(user, 'training', 'abandon');
    checkEmpty(inbox, 'abandon');
    return [{ status: 'idle', mask: null }, []];
  },

  /** [BSA-21] to [BSA-28] */
  recover(user, inbox) {
    const buffer = readFromServer(user, inbox, BUFFERED_SET);
    const { round, users, weights } = buffer;
    checkBufferRound(user, round);
    checkBuffer(user.parameters, round, buffer, (i, stamp) => user.held.has(i) && user.held.get(i).stamp === stamp);
    const share = weighted(user.parameters.q, weights, Array.from(users, (i) => user.held.get(i).share));
    const held = new Map(user.held);
    for (const i of users) held.delete(i);
    const changes = { held, answered: round, round: Math.max(user.round, round) };
    return [changes, [message(user, WEIGHTED_SHARE, SERVER, { round, share })]];
  },
};

// ------------------------------------------------------------------------------------------------------------------
// The server
//
// status: filling or recovering; users: user -> the newest stamp that it was given, and whether its shares under it
// were relayed and its update taken; buffer: user -> stamp and masked update; weights: those of the buffer, by user.

/** The entries of the buffer by user, ascending. */
function entriesOf({ buffer }) {
  return [...buffer].sort(([a], [b]) => a - b).map(([user, entry]) => ({ user, ...entry }));
}

/** [BSA-12] */
function checkRequest(server, { sender, round }) {
  const no = (text) => refuse('wrong_phase', `user ${sender} ${text} [BSA-12]`, [sender]);
  const known = server.users.get(sender);
  if (round > server.round) no(`knows of round ${round}, after ${server.round}`);
  if (known !== undefined && known.stamp === server.round) no(`has the stamp ${server.round}`);
  if (server.buffer.has(sender)) no('has an update in the buffer');
}

/** [MSG-03] [MSG-04] The shares in the server's step share: sender -> messages. */
function sortShares(server, messages) {
  const { N } = server.parameters;
  const bySender = new Map();
  const pairs = new Set();
  for (const one of messages) {
    const { sender, receiver } = one;
    if (sender >= N || receiver >= N || sender === receiver) {
      refuse('malformed', `a share from party ${sender} to party ${receiver} [MSG-03]`, [sender]);
    }
    const pair = `${sender} ${receiver}`;
    if (pairs.has(pair)) refuse('replay', `two shares from user ${sender} to user ${receiver} [MSG-04]`, [sender]);
    pairs.add(pair);
    if (!bySender.has(sender)) bySender.set(sender, []);
    bySender.get(sender).push(one);
  }
  return bySender;
}

/** [BSA-13] What of a user is relayed: all its shares under its newest stamp, once. */
function checkRelay(server, sender, shares) {
  const { N } = server.parameters;
  const known = server.users.get(sender);
  if (known === undefined || shares.some(({ round }) => round !== known.stamp)) {
    refuse('inconsistent_sets', `shares of user ${sender} under another stamp than its newest one [BSA-13]`,
      [sender]);
  }
  if (known.relayed) refuse('replay', `the shares of user ${sender} were relayed before [BSA-13]`, [sender]);
  if (shares.length < N - 1) {
    refuse('inconsistent_sets', `user ${sender} has ${shares.length} shares, not ${N - 1} [BSA-13]`, [sender]);
  }
}

/** [BSA-14] [BSA-15] [BSA-16] */
function checkUpdate(server, { sender, round: stamp, masked }) {
  const { q, d, tau_max: oldest } = server.parameters;
  const known = server.users.get(sender);
  if (known === undefined || known.stamp !== stamp || !known.relayed) {
    refuse('wrong_phase', `an update of user ${sender} under ${stamp}, not its newest stamp, or without shares [BSA-14]`,
      [sender]);
  }
  if (known.taken) refuse('replay', `a second update of user ${sender} under the stamp ${stamp} [BSA-15]`, [sender]);
  if (server.round - stamp > oldest) {
    refuse('wrong_phase', `an update of user ${sender} with a staleness of ${server.round - stamp} [BSA-16]`, [sender]);
  }
  checkVector(masked, d, q, `the masked update of user ${sender}`);
}

const serverSteps = {
  /** [BSA-11] [BSA-12] */
  request(server, inbox) {
    const { N } = server.parameters;
    const received = readStep(server, inbox, MODEL_REQUEST, (i) => i < N);
    const users = new Map(server.users);
    for (const one of received) {
      checkRequest(server, one);
      users.set(one.sender, { stamp: server.round, relayed: false, taken: false });
    }
    return [{ users }, received.map(({ sender }) => message(server, MODEL_STAMP, sender, {}))];
  },

  /** [BSA-13] */
  share(server, inbox) {
    const messages = readOfSession(server, inbox, [STAMPED_SHARE]);
    const users = new Map(server.users);
    for (const [sender, shares] of sortShares(server, messages)) {
      checkRelay(server, sender, shares);
      users.set(sender, { ...users.get(sender), relayed: true });
    }
    return [{ users }, messages];
  },

  /** [BSA-14] to [BSA-17] */
  upload(server, inbox) {
    const { N, K } = server.parameters;
    checkStatus(server, 'filling', 'upload'); // [BSA-17]
    const [users, buffer] = [new Map(server.users), new Map(server.buffer)];
    for (const one of readStep(server, inbox, STAMPED_UPDATE, (i) => i < N)) {
      checkUpdate(server, one);
      users.set(one.sender, { ...users.get(one.sender), taken: true });
      buffer.set(one.sender, { stamp: one.round, masked: one.masked });
    }
    if (buffer.size > K) refuse('wrong_phase', `${buffer.size} updates for a buffer of ${K} [BSA-17]`);
    return [{ users, buffer }, []];
  },

  /** [BSA-18] [BSA-19] [BSA-20] */
  close(server, inbox) {
    const { N, K, c_g: level } = server.parameters;
    checkStatus(server, 'filling', 'close');
    checkEmpty(inbox, 'close');
    if (server.buffer.size !== K) refuse('wrong_phase', `${server.buffer.size} updates, not ${K} [BSA-20]`);
    if (server.round === LAST_ROUND) refuse('wrong_phase', `no round comes after ${LAST_ROUND} [BSA-20]`);
    const [draws, roundings] = next(server.roundings, 'roundings');
    const entries = entriesOf(server);
    const weights = entries.map(({ stamp }, i) => weightOf(server.parameters, level, server.round - stamp, draws[i]));
    const fields = { users: entries.map(({ user }) => user), stamps: entries.map(({ stamp }) => stamp), weights };
    checkAnswerSize(24 * N * K);
    const outbox = Array.from({ length: N }, (_, user) => message(server, BUFFERED_SET, user, fields));
    return [{ status: 'recovering', weights, roundings }, outbox];
  },

  /** [BSA-29] to [BSA-31] */
  recover(server, inbox) {
    const { q, N, U, T, d } = server.parameters;
    checkStatus(server, 'recovering', 'recover');
    const answers = readStep(server, inbox, WEIGHTED_SHARE, (i) => i < N);
    for (const one of answers) {
      checkRound(one, server.round);
      checkVector(one.share, shareLength(d, U, T), q, `the answer of user ${one.sender}`);
    }
    const users = answers.map(({ sender }) => sender);
    const shares = answers.map(({ share }) => share);
    const masked = entriesOf(server).map((entry) => entry.masked);
    const sum = blaming(users, () => recoverWeighted(server.parameters, server.weights, masked, users, shares));
    const changes = { status: 'filling', round: server.round + 1, buffer: new Map(), weights: null };
    return [changes, [], { aggregate: writeVector(sum) }];
  },
};

// ------------------------------------------------------------------------------------------------------------------
// How parties start

/** [BSA-03] The numbers of a session as they stand in a binding. */
function boundNumbers(p) {
  const numbers = Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, p[name]]));
  return { ...numbers, kind: KINDS.indexOf(p.kind) };
}

/** [BSA-03] The channel of a user under a stamp. */
function channelsOf(p, protocol = PROTOCOL, bound = hashNumbers(boundNumbers(p))) {
  if (p.channel === null) return () => plainChannel;
  const given = { ...p, ...p.channel, type: STAMPED_SHARE };
  const open = (round) => new SealedChannel({ ...given, round }, protocol, bound);
  open(p.round); // what is wrong with its keys belongs to the request as a whole [KEY-03] [KEY-04]
  return open;
}

/** [BSA-05] The form of what users are given for several steps. */
function checkVectors({ q, U, T, d }, { masks, noises, updates }) {
  masks.forEach((mask, i) => checkVector(mask, d, q, `masks[${i}]`));
  noises.forEach((noise, i) => checkVector(noise, T * shareLength(d, U, T), q, `noises[${i}]`));
  updates.forEach((update, i) => checkVector(update, d, q, `updates[${i}]`));
}

function checkRoundings(K, roundings) {
  roundings.forEach((draws, i) => {
    checkLength(draws.length, K, `roundings[${i}]`);
    draws.forEach((draw, j) => checkDraw(draw, `roundings[${i}][${j}]`));
  });
}

function userStart(p, { masks, noises }, ...bound) {
  const { N, U, d, session, round, user, updates } = p;
  checkParameters(p);
  checkSessionId(session);
  if (user >= N) refuse('unknown_peer', `user ${user} is not in [0, ${N})`);
  checkVectors(p, { masks, noises, updates });
  checkWork(N * U * d * masks.length);
  return {
    parameters: p, session, round, index: user, status: 'idle', stamp: -1, answered: -1, held: new Map(),
    seen: new Map(), mask: null, masks, noises, updates, channelOf: channelsOf(p, ...bound),
  };
}

function serverStart(p, { roundings }) {
  checkParameters(p);
  checkSessionId(p.session);
  checkRoundings(p.K, roundings);
  const { session, round } = p;
  return {
    parameters: p, session, round, index: SERVER, status: 'filling', users: new Map(), buffer: new Map(), weights: null,
    roundings,
  };
}

const readRealVectors = (value, name) => readList(value, name, readReals);
const parties = {
  user: {
    setup: { user: readSize, channel: readChannel, updates: readVectors },
    rand: { masks: readVectors, noises: readVectors },
    steps: userSteps,
    start: userStart,
  },
  server: { setup: {}, rand: { roundings: readRealVectors }, steps: serverSteps, start: serverStart },
};

// ------------------------------------------------------------------------------------------------------------------
// All of them: a server and N users that follow the protocol, on the plain channel

const EVENTS = {
  start: { user: readInteger }, upload: { user: readInteger }, abandon: { user: readInteger },
  recover: { users: readUsers },
};

/** [ADP-35] */
function readEvent(value, name) {
  if (!isObject(value) || !Object.hasOwn(EVENTS, value.event)) refuse('malformed', `${name} is no event [ADP-35]`);
  return readMembers(value, name, { event: (kind) => kind, ...EVENTS[value.event] });
}

/** The parties, who may start [BSA-01] [BSA-02], and what is left of the lists. A refusal of one ends it all. */
class Play {
  constructor(p, lists) {
    const shared = { ...p, session: Buffer.alloc(16), channel: null };
    const empty = { masks: [], noises: [] };
    this.server = serverStart(shared, { roundings: lists.roundings });
    this.users = new Map();
    this.userOf = (user) => this.users.get(user) || userStart({ ...shared, user, updates: [] }, empty);
    this.lists = lists;
    this.buffers = [];
  }

  /** A step of the server: its entry, with the bytes of its messages. */
  serve(phase, inbox) {
    const [entry, after] = perform(serverSteps, this.server, { phase, inbox });
    this.server = after;
    return { ...entry, outbox: entry.outbox.map((hex) => Buffer.from(hex, 'hex')) };
  }

  /** A step of a user, who is given some of what is left of the lists. */
  act(user, phase, inbox, ...names) {
    const given = {};
    for (const name of names) {
      const [first, rest] = next(this.lists[name], name);
      this.lists[name] = rest;
      given[name] = [first];
    }
    const [{ outbox }, after] = perform(userSteps, { ...this.userOf(user), ...given }, { phase, inbox });
    this.users.set(user, after);
    return outbox.map((hex) => Buffer.from(hex, 'hex'));
  }

  start({ user }) {
    const { outbox: stamps } = this.serve('request', this.act(user, 'request', []));
    const { outbox: shares } = this.serve('share', this.act(user, 'share', stamps, 'masks', 'noises'));
    for (const share of shares) this.act(share.readUInt32LE(26), 'hold', [share]); // the receiver stands there [MSG-01]
  }

  upload({ user }) {
    this.serve('upload', this.act(user, 'upload', [], 'updates'));
  }

  abandon({ user }) {
    this.act(user, 'abandon', []);
  }

  recover({ users }) {
    const { round } = this.server;
    const { outbox: announced } = this.serve('close', []);
    const entries = entriesOf(this.server);
    const { weights } = this.server;
    const answers = users.flatMap((user) => this.act(user, 'recover', [announced[user]]));
    const { aggregate: sum } = this.serve('recover', answers);
    this.buffers.push({
      round: String(round), users: entries.map(({ user }) => user),
      stamps: writeVector(entries.map(({ stamp }) => stamp)), weights: writeVector(weights), sum,
    });
  }
}

/** The users that an event names: distinct, and on the roster. */
function checkEvents(schedule, N) {
  schedule.forEach(({ user, users = [user] }, i) => checkUserList(users, N, `schedule[${i}]`));
}

// ------------------------------------------------------------------------------------------------------------------
// Operations

const shared = { ...NUMBERS, session: readBytes, round: readRound };
const operations = {
  'basecagg.user': scriptOf(shared, parties.user, perform),
  'basecagg.server': scriptOf(shared, parties.server, perform),
  'basecagg.rounds': {
    params: {
      ...NUMBERS, round: readRound, updates: readVectors,
      schedule: (value, name) => readList(value, name, readEvent),
    },
    rand: { masks: readVectors, noises: readVectors, roundings: readRealVectors },
    run(p, { masks, noises, roundings }) {
      const { N, U, d, updates, schedule } = p;
      const play = new Play(p, { masks, noises, updates, roundings });
      checkVectors(p, { masks, noises, updates });
      checkEvents(schedule, N);
      checkWork(schedule.length * N * (U * d + N));
      for (const event of schedule) play[event.event](event);
      return { buffers: play.buffers };
    },
  },
};

module.exports = {
  NUMBERS, BUFFERED_SET, WEIGHTED_SHARE, readStep, readFromServer, checkStatus, entriesOf, boundNumbers, channelsOf, readRealVectors,
  userSteps, serverSteps, userStart, serverStart, parties, advance: perform, operations,
};
