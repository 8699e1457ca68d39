// SPDX-License-Identifier: Apache-2.0
//
// Messages and their bytes (conventions, section 5; LightSecAgg, section 3).

'use strict';

const { SERVER, COUNT_LIMIT, refuse } = require('./refusals');
const { readBytes, readVector, writeVector, readSize, readRound, readParty, readList, readMembers, isObject } =
  require('./encodings');
const { checkSessionId, readType } = require('./crypto');

/** Type number -> name, and the one field after the header: its name and type. */
const TYPES = new Map([
  [257, { name: 'MaskShare', field: 'payload', kind: 'opaque' }],
  [258, { name: 'MaskedUpdate', field: 'masked', kind: 'vector' }],
  [259, { name: 'SurvivingSet', field: 'users', kind: 'users' }],
  [260, { name: 'AggregatedShare', field: 'share', kind: 'vector' }],
]);
const HEADER = 30;

/** A count as u32, then each entry as u32: the field types `users` and `vector`. */
function writeEntries(entries) {
  const bytes = Buffer.alloc(4 + 4 * entries.length);
  bytes.writeUInt32LE(entries.length, 0);
  entries.forEach((entry, i) => bytes.writeUInt32LE(entry, 4 + 4 * i));
  return bytes;
}

/** [MSG-02] The entries of `bytes`, and nothing beside them. */
function readEntries(bytes) {
  if (bytes.length < 4) refuse('malformed', 'the bytes end within a count [MSG-02]');
  const count = bytes.readUInt32LE(0);
  if (bytes.length !== 4 + 4 * count) {
    refuse('malformed', `${bytes.length - 4} bytes for ${count} entries of 4 bytes [MSG-02]`);
  }
  const entries = new Uint32Array(count);
  for (let i = 0; i < count; i += 1) entries[i] = bytes.readUInt32LE(4 + 4 * i);
  return entries;
}

/** [MSG-01] message: { type, session, round, sender, receiver, value }, with value: Buffer, Uint32Array or list. */
function encodeMessage({ type, session, round, sender, receiver, value }) {
  const header = Buffer.alloc(HEADER);
  header.writeUInt16LE(type, 0);
  session.copy(header, 2);
  header.writeUInt32LE(round, 18);
  header.writeUInt32LE(sender, 22);
  header.writeUInt32LE(receiver, 26);
  if (TYPES.get(type).kind !== 'opaque') return Buffer.concat([header, writeEntries(value)]);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(value.length);
  return Buffer.concat([header, length, value]);
}

/** [MSG-02] The message in some bytes, which must be of one of `types`. */
function decodeMessage(bytes, types) {
  if (bytes.length < HEADER) refuse('malformed', `${bytes.length} bytes are no header [MSG-02]`);
  const type = bytes.readUInt16LE(0);
  if (!types.includes(type)) {
    refuse(TYPES.has(type) ? 'wrong_phase' : 'malformed', `a message of type ${type}, not ${types} [MSG-02]`);
  }
  const body = bytes.subarray(HEADER);
  const { kind } = TYPES.get(type);
  return {
    type,
    session: bytes.subarray(2, 18),
    round: bytes.readUInt32LE(18),
    sender: bytes.readUInt32LE(22),
    receiver: bytes.readUInt32LE(26),
    value: kind === 'opaque' ? readOpaque(body) : readEntries(body),
  };
}

/** [MSG-02] */
function readOpaque(bytes) {
  if (bytes.length < 4 || bytes.readUInt32LE(0) !== bytes.length - 4) {
    refuse('malformed', 'the bytes are not a length and as many bytes [MSG-02]');
  }
  return bytes.subarray(4);
}

/** How a field stands in a request: its reader and its writer. */
const FORMS = {
  opaque: [readBytes, (value) => value.toString('hex')],
  vector: [readVector, writeVector],
  users: [(value, name) => readList(value, name, readSize), (value) => Array.from(value)],
};

/** A party as it stands in an answer. */
function writeParty(number) {
  if (number === SERVER) return 'server';
  if (number >= COUNT_LIMIT) refuse('malformed', `party ${number} is neither a user nor the server`);
  return number;
}

function knownType(type) {
  if (!TYPES.has(type)) refuse('bad_param', `no message has the type ${type}`);
  return TYPES.get(type);
}

const operations = {
  'message.encode': {
    params: {
      type: readType, session: readBytes, round: readRound, sender: readParty, receiver: readParty,
      fields: (value, name) => (isObject(value) ? value : refuse('malformed', `${name} is not an object`)),
    },
    rand: {},
    run(p) {
      const { field, kind } = knownType(p.type);
      checkSessionId(p.session);
      const read = readMembers(p.fields, 'fields', { [field]: FORMS[kind][0] });
      return { bytes: encodeMessage({ ...p, value: read[field] }).toString('hex') };
    },
  },
  'message.decode': {
    params: { type: readType, bytes: readBytes },
    rand: {},
    run({ type, bytes }) {
      const { field, kind } = knownType(type);
      const message = decodeMessage(bytes, [type]);
      return {
        session: message.session.toString('hex'),
        round: String(message.round),
        sender: writeParty(message.sender),
        receiver: writeParty(message.receiver),
        fields: { [field]: FORMS[kind][1](message.value) },
      };
    },
  },
};

module.exports = { encodeMessage, decodeMessage, readEntries, writeEntries, writeParty, operations };
