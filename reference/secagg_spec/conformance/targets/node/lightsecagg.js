// SPDX-License-Identifier: Apache-2.0
//
// LightSecAgg

'use strict';

const { refuse } = require('./refusals');
const { add, subtract, checkFieldModulus, checkVector, elementwise, addInto } = require('./integers');
const { shareLength, encode, decode } = require('./code');

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

module.exports = { checkLightSecAgg, checkSurvivingSet, sumOfShares, User, Server, recoverSum, playRound };
