// SPDX-License-Identifier: Apache-2.0
//
// Pairs of users whose keys are drawn in every call (adapter, section 4; conventions, section 9).

'use strict';

const crypto = require('node:crypto');
const { refuse } = require('./refusals');
const { readBytes, readSize, readMembers, readInteger } = require('./encodings');
const {
  agree, publicKeyOf, bindingOf, deriveKey, hashNumbers, checkPair, seal, unseal, sealingMaterials,
} = require('./crypto');

const SESSION = Buffer.alloc(16);
const BOUND = { protocol: 'pair', parameters: hashNumbers({}), round: 0 };

function drawPair() {
  const own = crypto.randomBytes(32);
  return { own, shown: publicKeyOf(own) };
}

/** null, or what is altered: a byte, the sender or the receiver. */
function readAlteration(value, name) {
  if (value === null) return {};
  const kind = ['byte', 'sender', 'receiver'].find((member) => Object.hasOwn(Object(value), member));
  if (kind === undefined) refuse('malformed', `${name} is not null and names nothing that is altered`);
  return readMembers(value, name, kind === 'byte' ? { byte: readInteger, mask: readInteger } : { [kind]: readSize });
}

/** The payload with one byte altered, where one is named. */
function alter(payload, { byte, mask }) {
  if (byte === undefined) return payload;
  if (mask < 1 || mask > 255) refuse('bad_param', `mask = ${mask} is not in [1, 255]`);
  const at = ((byte % payload.length) + payload.length) % payload.length;
  const changed = Buffer.from(payload);
  changed[at] ^= mask;
  return changed;
}

/** The keys and the associated data of a payload, from the private key of one end and the public ones of both. */
function materials(own, peer, sender, receiver, senderKey, receiverKey) {
  return sealingMaterials(agree(own, peer), SESSION, 0, { ...BOUND, sender, receiver, senderKey, receiverKey });
}

const operations = {
  'pair.agree': {
    params: {},
    rand: {},
    run() {
      const [one, other] = [drawPair(), drawPair()];
      const binding = bindingOf({ ...BOUND, sender: 0, receiver: 1, senderKey: one.shown, receiverKey: other.shown });
      const derived = (own, peer) => deriveKey(agree(own, peer), SESSION, binding).toString('hex');
      return {
        first: derived(one.own, other.shown),
        second: derived(other.own, one.shown),
        public: [one.shown.toString('hex'), other.shown.toString('hex')],
      };
    },
  },
  'pair.seal': {
    params: { plaintext: readBytes, sender: readSize, receiver: readSize, alter: readAlteration },
    rand: {},
    run({ plaintext, sender, receiver, alter: change }) {
      checkPair(sender, receiver, 2 ** 31);
      const [from, to] = [drawPair(), drawPair()];
      const payload = seal(materials(from.own, to.shown, sender, receiver, from.shown, to.shown), plaintext);
      const { sender: source = sender, receiver: target = receiver } = change;
      const there = materials(to.own, from.shown, source, target, from.shown, to.shown);
      const opened = unseal(there, alter(payload, change), source);
      return { opened: opened.toString('hex'), payload: payload.toString('hex') };
    },
  },
};

module.exports = { operations };
