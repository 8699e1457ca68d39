// SPDX-License-Identifier: Apache-2.0
//
// Scripts: one party of a LightSecAgg round, step by step (adapter, section 4).
//
// A party is a plain object that is never changed: a step makes the next one, or refuses and makes none [ERR-01].

'use strict';

const { SERVER, Reject, refuse, show } = require('./refusals');
const { add, checkVector, elementwise } = require('./integers');
const { shareLength, encode, checkWork } = require('./code');
const { checkLightSecAgg, checkSurvivingSet, sumOfShares, recoverSum } = require('./lightsecagg');
const { readBytes, readVector, writeVector, readSize, readList, readString, readMembers } = require('./encodings');
const { SESSION, SealedChannel, checkSessionId, readKeys } = require('./crypto');
const { encodeMessage, decodeMessage, readEntries, writeEntries, writeParty } = require('./messages');

const MASK_SHARE = 257;
const MASKED_UPDATE = 258;
const SURVIVING_SET = 259;
const AGGREGATED_SHARE = 260;
const PHASES = ['share', 'upload', 'recover', 'done'];

const plainChannel = {
  close: (sender, receiver, plaintext) => plaintext,
  open: (sender, receiver, payload) => payload,
};

/** A message of this party. */
function message(party, type, receiver, value) {
  return { type, session: party.session, round: party.round, sender: party.index, receiver, value };
}

/** The messages in an inbox, of a type and with a header that the step takes [MSG-02] [MSG-03]. */
function readInbox(party, inbox, types) {
  return inbox.map((bytes) => {
    const read = decodeMessage(bytes, types);
    const from = [read.sender];
    if (!read.session.equals(party.session)) refuse('wrong_phase', 'a message of another session [MSG-03]', from);
    if (read.round !== party.round) refuse('wrong_phase', 'a message of another round [MSG-03]', from);
    return read;
  });
}

/** The messages of a step that takes one from each of some senders [MSG-03] [MSG-04]. */
function readOwn(party, inbox, type, senders) {
  const messages = readInbox(party, inbox, [type]);
  const seen = new Set();
  for (const { sender, receiver } of messages) {
    if (receiver !== party.index) refuse('malformed', `a message for party ${receiver} [MSG-03]`, [sender]);
    if (!senders(sender)) refuse('unknown_peer', `party ${sender} has nothing to send here [MSG-03]`, [sender]);
    if (seen.has(sender)) refuse('replay', `a second message of party ${sender} [MSG-04]`, [sender]);
    seen.add(sender);
  }
  return messages;
}

// ------------------------------------------------------------------------------------------------------------------
// A user

const userSteps = {
  share(user, inbox) {
    if (inbox.length > 0) refuse('wrong_phase', 'the step share of a user receives nothing');
    const { q, N, U, T } = user.parameters;
    const shares = encode(q, N, U, T, user.mask, user.noise);
    const outbox = [];
    shares.forEach((share, j) => {
      if (j === user.index) return;
      const payload = user.channel.close(user.index, j, writeEntries(share));
      outbox.push(message(user, MASK_SHARE, j, payload));
    });
    return [{ held: new Map([[user.index, shares[user.index]]]) }, outbox];
  },

  upload(user, inbox) {
    const { q, N, U, T, d } = user.parameters;
    const held = new Map(user.held);
    for (const { sender, value } of readOwn(user, inbox, MASK_SHARE, (i) => i < N && i !== user.index)) {
      const share = readEntries(user.channel.open(sender, user.index, value));
      checkVector(share, shareLength(d, U, T), q, `the share of user ${sender}`);
      held.set(sender, share);
    }
    const masked = elementwise(add, user.update, user.mask, q); // [LSA-02]
    return [{ held, mask: null }, [message(user, MASKED_UPDATE, SERVER, masked)]];
  },

  recover(user, inbox) {
    const { q, N, T } = user.parameters;
    const [announced] = readOwn(user, inbox, SURVIVING_SET, (sender) => sender === SERVER);
    if (announced === undefined) refuse('wrong_phase', 'no surviving set was announced [LSA-09]');
    const surviving = Array.from(announced.value);
    checkSurvivingSet(surviving, N, T, user.held); // [LSA-09] [LSA-10] [LSA-11]
    const share = sumOfShares(surviving, user.held, q); // [LSA-08]
    return [{ held: new Map() }, [message(user, AGGREGATED_SHARE, SERVER, share)]];
  },
};

// ------------------------------------------------------------------------------------------------------------------
// The server

const serverSteps = {
  /** [LSA-05] */
  share(server, inbox) {
    const { N } = server.parameters;
    const bySender = new Map();
    const messages = readInbox(server, inbox, [MASK_SHARE]);
    for (const { sender, receiver } of messages) {
      if (sender >= N || receiver >= N || sender === receiver) {
        refuse('malformed', `a share from party ${sender} to party ${receiver} [MSG-03]`, [sender]);
      }
      if (!bySender.has(sender)) bySender.set(sender, new Set());
      const receivers = bySender.get(sender);
      if (receivers.has(receiver)) refuse('replay', `two shares from user ${sender} to user ${receiver}`, [sender]);
      receivers.add(receiver);
    }
    const complete = (sender) => bySender.get(sender).size === N - 1;
    const sharers = new Set([...bySender.keys()].filter(complete));
    return [{ sharers }, messages.filter(({ sender }) => sharers.has(sender))];
  },

  /** [LSA-06] [LSA-07] [LSA-16] */
  upload(server, inbox) {
    const { q, U, T, d } = server.parameters;
    const masked = new Map();
    for (const { sender, value } of readOwn(server, inbox, MASKED_UPDATE, (i) => server.sharers.has(i))) {
      checkVector(value, d, q, `the masked update of user ${sender}`);
      masked.set(sender, value);
    }
    const surviving = [...masked.keys()].sort((a, b) => a - b);
    if (surviving.length < Math.max(U, T + 2)) {
      refuse('below_threshold', `${surviving.length} users survive, fewer than U = ${U} or T + 2 = ${T + 2} [LSA-07]`);
    }
    return [{ masked }, surviving.map((user) => message(server, SURVIVING_SET, user, surviving))];
  },

  /** [LSA-13] to [LSA-16] */
  recover(server, inbox) {
    const { q, U, T, d } = server.parameters;
    const answers = readOwn(server, inbox, AGGREGATED_SHARE, (i) => server.masked.has(i));
    for (const { sender, value } of answers) {
      checkVector(value, shareLength(d, U, T), q, `the aggregated share of user ${sender}`);
    }
    const users = answers.map(({ sender }) => sender);
    const shares = answers.map(({ value }) => value);
    const aggregate = blaming(users, () => recoverSum(server.parameters, [...server.masked.values()], users, shares));
    return [{}, [], { aggregate: writeVector(aggregate) }];
  },
};

/** [LSA-15] A refusal for shares that lie on no codeword blames all who answered. */
function blaming(users, work) {
  try {
    return work();
  } catch (problem) {
    if (problem instanceof Reject && problem.code === 'bad_share') problem.blamed = users;
    throw problem;
  }
}

// ------------------------------------------------------------------------------------------------------------------
// Scripts

/** The entry of a step, and the party after it. */
function take(steps, party, { phase, inbox }) {
  try {
    const now = PHASES.indexOf(party.phase);
    const wanted = PHASES.indexOf(phase);
    if (wanted < now) refuse('replay', `the step ${phase} was taken before [LSA-04] [LSA-12]`);
    if (wanted > now) refuse('wrong_phase', `the step ${phase} comes before ${party.phase}`);
    const [changes, outbox, beside] = steps[phase](party, inbox);
    const entry = { outbox: outbox.map((sent) => encodeMessage(sent).toString('hex')), ...beside };
    return [entry, { ...party, ...changes, phase: PHASES[now + 1] }];
  } catch (problem) {
    if (!(problem instanceof Reject)) throw problem;
    const blamed = problem.blamed.filter((i) => i === SERVER || i < 2 ** 31).map(writeParty);
    return [{ reject: { code: problem.code, message: problem.message, blamed } }, party];
  }
}

function play(steps, start, script) {
  let party = { ...start, phase: 'share' };
  const entries = [];
  for (const step of script) {
    const [entry, next] = take(steps, party, step);
    entries.push(entry);
    party = next;
  }
  return { steps: entries };
}

function readStep(value, name) {
  const step = readMembers(value, name, { phase: readString, inbox: (list, at) => readList(list, at, readBytes) });
  if (!PHASES.slice(0, 3).includes(step.phase)) refuse('malformed', `${name}: no phase ${show(step.phase)}`);
  return step;
}

const readSteps = (value, name) => readList(value, name, readStep);

function readChannel(value, name) {
  return value === 'plain' ? null : readMembers(value, name, { private: readBytes, roster: readKeys });
}

const operations = {
  'lightsecagg.user': {
    params: { ...SESSION, user: readSize, channel: readChannel, update: readVector, steps: readSteps },
    rand: { mask: readVector, noise: readVector },
    run(p, { mask, noise }) {
      const { q, N, U, T, d, session, round, user, update } = p;
      checkLightSecAgg(p);
      checkSessionId(session);
      if (user >= N) refuse('unknown_peer', `user ${user} is not in [0, ${N})`);
      const L = shareLength(d, U, T);
      checkVector(update, d, q, 'update'); // [LSA-03]
      checkVector(mask, d, q, 'mask');
      checkVector(noise, T * L, q, 'noise');
      const sealed = p.channel && new SealedChannel({ ...p, ...p.channel, type: MASK_SHARE }); // [LSA-18]
      checkWork(N * U * L);
      const channel = sealed || plainChannel;
      const start = { parameters: p, session, round, index: user, channel, update, mask, noise, held: new Map() };
      return play(userSteps, start, p.steps);
    },
  },
  'lightsecagg.server': {
    params: { ...SESSION, steps: readSteps },
    rand: {},
    run(p) {
      checkLightSecAgg(p);
      checkSessionId(p.session);
      const start = { parameters: p, session: p.session, round: p.round, index: SERVER };
      return play(serverSteps, { ...start, sharers: new Set(), masked: new Map() }, p.steps);
    },
  },
};

module.exports = { operations };
