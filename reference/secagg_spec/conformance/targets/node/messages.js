// SPDX-License-Identifier: Apache-2.0
//
// Messages and their bytes (conventions, section 5; LightSecAgg, section 3; SecAgg, section 4; BASecAgg, section 3; BASA,
// section 3; HeteroSAg, section 5).

'use strict';

const { SERVER, AUTHORITY, COUNT_LIMIT, refuse } = require('./refusals');
const {
  readBytes, readVector, writeVector, readInteger, readSize, readRound, readParty, readList, readMembers, isObject,
} = require('./encodings');
const { checkSessionId, readType } = require('./crypto');

/** Type number -> the fields after the header, in their order: name and type. */
const TYPES = new Map([
  [257, { payload: 'opaque' }], // MaskShare
  [258, { masked: 'vector' }], // MaskedUpdate
  [259, { users: 'users' }], // SurvivingSet
  [260, { share: 'vector' }], // AggregatedShare
  [261, { signature: 'opaque' }], // SignedSet
  [262, { signers: 'users', signatures: 'opaque' }], // Quorum
  [513, { sealing: 'opaque', masking: 'opaque' }], // AdvertisedKeys
  [514, { users: 'users', sealing: 'opaque', masking: 'opaque' }], // NeighbourKeys
  [515, { payload: 'opaque' }], // SecretShares
  [516, { commitment: 'opaque' }], // SeedCommitment
  [517, { neighbours: 'users', masked: 'vector' }], // MaskedInput
  [518, { survivors: 'users', dropped: 'users' }], // UnmaskRequest
  [519, { survivors: 'users', seed_shares: 'opaque', dropped: 'users', key_shares: 'opaque' }], // UnmaskShares
  [520, { sealing: 'opaque', masking: 'opaque', signature: 'opaque' }], // SignedKeys
  [521, { users: 'users', sealing: 'opaque', masking: 'opaque', signatures: 'opaque' }], // SignedNeighbourKeys
  [522, { signature: 'opaque' }], // SignedSurvivors
  [523, { signers: 'users', signatures: 'opaque' }], // SurvivorQuorum
  [769, {}], // ModelRequest
  [770, {}], // ModelStamp
  [771, { payload: 'opaque' }], // StampedShare
  [772, { masked: 'vector' }], // StampedUpdate
  [773, { users: 'users', stamps: 'vector', weights: 'vector' }], // BufferedSet
  [774, { share: 'vector' }], // WeightedShare
  [775, { signature: 'opaque' }], // SignedBuffer
  [776, { signers: 'users', signatures: 'opaque' }], // BufferQuorum
  [1025, { keys: 'opaque', signature: 'opaque' }], // EpochKeys
  [1026, {}], // PositionRequest
  [1027, { position: 'u32', keys: 'opaque', signature: 'opaque', boxes: 'opaque' }], // PositionOffer
  [1028, { position: 'u32', user: 'u32' }], // Assignment
  [1029, { position: 'u32' }], // KeyRequest
  [1030, { position: 'u32', positions: 'vector', senders: 'vector', hashes: 'opaque', key: 'opaque' }], // PositionKey
  [1031, {
    position: 'u32', stamp: 'u32', weight: 'u32', masked: 'vector', boxes: 'opaque', signature: 'opaque',
  }], // PositionUpload
  [1032, {
    position: 'u32', accepted: 'u16', stamp: 'u32', weight: 'u32', hashes: 'opaque', signature: 'opaque',
  }], // Settlement
  [1033, { position: 'u32', state: 'u16' }], // PositionState
  [1034, {}], // CloseRequest
  [1035, { keys: 'opaque' }], // Release
  [1036, {}], // Abandonment
  [1281, { neighbours: 'users', segments: 'opaque' }], // MaskedSegments
]);
const OF_BASA = [1025, 1036]; // the first and the last type of messages that may have the authority as a party
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
  const [entries, rest] = cutEntries(bytes);
  if (rest.length > 0) refuse('malformed', `${rest.length} bytes follow the last entry [MSG-02]`);
  return entries;
}

/** [MSG-02] The bytes of a field of some entries of a size, and what follows it. */
function cut(bytes, size) {
  if (bytes.length < 4) refuse('malformed', 'the bytes end within a count [MSG-02]');
  const end = 4 + size * bytes.readUInt32LE(0);
  if (bytes.length < end) refuse('malformed', `${bytes.length} bytes where a field needs ${end} [MSG-02]`);
  return [bytes.subarray(4, end), bytes.subarray(end)];
}

function cutEntries(bytes) {
  const [body, rest] = cut(bytes, 4);
  const entries = new Uint32Array(body.length / 4);
  for (let i = 0; i < entries.length; i += 1) entries[i] = body.readUInt32LE(4 * i);
  return [entries, rest];
}

function writeOpaque(value) {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(value.length);
  return Buffer.concat([length, value]);
}

/** An unsigned integer of 2 or 4 bytes. */
function writeNumber(size) {
  return (value) => {
    const bytes = Buffer.alloc(size);
    bytes.writeUIntLE(value, 0, size);
    return bytes;
  };
}

function cutNumber(size) {
  return (bytes) => {
    if (bytes.length < size) refuse('malformed', 'the bytes end within a number [MSG-02]');
    return [bytes.readUIntLE(0, size), bytes.subarray(size)];
  };
}

/** How a field stands in bytes: its writer, and what cuts it off. */
const BYTES = {
  u16: [writeNumber(2), cutNumber(2)],
  u32: [writeNumber(4), cutNumber(4)],
  opaque: [writeOpaque, (bytes) => cut(bytes, 1)],
  vector: [writeEntries, cutEntries],
  users: [writeEntries, cutEntries],
};

/**
 * [MSG-01] message: { type, session, round, sender, receiver, ...fields }; a field is a Buffer where it is opaque, a
 * Number where it is one number, else a Uint32Array or a list.
 */
function encodeMessage(message) {
  const header = Buffer.alloc(HEADER);
  header.writeUInt16LE(message.type, 0);
  message.session.copy(header, 2);
  header.writeUInt32LE(message.round, 18);
  header.writeUInt32LE(message.sender, 22);
  header.writeUInt32LE(message.receiver, 26);
  const body = Object.entries(TYPES.get(message.type)).map(
    ([name, kind]) => BYTES[kind][0](message[name]),
  );
  return Buffer.concat([header, ...body]);
}

/** [MSG-02] The message in some bytes, which must be of one of `types`. */
function decodeMessage(bytes, types) {
  if (bytes.length < HEADER) refuse('malformed', `${bytes.length} bytes are no header [MSG-02]`);
  const type = bytes.readUInt16LE(0);
  if (!types.includes(type)) {
    refuse(TYPES.has(type) ? 'wrong_phase' : 'malformed', `a message of type ${type}, not ${types} [MSG-02]`);
  }
  const message = {
    type,
    session: bytes.subarray(2, 18),
    round: bytes.readUInt32LE(18),
    sender: bytes.readUInt32LE(22),
    receiver: bytes.readUInt32LE(26),
  };
  let rest = bytes.subarray(HEADER);
  for (const [name, kind] of Object.entries(TYPES.get(type))) {
    [message[name], rest] = BYTES[kind][1](rest);
  }
  if (rest.length > 0) refuse('malformed', `${rest.length} bytes follow the last field [MSG-02]`);
  return message;
}

/** A number of some bytes, as a JSON integer. */
function readNumber(size) {
  return (value, name) => {
    if (!(readInteger(value, name) >= 0 && value < 256 ** size)) {
      refuse('out_of_range', `${name} = ${value} does not fit into ${size} bytes [MSG-01]`);
    }
    return value;
  };
}

/** How a field stands in a request: its reader and its writer. */
const FORMS = {
  u16: [readNumber(2), (value) => value],
  u32: [readNumber(4), (value) => value],
  opaque: [readBytes, (value) => value.toString('hex')],
  vector: [readVector, writeVector],
  users: [(value, name) => readList(value, name, readSize), (value) => Array.from(value)],
};

/** A party as it stands in an answer. */
function writeParty(number) {
  if (number === SERVER) return 'server';
  if (number === AUTHORITY) return 'authority';
  if (number >= COUNT_LIMIT) refuse('malformed', `party ${number} is neither a user nor the server`);
  return number;
}

/** Only BASA has an authority. */
function checkParties({ type, sender, receiver }) {
  const [first, last] = OF_BASA;
  if ((type < first || type > last) && [sender, receiver].includes(AUTHORITY)) {
    refuse('malformed', `a message of type ${type} is neither from nor to an authority`);
  }
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
      const kinds = Object.entries(knownType(p.type));
      checkSessionId(p.session);
      checkParties(p);
      const readers = Object.fromEntries(kinds.map(([name, kind]) => [name, FORMS[kind][0]]));
      return { bytes: encodeMessage({ ...p, ...readMembers(p.fields, 'fields', readers) }).toString('hex') };
    },
  },
  'message.decode': {
    params: { type: readType, bytes: readBytes },
    rand: {},
    run({ type, bytes }) {
      const kinds = Object.entries(knownType(type));
      const message = decodeMessage(bytes, [type]);
      checkParties(message);
      return {
        session: message.session.toString('hex'),
        round: String(message.round),
        sender: writeParty(message.sender),
        receiver: writeParty(message.receiver),
        fields: Object.fromEntries(kinds.map(([name, kind]) => [name, FORMS[kind][1](message[name])])),
      };
    },
  },
};

module.exports = { encodeMessage, decodeMessage, readEntries, writeEntries, writeParty, operations };
