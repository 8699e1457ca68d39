// SPDX-License-Identifier: Apache-2.0
//
// The helper for adapters in JavaScript: the adapter protocol (spec/adapter.md) in one file, for Node 20 and newer.
//
//   const { Adapter, Reject, decimal, vector } = require('./secagg_adapter');
//
//   const adapter = new Adapter('my-library', '1.2.3');
//   adapter.operation('field.add', { q: decimal, a: vector, b: vector }, ({ q, a, b }) => ({
//     value: a.map((x, i) => Number((BigInt(x) + BigInt(b[i])) % q)),
//   }));
//   adapter.run();
//
// A handler receives the members of `params`, converted by their readers, and those of `rand` as its second argument.
// Members of the wrong form have already been refused. The handler returns the members of `result`, or throws Reject;
// any other exception becomes an `error`. It may be async. Text printed with console.log goes to standard error.
//
// In results, a Uint32Array is a vector of elements, a Float64Array or Float32Array a vector of real numbers, a Buffer
// bytes, and a BigInt a decimal string. Lists and objects may contain them.

'use strict';

const fs = require('node:fs');
const { isUtf8 } = require('node:buffer');

const MAX_LINE = 67108864;
const DEEPEST = 1000; // the most levels of nesting
const DIGITS = 40; // of the longest decimal string that a range could contain

/** The implementation refuses on purpose; `code` is one of spec/adapter.md, section 5. */
class Reject extends Error {
  constructor(code, message = code, blamed = []) {
    super(message);
    this.code = code;
    this.blamed = blamed;
  }

  /** The member `reject` of an answer, or of an entry of a script. */
  answer() {
    return { code: this.code, message: this.message, ...(this.blamed.length ? { blamed: this.blamed } : {}) };
  }
}

/** These parameters are outside the adapter's declaration. */
class Unsupported extends Error {}

function malformed(message) {
  throw new Reject('malformed', message);
}

// ---------------------------------------------------------------------------------------------- readers of members

/** Any JSON value whose numbers are integers. */
function json(value, name) {
  if (typeof value === 'number') return integer(value, name);
  if (Array.isArray(value)) return value.map((entry) => json(entry, name));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([member, entry]) => [member, json(entry, name)]));
}

function integer(value, name) {
  if (value === Infinity || value === -Infinity) throw new Reject('bad_param', `${name} has too many digits`);
  if (!Number.isInteger(value)) malformed(`${name} is not a JSON integer`);
  return value;
}

function flag(value, name) {
  if (typeof value !== 'boolean') malformed(`${name} is neither true nor false`);
  return value;
}

function text(value, name) {
  if (typeof value !== 'string') malformed(`${name} is not a string`);
  return value;
}

/** A decimal string, as a BigInt. */
function decimal(value, name) {
  if (typeof value !== 'string' || !/^-?(0|[1-9][0-9]*)$/.test(value)) malformed(`${name} is not a decimal string`);
  if (value.length > DIGITS) throw new Reject('bad_param', `${name} has ${value.length} digits`);
  return BigInt(value);
}

/** Lowercase hex digits, as a Buffer. */
function bytes(value, name) {
  return unhex(value, name, 1);
}

/** Elements of 4 bytes, as a Uint32Array. */
function vector(value, name) {
  const data = unhex(value, name, 4);
  return Uint32Array.from({ length: data.length / 4 }, (_, i) => data.readUInt32LE(4 * i));
}

/** Numbers of 8 bytes, as a Float64Array. */
function reals(value, name) {
  const data = unhex(value, name, 8);
  return Float64Array.from({ length: data.length / 8 }, (_, i) => data.readDoubleLE(8 * i));
}

function unhex(value, name, width) {
  if (typeof value !== 'string' || value.length % (2 * width) !== 0 || /[^0-9a-f]/.test(value)) {
    malformed(`${name} is not a string of lowercase hex digits, ${2 * width} for each entry`);
  }
  return Buffer.from(value, 'hex');
}

/** The reader of a list; users are `list(integer)`, shares `list(vector)`. */
function list(reader) {
  return (value, name) => {
    if (!Array.isArray(value)) malformed(`${name} is not a list`);
    return value.map((entry, i) => reader(entry, `${name}[${i}]`));
  };
}

/** The reader of a list with one value for each reader; `held` is `list(tuple(integer, vector))`. */
function tuple(...readers) {
  return (value, name) => {
    const fits = Array.isArray(value) && value.length === readers.length;
    if (!fits) malformed(`${name} is not a list of ${readers.length}`);
    return readers.map((reader, i) => reader(value[i], `${name}[${i}]`));
  };
}

/** The reader of an object with exactly these members. */
function object(readers) {
  return (value, name) => {
    if (!isObject(value)) malformed(`${name} is not an object`);
    const unknown = Object.keys(value).find((member) => !Object.hasOwn(readers, member));
    if (unknown !== undefined) malformed(`${name} has no member ${JSON.stringify(unknown.slice(0, 40))}`);
    const missing = Object.keys(readers).find((member) => !Object.hasOwn(value, member));
    if (missing !== undefined) malformed(`${name} lacks ${missing}`);
    return Object.fromEntries(
      Object.entries(readers).map(([member, reader]) => [member, reader(value[member], member)]),
    );
  };
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// ------------------------------------------------------------------------------------------------------ the adapter

/**
 * The operations of one implementation. `randomness` is the grade of operations that sample: explicit, seeded or none.
 * `policy` and `reject_map` are as in spec/adapter.md, section 2.
 */
class Adapter {
  constructor(name, version, { randomness = 'explicit', policy = {}, reject_map = {} } = {}) {
    const implementation = { name, version, language: 'javascript' };
    this.hello = { protocol: [1, 0], implementation, randomness, operations: {}, policy, reject_map };
    this.operations = new Map();
  }

  /**
   * Declare an operation: the readers of its members, its handler, and its entry in hello (`ranges`, `parameter_sets`,
   * `randomness`, `composed`, `parties`). The option `rand` holds the readers of the sampled values; if they depend on
   * the params, as in session.new, it is a function of the params.
   */
  operation(name, members, handler, { rand = {}, ...declaration } = {}) {
    this.hello.operations[name] = declaration;
    this.operations.set(name, { members, handler, rand, grade: declaration.randomness ?? this.hello.randomness });
  }

  /** The answer to one line, given as bytes without its line feed. */
  async answer(line) {
    const request = parsed(line);
    if (!isObject(request) || !Number.isInteger(request.id)) {
      return { id: null, reject: { code: 'malformed', message: 'a request is a JSON object with an integer id' } };
    }
    const { id } = request;
    try {
      return { id, result: encoded(await this.result(request)) };
    } catch (problem) {
      if (problem instanceof Reject) return { id, reject: problem.answer() };
      if (problem instanceof Unsupported) return { id, unsupported: true };
      return { id, error: { message: String(problem), trace: String(problem && problem.stack) } };
    }
  }

  async result(request) {
    const unknown = Object.keys(request).find((member) => !['id', 'op', 'params', 'rand'].includes(member));
    if (unknown !== undefined) malformed(`a request has no member ${JSON.stringify(unknown.slice(0, 40))}`);
    const { op, params, rand = {} } = request;
    if (typeof op !== 'string') malformed('op is not a string');
    if (!isObject(params) || !isObject(rand)) malformed('params is an object, and so is rand where it is given');
    if (op === 'hello') return this.hello;
    const found = this.operations.get(op);
    if (found === undefined) throw new Unsupported();
    const read = object(found.members)(params, 'params');
    return found.handler(read, object(sampled(found, read))(rand, 'rand'));
  }

  /** Answer requests until the end of input. Only answers go to the process's standard output. */
  async run() {
    console.log = console.info = console.debug = console.error;
    process.stdout.write = process.stderr.write.bind(process.stderr);
    for (const line of lines()) writeLine(JSON.stringify(await this.answer(line)));
  }
}

/** The readers of `rand` for the grade of an operation. */
function sampled({ rand, grade }, params) {
  const readers = typeof rand === 'function' ? rand(params) : rand;
  if (grade === 'explicit') return readers;
  return grade === 'seeded' && Object.keys(readers).length > 0 ? { seed } : {};
}

function seed(value, name) {
  const data = bytes(value, name);
  if (data.length !== 32) malformed(`${name} has ${data.length} bytes instead of 32`);
  return data;
}

/** A result as JSON; numbers in it must be integers. */
function encoded(value) {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (value instanceof Uint32Array) return packed(value, 4, 'writeUInt32LE');
  if (value instanceof Float64Array) return packed(value, 8, 'writeDoubleLE');
  if (value instanceof Float32Array) return packed(value, 4, 'writeFloatLE');
  if (Array.isArray(value)) return value.map(encoded);
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, encoded(entry)]));
  const plain = value === null || ['string', 'boolean'].includes(typeof value) || Number.isSafeInteger(value);
  if (!plain) throw new TypeError(`${String(value)} cannot stand in a result`);
  return value;
}

function packed(values, width, write) {
  const data = Buffer.allocUnsafe(width * values.length);
  values.forEach((value, i) => data[write](value, width * i));
  return data.toString('hex');
}

// ------------------------------------------------------------------------------------------------------ JSON, lines

/**
 * The JSON value of a line, or undefined. JSON.parse reads 1.0 as 1, but 1.0 is not an integer here. Therefore a number
 * with a fraction or an exponent becomes NaN, and an integer that a Number cannot represent exactly becomes infinite.
 */
function parsed(line) {
  if (!isUtf8(line)) return undefined;
  try {
    return new Parser(line.toString('utf8')).whole();
  } catch (problem) {
    if (problem instanceof SyntaxError || problem instanceof RangeError) return undefined;
    throw problem;
  }
}

class Parser {
  constructor(source) {
    this.source = source;
    this.at = 0;
  }

  whole() {
    const value = this.value(0);
    if (this.next() !== undefined) this.fail();
    return value;
  }

  fail() {
    throw new SyntaxError(`this is not JSON at position ${this.at}`);
  }

  /** The next character that is not white space, without consuming it. */
  next() {
    while (this.at < this.source.length && ' \t\r\n'.includes(this.source[this.at])) this.at += 1;
    return this.source[this.at];
  }

  /** Whether the next character is this one; if so, it is consumed. */
  passes(sign) {
    if (this.next() !== sign) return false;
    this.at += 1;
    return true;
  }

  value(depth) {
    if (depth > DEEPEST) this.fail();
    const sign = this.next();
    if (sign === '"') return this.string();
    if (sign === '[') return this.list(depth);
    if (sign === '{') return this.object(depth);
    return this.word();
  }

  list(depth) {
    const entries = [];
    this.at += 1;
    if (this.passes(']')) return entries;
    do entries.push(this.value(depth + 1)); while (this.passes(','));
    if (!this.passes(']')) this.fail();
    return entries;
  }

  object(depth) {
    const entries = [];
    this.at += 1;
    if (this.passes('}')) return {};
    do {
      if (this.next() !== '"') this.fail();
      const name = this.string();
      if (!this.passes(':')) this.fail();
      entries.push([name, this.value(depth + 1)]);
    } while (this.passes(','));
    if (!this.passes('}')) this.fail();
    return Object.fromEntries(entries);
  }

  string() {
    const start = this.at;
    for (let end = this.source.indexOf('"', start + 1); end >= 0; end = this.source.indexOf('"', end + 1)) {
      let before = end - 1;
      while (this.source[before] === '\\') before -= 1;
      if ((end - before) % 2 === 1) {
        this.at = end + 1;
        return JSON.parse(this.source.slice(start, this.at));
      }
    }
    return this.fail();
  }

  word() {
    const pattern = /(true|false|null)|-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.source);
    if (match === null) this.fail();
    this.at = pattern.lastIndex;
    if (match[1]) return JSON.parse(match[1]);
    if (match[2] || match[3]) return NaN;
    const number = Number(match[0]);
    return Number.isSafeInteger(number) ? number : number * Infinity;
  }
}

/** The lines of standard input, without their line feeds; a line that is too long becomes empty. */
function* lines() {
  let parts = [];
  let size = 0;
  for (let chunk = readChunk(); chunk.length > 0; chunk = readChunk()) {
    let start = 0;
    for (let feed = chunk.indexOf(10); feed >= 0; feed = chunk.indexOf(10, start)) {
      size += feed - start;
      yield size < MAX_LINE ? Buffer.concat([...parts, chunk.subarray(start, feed)]) : Buffer.alloc(0);
      [parts, size, start] = [[], 0, feed + 1];
    }
    size += chunk.length - start;
    if (size < MAX_LINE) parts.push(chunk.subarray(start));
    else parts = [];
  }
  if (size > 0) yield size < MAX_LINE ? Buffer.concat(parts) : Buffer.alloc(0);
}

function readChunk() {
  const chunk = Buffer.allocUnsafe(1 << 18);
  return chunk.subarray(0, patiently(() => fs.readSync(0, chunk, 0, chunk.length, null)));
}

function writeLine(line) {
  const data = Buffer.from(`${line}\n`);
  for (let done = 0; done < data.length;) done += patiently(() => fs.writeSync(1, data, done, data.length - done));
}

/** Read or write synchronously, even on a non-blocking pipe. */
function patiently(call) {
  for (;;) {
    try {
      return call();
    } catch (problem) {
      if (problem.code === 'EOF') return 0;
      if (problem.code === 'EPIPE') process.exit(0);
      if (problem.code !== 'EAGAIN' && problem.code !== 'EINTR') throw problem;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

module.exports = {
  Adapter, Reject, Unsupported, MAX_LINE, json, integer, flag, text, decimal, bytes, vector, reals, list, tuple, object,
};
