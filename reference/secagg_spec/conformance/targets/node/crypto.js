// SPDX-License-Identifier: Apache-2.0
//
// The pseudo-random generator, keys and sealing (conventions, sections 8 and 9), with node:crypto.

'use strict';

const crypto = require('node:crypto');
const { SERVER, refuse, checkAnswerSize, show } = require('./refusals');
const { checkModulus } = require('./integers');
const { checkLightSecAgg } = require('./lightsecagg');
const {
  readBytes, writeVector, readDecimal, readCount, readSize, readRound, readList, readTuple, readString,
} = require('./encodings');

/** [PRG-02] [KEY-03] */
function checkKey(key, name) {
  if (key.length !== 32) refuse('length_mismatch', `${name} has ${key.length} bytes, not 32`);
}

function checkSessionId(session) {
  if (session.length !== 16) refuse('length_mismatch', `session has ${session.length} bytes, not 16`);
}

// ------------------------------------------------------------------------------------------------------------------
// The generator

const CHUNK = Buffer.alloc(1 << 16);

/** [PRG-01] [PRG-03] The first n elements of the stream of a key: the words of the key stream, sampled by RND-02. */
function expand(key, q, n) {
  const stream = crypto.createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
  const end = Math.floor(2 ** 32 / q) * q;
  const value = new Uint32Array(n);
  for (let found = 0; found < n;) {
    const words = stream.update(CHUNK);
    for (let at = 0; at < words.length && found < n; at += 4) {
      const word = words.readUInt32LE(at);
      if (word < end) {
        value[found] = word % q;
        found += 1;
      }
    }
  }
  return value;
}

// ------------------------------------------------------------------------------------------------------------------
// Keys

// What stands before the 32 bytes of an X25519 key in its DER encodings (RFC 8410).
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');
const PUBLIC_PREFIX = Buffer.from('302a300506032b656e032100', 'hex');

/** [KEY-01] The shared secret of RFC 7748. */
function agree(privateBytes, publicBytes) {
  const privateKey = crypto.createPrivateKey({
    key: Buffer.concat([PRIVATE_PREFIX, privateBytes]), format: 'der', type: 'pkcs8',
  });
  const publicKey = crypto.createPublicKey({
    key: Buffer.concat([PUBLIC_PREFIX, publicBytes]), format: 'der', type: 'spki',
  });
  let secret;
  try {
    secret = crypto.diffieHellman({ privateKey, publicKey });
  } catch {
    secret = Buffer.alloc(32); // the library itself refuses a point of low order
  }
  if (secret.every((byte) => byte === 0)) refuse('weak_key', 'the shared secret is all zero [KEY-01]');
  return secret;
}

/** The public key of a private one: its product with the base point (RFC 7748). */
function publicKeyOf(privateBytes) {
  const privateKey = crypto.createPrivateKey({
    key: Buffer.concat([PRIVATE_PREFIX, privateBytes]), format: 'der', type: 'pkcs8',
  });
  return crypto.createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(PUBLIC_PREFIX.length);
}

function u32(number) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(number);
  return bytes;
}

/** A list of fields: each behind its length. */
function fields(list) {
  return Buffer.concat(list.flatMap((field) => [u32(field.length), field]));
}

/** The field `parameters` of a binding, from pairs of a name and a decimal string. */
function hashParameters(pairs) {
  return crypto.createHash('sha256').update(fields(pairs.flat().map((text) => Buffer.from(text, 'ascii')))).digest();
}

/** The same, from an object of numbers in their order. */
function hashNumbers(numbers) {
  return hashParameters(Object.entries(numbers).map(([name, value]) => [name, String(value)]));
}

/** [KEY-08] [KEY-09] The same with the keys of an attempt behind the parameters: of each user a list of keys. */
function hashAttempt(numbers, keysOfUsers) {
  const listed = [...keysOfUsers].sort(([a], [b]) => a - b).flatMap(([user, keys]) => [u32(user), ...keys]);
  const named = Object.entries(numbers).flat().map((text) => Buffer.from(String(text), 'ascii'));
  const hash = crypto.createHash('sha256').update(fields(listed)).digest();
  return crypto.createHash('sha256').update(fields([...named, Buffer.from('keys', 'ascii'), hash])).digest();
}

/** [KEY-02] [KEY-07] What a key is for. */
function bindingOf({ protocol, parameters, round, sender, receiver, senderKey, receiverKey }, purpose = 'seal') {
  return fields([
    Buffer.from('secagg-spec', 'ascii'), u32(1), Buffer.from(protocol, 'ascii'), parameters, u32(round),
    Buffer.from(purpose, 'ascii'), u32(sender), u32(receiver), senderKey, receiverKey,
  ]);
}

/** [KEY-02] */
function deriveKey(secret, session, binding) {
  return Buffer.from(crypto.hkdfSync('sha256', secret, session, binding, 32));
}

// ------------------------------------------------------------------------------------------------------------------
// Sealing

const NONCE = 12;
const TAG = 16;

/** ChaCha20-Poly1305 of a plaintext: the ciphertext and the tag. */
function encrypt(key, nonce, associated, plaintext) {
  const cipher = crypto.createCipheriv('chacha20-poly1305', key, nonce, { authTagLength: TAG });
  cipher.setAAD(associated, { plaintextLength: plaintext.length });
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

function notOpened(sender) {
  return refuse('bad_ciphertext', `the payload of user ${sender} does not open`, [sender, SERVER]);
}

/** The plaintext of a ciphertext and its tag. */
function decrypt(key, nonce, associated, sealed, sender) {
  if (sealed.length < TAG) notOpened(sender);
  const body = sealed.subarray(0, sealed.length - TAG);
  const cipher = crypto.createDecipheriv('chacha20-poly1305', key, nonce, { authTagLength: TAG });
  cipher.setAuthTag(sealed.subarray(sealed.length - TAG));
  cipher.setAAD(associated, { plaintextLength: body.length });
  try {
    return Buffer.concat([cipher.update(body), cipher.final()]);
  } catch {
    return notOpened(sender);
  }
}

/** [SEA-08] The nonce of a plaintext. */
function nonceOf({ nonceKey, associated }, plaintext) {
  return crypto.createHmac('sha256', nonceKey).update(associated).update(plaintext).digest().subarray(0, NONCE);
}

/** [SEA-01] */
function seal(materials, plaintext) {
  const nonce = nonceOf(materials, plaintext);
  return Buffer.concat([nonce, encrypt(materials.sealKey, nonce, materials.associated, plaintext)]);
}

/** [SEA-02] [SEA-09] */
function unseal(materials, payload, sender) {
  if (payload.length < NONCE + TAG) notOpened(sender);
  const nonce = payload.subarray(0, NONCE);
  const plaintext = decrypt(materials.sealKey, nonce, materials.associated, payload.subarray(NONCE), sender);
  if (!crypto.timingSafeEqual(nonce, nonceOf(materials, plaintext))) notOpened(sender);
  return plaintext;
}

/** The keys and the associated data of a payload, from a secret and what it is sealed for. */
function sealingMaterials(secret, session, type, purpose) {
  const binding = bindingOf(purpose);
  const number = Buffer.alloc(2);
  number.writeUInt16LE(type);
  return {
    sealKey: deriveKey(secret, session, binding),
    nonceKey: deriveKey(secret, session, bindingOf(purpose, 'seal-nonce')),
    associated: Buffer.concat([binding, number]),
  };
}

/** [KEY-03] [KEY-04] [SIG-04] [SIG-05] N keys, all different. */
function checkRoster(roster, N, name = 'roster') {
  if (roster.length !== N) refuse('length_mismatch', `${name} has ${roster.length} keys, not ${N}`);
  roster.forEach((key, user) => checkKey(key, `${name}[${user}]`));
  const seen = new Set(roster.map((key) => key.toString('hex')));
  if (seen.size !== N) refuse('bad_param', `two users of ${name} have one key [KEY-04] [SIG-05]`);
}

/** The channel of one user in one round: what it seals, and what it opens, for messages of one type. */
class SealedChannel {
  constructor({ q, N, D, U, T, d, session, round, type, private: own, roster }, protocol, parameters) {
    checkSessionId(session);
    checkKey(own, 'private');
    checkRoster(roster, N);
    this.protocol = protocol || 'lightsecagg';
    this.parameters = parameters || hashNumbers({ q, N, D, U, T, d });
    Object.assign(this, { session, round, type, own, roster });
    this.secrets = new Map();
  }

  secretWith(peer) {
    if (!this.secrets.has(peer)) this.secrets.set(peer, agree(this.own, this.roster[peer]));
    return this.secrets.get(peer);
  }

  /** The keys and the associated data of a payload. */
  materials(sender, receiver, peer) {
    return sealingMaterials(this.secretWith(peer), this.session, this.type, {
      protocol: this.protocol,
      parameters: this.parameters,
      round: this.round,
      sender,
      receiver,
      senderKey: this.roster[sender],
      receiverKey: this.roster[receiver],
    });
  }

  /** [SEA-01] */
  close(sender, receiver, plaintext) {
    return seal(this.materials(sender, receiver, receiver), plaintext);
  }

  /** [SEA-02] */
  open(sender, receiver, payload) {
    return unseal(this.materials(sender, receiver, sender), payload, sender);
  }
}

/** A sender and a receiver: two users. */
function checkPair(sender, receiver, N) {
  for (const user of [sender, receiver]) {
    if (user >= N) refuse('unknown_peer', `user ${user} is not in [0, ${N})`);
  }
  if (sender === receiver) refuse('duplicate_id', `user ${sender} is the sender and the receiver`);
}

// ------------------------------------------------------------------------------------------------------------------
// Operations

const SESSION = {
  q: readDecimal, N: readCount, D: readCount, U: readCount, T: readCount, d: readCount,
  session: readBytes, round: readRound,
};

function readAscii(value, name) {
  if (/[^\0-\x7f]/.test(readString(value, name))) refuse('malformed', `${name} is not ASCII: ${show(value)}`);
  return value;
}

/** A decimal string that stays a string: it is hashed as it is written. */
function readDecimalText(value, name) {
  readDecimal(value, name);
  return value;
}

function readType(value, name) {
  if (readSize(value, name) >= 65536) refuse('out_of_range', `${name} = ${value} is not below 2**16`);
  return value;
}

const readKeys = (value, name) => readList(value, name, readBytes);

const operations = {
  'prg.expand': {
    params: { q: readDecimal, key: readBytes, n: readSize },
    rand: {},
    run({ q, key, n }) {
      checkModulus(q);
      checkKey(key, 'key');
      checkAnswerSize(8 * n);
      return { value: writeVector(expand(key, q, n)) };
    },
  },
  'key.agree': {
    params: { private: readBytes, public: readBytes },
    rand: {},
    run(p) {
      checkKey(p.private, 'private');
      checkKey(p.public, 'public');
      return { secret: agree(p.private, p.public).toString('hex') };
    },
  },
  'key.derive': {
    params: {
      protocol: readAscii, parameters: (value, name) => readList(value, name, readTuple(readAscii, readDecimalText)),
      secret: readBytes, session: readBytes, round: readRound, sender: readSize, receiver: readSize,
      sender_key: readBytes, receiver_key: readBytes,
    },
    rand: {},
    run(p) {
      checkSessionId(p.session);
      for (const name of ['secret', 'sender_key', 'receiver_key']) checkKey(p[name], name);
      const binding = bindingOf({
        ...p, parameters: hashParameters(p.parameters), senderKey: p.sender_key, receiverKey: p.receiver_key,
      });
      return { key: deriveKey(p.secret, p.session, binding).toString('hex'), binding: binding.toString('hex') };
    },
  },
  'seal.close': {
    params: {
      ...SESSION, sender: readSize, private: readBytes, roster: readKeys, type: readType,
      plaintexts: (value, name) => readList(value, name, readTuple(readSize, readBytes)),
    },
    rand: {},
    run(p) {
      checkLightSecAgg(p);
      const channel = new SealedChannel(p);
      const sealed = new Set();
      const payloads = p.plaintexts.map(([receiver, plaintext]) => {
        checkPair(p.sender, receiver, p.N);
        if (sealed.has(receiver)) refuse('replay', `a second payload for user ${receiver} [SEA-03]`);
        sealed.add(receiver);
        return channel.close(p.sender, receiver, plaintext).toString('hex');
      });
      return { payloads };
    },
  },
  'seal.open': {
    params: {
      ...SESSION, sender: readSize, receiver: readSize, private: readBytes, roster: readKeys, type: readType,
      payload: readBytes,
    },
    rand: {},
    run(p) {
      checkLightSecAgg(p);
      const channel = new SealedChannel(p);
      checkPair(p.sender, p.receiver, p.N);
      return { plaintext: channel.open(p.sender, p.receiver, p.payload).toString('hex') };
    },
  },
};

module.exports = {
  SESSION, SealedChannel, checkKey, checkRoster, checkSessionId, readAscii, readDecimalText, readKeys, readType,
  expand, agree, publicKeyOf, u32, fields, hashNumbers, hashParameters, hashAttempt, bindingOf, deriveKey, checkPair,
  encrypt, decrypt, seal, unseal, sealingMaterials, operations,
};
