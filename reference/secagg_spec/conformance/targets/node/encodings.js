// SPDX-License-Identifier: Apache-2.0
//
// Encodings (adapter, section 3). Each reader takes a JSON value and a name, and refuses any other form of value as
// `malformed`.

'use strict';

const { COUNT_LIMIT, SERVER, AUTHORITY, refuse, show } = require('./refusals');

/** Bytes as lowercase hex digits. */
function readBytes(value, name) {
  if (typeof value !== 'string' || value.length % 2 !== 0 || /[^0-9a-f]/.test(value)) {
    refuse('malformed', `${name} is not a string of pairs of lowercase hex digits`);
  }
  return Buffer.from(value, 'hex');
}

function readWords(value, name, size) {
  const bytes = readBytes(value, name);
  if (bytes.length % size !== 0) refuse('malformed', `${name} is not a sequence of ${size}-byte numbers`);
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

function readVector(value, name) {
  const view = readWords(value, name, 4);
  const vector = new Uint32Array(view.byteLength / 4);
  for (let i = 0; i < vector.length; i += 1) vector[i] = view.getUint32(4 * i, true);
  return vector;
}

function readReals(value, name) {
  const view = readWords(value, name, 8);
  const vector = new Float64Array(view.byteLength / 8);
  for (let i = 0; i < vector.length; i += 1) vector[i] = view.getFloat64(8 * i, true);
  return vector;
}

function writeVector(vector) {
  const bytes = Buffer.allocUnsafe(4 * vector.length);
  for (let i = 0; i < vector.length; i += 1) bytes.writeUInt32LE(vector[i], 4 * i);
  return bytes.toString('hex');
}

function writeReals(vector, format) {
  const size = format === 'binary64' ? 8 : 4;
  const bytes = Buffer.allocUnsafe(size * vector.length);
  for (let i = 0; i < vector.length; i += 1) {
    if (size === 8) bytes.writeDoubleLE(vector[i], 8 * i);
    else bytes.writeFloatLE(vector[i], 4 * i);
  }
  return bytes.toString('hex');
}

/**
 * A modulus or a level: a decimal string. Whoever asks checks the range; a string of more digits than any range has
 * becomes an infinity, which no range holds. A number that is not written as an integer breaks QNT-08 (a level that is
 * no integer) rather than the form of a request.
 */
function readDecimal(value, name) {
  if (typeof value !== 'string' || value === '' || /[^0-9.eE+-]/.test(value)) {
    refuse('malformed', `${name} is not a decimal string: ${show(value)}`);
  }
  const negative = value[0] === '-';
  const digits = negative ? value.slice(1) : value;
  if (digits === '' || /[^0-9]/.test(digits) || (digits[0] === '0' && value !== '0')) {
    refuse('bad_param', `${name} is not an integer in decimal digits: ${show(value)}`);
  }
  const magnitude = digits.length > 15 ? Infinity : Number(digits);
  return negative ? -magnitude : magnitude;
}

/** A JSON integer; its range is checked where it is used. */
function readInteger(value, name) {
  if (!Number.isInteger(value)) refuse('malformed', `${name} is not an integer: ${show(value)}`);
  return value;
}

/** A count or a weight: a JSON integer below 2**31. */
function readCount(value, name) {
  readInteger(value, name);
  if (value >= COUNT_LIMIT) refuse('bad_param', `${name} = ${value} is not below 2**31`);
  return value;
}

/** A count that may be 0 and not less. */
function readSize(value, name) {
  readCount(value, name);
  if (value < 0) refuse('bad_param', `${name} = ${value} is below 0`);
  return value;
}

function readList(value, name, readItem) {
  if (!Array.isArray(value)) refuse('malformed', `${name} is not a list`);
  return value.map((item, i) => readItem(item, `${name}[${i}]`));
}

/** The reader of a list of a few values, each of a kind of its own. */
function readTuple(...readers) {
  return (value, name) => {
    if (!Array.isArray(value) || value.length !== readers.length) {
      refuse('malformed', `${name} is not a list of ${readers.length}`);
    }
    return readers.map((reader, i) => reader(value[i], name));
  };
}

/** The number of a round: a decimal string of an integer below 2**32. */
function readRound(value, name) {
  const number = readDecimal(value, name);
  if (!(number >= 0 && number < 4294967296)) refuse('out_of_range', `${name} = ${value} is not below 2**32`);
  return number;
}

/** A party: a user's number, "server", or "authority". */
function readParty(value, name) {
  if (value === 'authority') return AUTHORITY;
  return value === 'server' ? SERVER : readSize(value, name);
}

const readUsers = (value, name) => readList(value, name, readInteger);
const readVectors = (value, name) => readList(value, name, readVector);

/** `held`: a list of [user, vector]. */
const readHeld = (value, name) => readList(value, name, readTuple(readInteger, readVector));

/** `drop`: three lists of users, by phase. */
function readDrop(value, name) {
  return readMembers(value, name, { share: readUsers, upload: readUsers, recover: readUsers });
}

function readString(value, name) {
  if (typeof value !== 'string') refuse('malformed', `${name} is not a string`);
  return value;
}

function readBoolean(value, name) {
  if (typeof value !== 'boolean') refuse('malformed', `${name} is neither true nor false`);
  return value;
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** [ADP-05] [RND-04] An object with exactly the members that `readers` names, each read by its reader. */
function readMembers(object, name, readers) {
  if (!isObject(object)) refuse('malformed', `${name} is not an object`);
  for (const member of Object.keys(object)) {
    if (!Object.hasOwn(readers, member)) refuse('malformed', `${name} holds an unknown member ${show(member)}`);
  }
  const read = {};
  for (const member of Object.keys(readers)) {
    if (!Object.hasOwn(object, member)) refuse('malformed', `${name} lacks the member ${member}`);
    read[member] = readers[member](object[member], `${name}.${member}`);
  }
  return read;
}

module.exports = {
  readBytes, readWords, readVector, readReals, writeVector, writeReals, readDecimal, readInteger, readCount,
  readSize, readRound, readParty, readList, readTuple, readUsers, readVectors, readHeld, readDrop, readString,
  readBoolean, isObject, readMembers,
};
