// SPDX-License-Identifier: Apache-2.0
//
// The parts of an input: runs of elements, each masked modulo a number of its own among users of its own (SecAgg, section
// 5; HeteroSAg, section 5).
//
// A part is { segment, start, length, R, bound, members }: its elements are the `length` ones from `start` on, inputs are
// below `bound`, masks and sums are modulo R, and `members` is the Set of its users. Each user is in parts that cover its
// vector of d elements once; in SecAgg all users are in one part, in HeteroSAg a part is a cell. `shared` below is what
// all parties of a round agree on; it holds the `parts`, by segment and then by the smallest user.

'use strict';

const { Reject, refuse } = require('./refusals');
const { add, subtract, checkLength, addInto } = require('./integers');
const { expand } = require('./crypto');
const { pairwiseKey, selfKey } = require('./masks');
const { fewestCompanions } = require('./companions');

function ascending(users) {
  return [...users].sort((a, b) => a - b);
}

/** What is wrong with the numbers in a message is no misuse, but its sender's fault (conventions, section 7). */
function wellFormed(sender, work) {
  try {
    return work();
  } catch (problem) {
    if (problem instanceof Reject) refuse('malformed', problem.message, [sender]);
    throw problem;
  }
}

/** The parts that all of some users are in. */
function partsOf({ parts }, ...users) {
  return parts.filter(({ members }) => users.every((user) => members.has(user)));
}

/** The elements of a part, of a vector of d. */
function elementsOf(vector, { start, length }) {
  return vector.subarray(start, start + length);
}

// ------------------------------------------------------------------------------------------------------------------
// Masks

/** [MSK-01] The keys of the masks of users i and j, by part. */
function pairwiseKeys(shared, secret, i, j, keyOf) {
  return new Map(partsOf(shared, i, j).map((part) => [part, pairwiseKey(shared, secret, i, j, keyOf, part.segment)]));
}

/** [MSK-02] The keys of the masks of a user's own, by part. */
function selfKeys(shared, seed, user) {
  return new Map(partsOf(shared, user).map((part) => [part, selfKey(shared, seed, user, part.segment)]));
}

/** Adds the stream of a key to the elements of a part, or subtracts it. */
function applyMask(elements, { R }, key, operation) {
  const stream = expand(key, R, elements.length);
  for (let i = 0; i < elements.length; i += 1) elements[i] = operation(elements[i], stream[i], R);
}

/** [SAG-12] [HSA-14] own: part -> key; pairwise: list of [peer, part -> key]. */
function maskInput(user, update, own, pairwise) {
  const masked = Uint32Array.from(update);
  for (const [part, key] of own) applyMask(elementsOf(masked, part), part, key, add);
  for (const [peer, keys] of pairwise) {
    for (const [part, key] of keys) applyMask(elementsOf(masked, part), part, key, user < peer ? add : subtract);
  }
  return masked;
}

// ------------------------------------------------------------------------------------------------------------------
// Checks

/** [SAG-14] [HSA-13] */
function checkInput(shared, user, update) {
  checkLength(update.length, shared.numbers.d, 'update');
  for (const part of partsOf(shared, user)) {
    const wrong = elementsOf(update, part).findIndex((element) => element >= part.bound);
    if (wrong >= 0) {
      refuse('noncanonical', `update[${part.start + wrong}] is not below ${part.bound} [SAG-14] [HSA-13]`);
    }
  }
}

/** The users of a part that are in a set, ascending. */
function membersIn({ members }, users) {
  return ascending(members).filter((user) => users.has(user));
}

/** [HSA-17] [HSA-18] None of a part's users, or T + 2 of them. */
function checkSurvivorsOfParts({ parts, numbers: { T } }, survivors) {
  for (const part of parts) {
    const { length } = membersIn(part, survivors);
    if (length > 0 && length < T + 2) {
      refuse('below_threshold', `${length} survivors of a cell of segment ${part.segment}, fewer than ${T + 2} [HSA-18]`);
    }
  }
}

/** [HSA-27] [HSA-28] past: the survivors of the requests that a user answered, or that the server sent, before. */
function checkMemory({ parts, past, numbers: { T } }, survivors) {
  for (const { segment, members } of parts) {
    const fewest = fewestCompanions(members, [...past, survivors]);
    if (fewest < T + 2) {
      refuse('below_threshold', `a user has ${fewest} companions in a cell of segment ${segment}, fewer than ${T + 2} [HSA-27]`);
    }
  }
}

// ------------------------------------------------------------------------------------------------------------------
// Sums

/** [SAG-29] What the users of each part with survivors masked, without the masks of their own. */
function sumWithoutOwn(shared, masked, seeds) {
  const sums = new Map();
  for (const user of ascending(masked.keys())) {
    for (const [part, key] of selfKeys(shared, seeds.get(user), user)) {
      const elements = Uint32Array.from(elementsOf(masked.get(user), part));
      applyMask(elements, part, key, subtract);
      if (sums.has(part)) addInto(sums.get(part), elements, part.R);
      else sums.set(part, elements);
    }
  }
  return sums;
}

/** [HSA-20] */
function checkSum(part, sum, survivors) {
  const users = membersIn(part, survivors);
  const most = users.length * (part.bound - 1);
  const wrong = sum.find((element) => element > most);
  if (wrong !== undefined) {
    refuse('malformed', `a sum of segment ${part.segment} holds ${wrong}, above ${most} [HSA-20]`, users);
  }
}

/**
 * [SAG-29] [HSA-19] The sums of the parts with survivors, in the order of the parts; masked: survivor -> vector; seeds:
 * survivor -> self seed; agreed: dropped user -> (survivor -> secret); keyOf: user -> public masking key.
 */
function unmaskParts(shared, masked, seeds, agreed, keyOf) {
  const sums = sumWithoutOwn(shared, masked, seeds);
  for (const [user, secrets] of agreed) {
    for (const [peer, secret] of secrets) {
      for (const [part, key] of pairwiseKeys(shared, secret, user, peer, keyOf)) {
        applyMask(sums.get(part), part, key, user < peer ? add : subtract);
      }
    }
  }
  for (const [part, sum] of sums) checkSum(part, sum, masked);
  return shared.parts.filter((part) => sums.has(part)).map((part) => sums.get(part));
}

module.exports = {
  ascending, wellFormed, partsOf, elementsOf, membersIn, pairwiseKeys, selfKeys, maskInput, checkInput,
  checkSurvivorsOfParts, checkMemory, unmaskParts,
};
