#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// secagg-spec-node: LightSecAgg and its conventions behind the adapter protocol, version 1.1.
//
// Written from the text alone: spec/conventions.md, spec/lightsecagg.md, spec/secagg.md, spec/fedbuff.md,
// spec/basecagg.md, spec/basa.md, spec/heterosag.md, spec/multi-round.md and spec/adapter.md. It shares no code with
// the reference, and no idea that the text does not give. Node 20, no dependency.
//
//   node adapter.js < requests.jsonl > answers.jsonl
//   node adapter.js --draw         the same, but select.batch draws on its own
//
// The ids in brackets, such as [MOD-03], name the sentence of the text that a piece of code carries out.
// This file: 1 operations, 2 requests and answers, 3 standard input and output. Beside it: refusals, integers modulo R,
// the code, the quantiser, LightSecAgg, encodings; and with operations of their own: crypto, messages, scripts,
// signatures, the active profiles, secret sharing, pairs, staleness, BASecAgg and its parties, BASA and its parties,
// HeteroSAg with its quantiser, its plan and its averages, Multi-RoundSecAgg: selection and audit, sessions.

'use strict';

const fs = require('node:fs');
const { isUtf8 } = require('node:buffer');
const { MAX_LINE, Reject, Unsupported, refuse, checkAnswerSize, show } = require('./refusals');
const {
  add, subtract, multiply, inverse, checkModulus, checkFieldModulus, checkElements, checkLength, checkVector,
  elementwise, matrixProduct, sampleElements,
} = require('./integers');
const { checkCode, shareLength, checkWork, encode, decode, checkedDecode, checkUserList } = require('./code');
const { checkLevel, quantize, dequantize } = require('./quantizer');
const { checkLightSecAgg, checkSurvivingSet, sumOfShares, recoverSum, playRound } = require('./lightsecagg');
const { writeBlamed } = require('./scripts');
const {
  readBytes, readVector, readReals, writeVector, writeReals, readDecimal, readInteger, readCount, readSize,
  readList, readUsers, readVectors, readHeld, readDrop, readString, isObject, readMembers,
} = require('./encodings');

// ------------------------------------------------------------------------------------------------------------------
// 1. Operations (adapter, section 4)

/**
 * name -> { params, rand, run, declared }: the readers of both kinds of members, the work, and what hello says of it.
 * Where `rand` is a function, it gives the readers for a request with these params.
 */
const OPERATIONS = new Map();

function operation(name, params, rand, run, declared = {}) {
  OPERATIONS.set(name, { params, rand, run, declared });
}

// `echo` does not pass through here: see answerEcho.
operation('echo', { data: (value) => value }, {}, null);

for (const [name, arithmetic] of [['add', add], ['subtract', subtract], ['multiply', multiply]]) {
  operation(`field.${name}`, { q: readDecimal, a: readVector, b: readVector }, {}, ({ q, a, b }) => {
    checkModulus(q);
    checkLength(b.length, a.length, 'b');
    checkElements(a, q, 'a');
    checkElements(b, q, 'b');
    return { value: writeVector(elementwise(arithmetic, a, b, q)) }; // [MOD-03]
  });
}

operation('field.inverse', { q: readDecimal, a: readVector }, {}, ({ q, a }) => {
  checkFieldModulus(q);
  checkElements(a, q, 'a');
  return { value: writeVector(a.map((x) => inverse(x, q))) };
});

operation('field.matmul', {
  q: readDecimal, rows: readSize, inner: readSize, columns: readSize, a: readVector, b: readVector,
}, {}, ({ q, rows, inner, columns, a, b }) => {
  checkModulus(q);
  checkVector(a, rows * inner, q, 'a');
  checkVector(b, inner * columns, q, 'b');
  checkAnswerSize(8 * rows * columns);
  return { value: writeVector(matrixProduct(a, b, rows, inner, columns, q)) };
});

operation('sample.field', { q: readDecimal, n: readSize, bytes: readBytes }, {}, ({ q, n, bytes }) => {
  checkModulus(q);
  return { value: writeVector(sampleElements(bytes, n, q)) };
});

operation('mds.encode', {
  q: readDecimal, N: readCount, U: readCount, T: readCount, mask: readVector,
}, { noise: readVector }, ({ q, N, U, T, mask }, { noise }) => {
  checkCode(q, N, U, T);
  if (mask.length === 0) refuse('bad_param', 'an empty vector cannot be shared [MDS-01]');
  const L = shareLength(mask.length, U, T);
  checkElements(mask, q, 'mask');
  checkVector(noise, T * L, q, 'noise');
  checkAnswerSize(N * (8 * L + 3));
  checkWork(N * U * L);
  return { shares: encode(q, N, U, T, mask, noise).map(writeVector) };
});

operation('mds.decode', {
  q: readDecimal, N: readCount, U: readCount, T: readCount, d: readSize, users: readUsers, shares: readVectors,
}, {}, ({ q, N, U, T, d, users, shares }) => {
  checkCode(q, N, U, T);
  if (d === 0) refuse('bad_param', 'd = 0: there is nothing to decode [MDS-01]');
  return { mask: writeVector(checkedDecode(q, N, U, T, d, users, shares)) };
});

operation('quantizer.quantize', {
  q: readDecimal, level: readDecimal, weight: readCount, x: readReals,
}, { rounding: readReals }, ({ q, level, weight, x }, { rounding }) => {
  checkModulus(q);
  checkLevel(level);
  if (weight < 1) refuse('bad_param', `the weight ${weight} is below 1 [QNT-08]`);
  checkLength(rounding.length, x.length, 'rounding');
  return { value: writeVector(quantize(q, level, weight, x, rounding)) };
});

operation('quantizer.dequantize', {
  q: readDecimal, level: readDecimal, format: readString, value: readVector,
}, {}, ({ q, level, format, value }) => {
  checkModulus(q);
  checkLevel(level);
  if (format !== 'binary64' && format !== 'binary32') refuse('bad_param', `no such format: ${show(format)}`);
  checkElements(value, q, 'value');
  return { x: writeReals(dequantize(q, level, format, value), format) };
});

operation('lightsecagg.mask', { q: readDecimal, update: readVector, mask: readVector }, {}, ({ q, update, mask }) => {
  checkFieldModulus(q); // q is a prime and d at least 1 [LSA-01]
  checkLength(mask.length, update.length, 'mask');
  if (update.length < 1) refuse('bad_param', 'an update has at least one element [LSA-01]');
  checkElements(update, q, 'update'); // [LSA-03]
  checkElements(mask, q, 'mask');
  return { masked: writeVector(elementwise(add, update, mask, q)) }; // [LSA-02]
});

operation('lightsecagg.aggregate_shares', {
  q: readDecimal, N: readCount, T: readCount, surviving: readUsers, held: readHeld,
}, {}, ({ q, N, T, surviving, held }) => {
  checkFieldModulus(q);
  // [LSA-01], as far as it can be seen from N and T.
  if (!(T >= 1 && N >= T + 2 && q > N)) refuse('bad_param', `not allowed together: q=${q}, N=${N}, T=${T} [LSA-01]`);
  checkUserList(held.map(([user]) => user), N, 'held');
  for (const [user, share] of held) {
    if (share.length < 1) refuse('bad_param', 'a share has at least one element [LSA-01]');
    checkVector(share, held[0][1].length, q, `the share of user ${user}`);
  }
  const shares = new Map(held);
  checkSurvivingSet(surviving, N, T, shares); // [LSA-09] [LSA-10] [LSA-11]
  return { share: writeVector(sumOfShares(surviving, shares, q)) };
});

operation('lightsecagg.recover', {
  q: readDecimal, N: readCount, D: readCount, U: readCount, T: readCount, d: readCount,
  surviving: readUsers, masked: readVectors, users: readUsers, shares: readVectors,
}, {}, (p) => {
  const { q, N, U, T, d, surviving, masked, users, shares } = p;
  checkLightSecAgg(p);
  const members = checkUserList(surviving, N, 'surviving');
  checkLength(masked.length, surviving.length, 'masked');
  checkLength(shares.length, users.length, 'shares');
  for (const user of users) {
    if (!members.has(user)) refuse('unknown_peer', `user ${user} answers and does not survive [LSA-16]`);
  }
  checkUserList(users, N, 'users');
  if (members.size < Math.max(U, T + 2)) {
    refuse('below_threshold', `${members.size} users survive, fewer than U = ${U} or T + 2 = ${T + 2} [LSA-07]`);
  }
  if (users.length < U) refuse('below_threshold', `${users.length} answers are fewer than U = ${U} [LSA-14]`);
  const L = shareLength(d, U, T);
  masked.forEach((vector, i) => checkVector(vector, d, q, `masked[${i}]`));
  shares.forEach((vector, i) => checkVector(vector, L, q, `shares[${i}]`));
  checkWork(U * users.length + U * (users.length - T) * L);
  return { aggregate: writeVector(recoverSum(p, masked, users, shares)) };
});

operation('lightsecagg.round', {
  q: readDecimal, N: readCount, D: readCount, U: readCount, T: readCount, d: readCount,
  updates: readVectors, drop: readDrop,
}, { masks: readVectors, noises: readVectors }, (p, { masks, noises }) => {
  const { q, N, U, T, d, updates, drop } = p;
  checkLightSecAgg(p);
  const L = shareLength(d, U, T);
  checkLength(updates.length, N, 'updates');
  checkLength(masks.length, N, 'masks');
  checkLength(noises.length, N, 'noises');
  // All that is given is checked, also what belongs to a user that is gone before it would use it [MOD-06] [MOD-07].
  for (let i = 0; i < N; i += 1) {
    checkVector(updates[i], d, q, `updates[${i}]`); // [LSA-03]
    checkVector(masks[i], d, q, `masks[${i}]`);
    checkVector(noises[i], T * L, q, `noises[${i}]`);
  }
  checkUserList([...drop.share, ...drop.upload, ...drop.recover], N, 'drop');
  checkWork(N * N * U * L);
  const gone = { share: new Set(drop.share), upload: new Set(drop.upload), recover: new Set(drop.recover) };
  const { aggregate, contributors } = playRound(p, updates, masks, noises, gone);
  return { aggregate: writeVector(aggregate), contributors };
});

const MODULES = [
  './crypto', './messages', './scripts', './signatures', './active', './shamir', './pairs', './staleness', './basecagg',
  './basecagg_parties', './basecagg_active', './basa', './basa_parties', './levels', './segments', './averages', './heterosag',
  './selection', './audit', './sessions',
];
for (const module of MODULES) {
  for (const [name, { params, rand, run, declared }] of Object.entries(require(module).operations)) {
    operation(name, params, rand, run, declared);
  }
}

// ------------------------------------------------------------------------------------------------------------------
// 2. Requests and answers

/** Section 2. [ADP-07] */
function hello(params) {
  if (!isObject(params)) refuse('malformed', 'params is not an object');
  const readers = { protocol: (value, name) => readList(value, name, readInteger) };
  if (Object.hasOwn(params, 'max_line')) readers.max_line = readInteger;
  readMembers(params, 'params', readers);
  const operations = {};
  for (const [name, { declared }] of OPERATIONS) operations[name] = declared;
  return {
    protocol: [1, 1],
    implementation: { name: 'secagg-spec-node', version: '0.1.0', language: 'javascript' },
    randomness: 'explicit',
    operations,
    policy: { 'mds.code': 'vandermonde', 'quantizer.rounding': 'stochastic', 'quantizer.middle': 'positive',
      'shamir.field': 'mersenne521', 'prg.stream': 'aes-ctr' },
  };
}

const rejection = (code, message, blamed) => `"reject":${JSON.stringify({ code, message, blamed })}`;

/** The answer to one line, as text without a line feed. Only sessions are kept between calls [ADP-03]. */
function answerLine(line) {
  let request;
  try {
    request = JSON.parse(line);
  } catch (problem) {
    if (!(problem instanceof SyntaxError)) throw problem;
    return `{"id":null,${rejection('malformed', 'the line is not JSON')}}`;
  }
  const fractions = hasFraction(line);
  if (!isObject(request) || !Number.isInteger(request.id) || (fractions && hasFraction(memberText(line, 'id')))) {
    return `{"id":null,${rejection('malformed', 'the line is not an object with an integer id')}}`;
  }
  // An id that a Number does not hold exactly is given back as it was written.
  const id = Number.isSafeInteger(request.id) ? request.id : memberText(line, 'id');
  let body;
  try {
    if (fractions) refuse('malformed', 'a number has a fraction or an exponent, and no operation takes any [ADP-12]');
    body = answerRequest(request, line);
    if (body.length > MAX_LINE) throw new Unsupported('the answer does not fit into a line');
  } catch (problem) {
    if (problem instanceof Reject) body = rejection(problem.code, problem.message, writeBlamed(problem));
    else if (problem instanceof Unsupported) body = '"unsupported":true';
    else body = `"error":${JSON.stringify({ message: String(problem && problem.message) })}`;
  }
  return `{"id":${id},${body}}`;
}

function answerRequest(request, line) {
  const { op } = request;
  if (typeof op !== 'string') refuse('malformed', 'op is not a string');
  const found = OPERATIONS.get(op);
  if (found === undefined && op !== 'hello') throw new Unsupported('not declared'); // [ADP-04]
  for (const member of Object.keys(request)) {
    if (!['id', 'op', 'params', 'rand'].includes(member)) {
      refuse('malformed', `a request has no member ${show(member)}`);
    }
  }
  if (!Object.hasOwn(request, 'params')) refuse('malformed', 'the request lacks params');
  // [RND-04] Exactly the names that the operation lists; without any, an absent `rand` is the same as an empty one.
  const readRand = (readers) => readMembers(Object.hasOwn(request, 'rand') ? request.rand : {}, 'rand', readers);
  if (op === 'hello') {
    readRand({});
    return `"result":${JSON.stringify(hello(request.params))}`;
  }
  const params = readMembers(request.params, 'params', found.params);
  const rand = readRand(typeof found.rand === 'function' ? found.rand(params) : found.rand);
  if (op === 'echo') return `"result":{"data":${memberText(line, 'params', 'data')}}`;
  return `"result":${JSON.stringify(found.run(params, rand))}`;
}

/**
 * The text of a member of the request (or, with two names, of a member of that member), as it was written: so `echo`
 * gives numbers back that a Number would round. The line is known to be JSON; of equal names the last one counts.
 */
function memberText(line, ...path) {
  let start = skipSpace(line, 0);
  let end = line.length;
  for (const name of path) {
    let at = skipSpace(line, start + 1); // behind the brace
    let found = null;
    while (line[at] === '"') {
      const keyEnd = skipValue(line, at);
      const valueStart = skipSpace(line, skipSpace(line, keyEnd) + 1); // behind the colon
      const valueEnd = skipValue(line, valueStart);
      if (JSON.parse(line.slice(at, keyEnd)) === name) found = [valueStart, valueEnd];
      at = skipSpace(line, valueEnd);
      if (line[at] === ',') at = skipSpace(line, at + 1);
    }
    [start, end] = found;
  }
  return line.slice(start, end);
}

/** Whether a number of a JSON text is written with a fraction or an exponent: a Number does not show 1.0 any more. */
function hasFraction(text) {
  for (let at = 0; ;) {
    const quote = text.indexOf('"', at);
    if (/[0-9][.eE]/.test(quote < 0 ? text.slice(at) : text.slice(at, quote))) return true;
    if (quote < 0) return false;
    at = skipString(text, quote);
  }
}

function skipSpace(text, at) {
  while (at < text.length && text.charCodeAt(at) <= 32) at += 1;
  return at;
}

function skipString(text, at) {
  for (let quote = text.indexOf('"', at + 1); ; quote = text.indexOf('"', quote + 1)) {
    let before = quote - 1;
    while (text.charCodeAt(before) === 92) before -= 1; // backslashes
    if ((quote - before) % 2 === 1) return quote + 1; // an even number of them: the quote is not escaped
  }
}

/** The index behind the JSON value that starts at `at`. */
function skipValue(text, at) {
  let depth = 0;
  for (let i = at; i < text.length;) {
    switch (text.charCodeAt(i)) {
      case 34: // "
        i = skipString(text, i);
        if (depth === 0) return i;
        break;
      case 91: // [
      case 123: // {
        depth += 1;
        i += 1;
        break;
      case 93: // ]
      case 125: // }
        if (depth === 0) return i; // the end of a number or word inside the enclosing value
        depth -= 1;
        i += 1;
        if (depth === 0) return i;
        break;
      case 9: case 13: case 32: case 44: // white space or a comma
        if (depth === 0) return i;
        i += 1;
        break;
      default:
        i += 1;
    }
  }
  return text.length;
}

// ------------------------------------------------------------------------------------------------------------------
// 3. Standard input and output. Both are used synchronously: one line, one answer, the next line [ADP-01].

const HARD_LIMIT = 4 * MAX_LINE; // a longer line is not kept; it is refused once it has ended

/** fs.readSync or fs.writeSync, also where somebody has made the pipe non-blocking. */
function patiently(call) {
  for (;;) {
    try {
      return call();
    } catch (problem) {
      if (problem.code === 'EOF') return 0; // how some systems tell the end of input
      if (problem.code !== 'EAGAIN' && problem.code !== 'EINTR') throw problem;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function writeLine(text) {
  const bytes = Buffer.from(text + '\n', 'utf8');
  let done = 0;
  while (done < bytes.length) done += patiently(() => fs.writeSync(1, bytes, done, bytes.length - done));
}
function answerBytes(bytes) {
  let answer;
  try {
    answer = isUtf8(bytes)
      ? answerLine(bytes.toString('utf8'))
      : `{"id":null,${rejection('malformed', 'the line is not UTF-8')}}`;
  } catch (problem) {
    answer = `{"id":null,"error":${JSON.stringify({ message: String(problem && problem.message) })}}`;
  }
  writeLine(answer);
}

function main() {
  let buffer = Buffer.allocUnsafe(1 << 16);
  let start = 0; // where the current line starts
  let end = 0; // where what was read ends
  let overlong = false; // inside a line above the hard limit
  for (;;) {
    const count = patiently(() => fs.readSync(0, buffer, end, buffer.length - end, null));
    if (count === 0) break;
    let from = end;
    end += count;
    const read = buffer.subarray(0, end);
    for (let feed = read.indexOf(10, from); feed >= 0; feed = read.indexOf(10, from)) {
      if (overlong) writeLine(`{"id":null,${rejection('malformed', 'the line is too long')}}`);
      else answerBytes(buffer.subarray(start, feed));
      overlong = false;
      start = feed + 1;
      from = start;
    }
    if (overlong || end - start > HARD_LIMIT) {
      overlong = true;
      start = end;
    }
    if (start === end) {
      start = 0;
      end = 0;
    } else if (end === buffer.length) {
      // No room: move the unfinished line to the front of a buffer that is at most half full.
      const rest = end - start;
      const next = 2 * rest > buffer.length ? Buffer.allocUnsafe(2 * buffer.length) : buffer;
      buffer.copy(next, 0, start, end);
      buffer = next;
      start = 0;
      end = rest;
    }
  }
  if (end > start) answerBytes(buffer.subarray(start, end)); // a last line without its line feed
}

try {
  main();
} catch (problem) {
  if (problem.code !== 'EPIPE') throw problem; // nobody reads the answers any more
}
