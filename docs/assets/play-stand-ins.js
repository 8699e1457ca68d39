// What the modules of the Node implementation need beside JavaScript, for a page: Buffer, and the part of node:crypto that
// they use. For display only: the arithmetic, the steps and the messages of "Play a round" are those of the modules, but
// keys, hashes, streams and seals are the weak stand-ins below, with which nothing must be protected.
globalThis.playStandIns = (() => {
  class Buffer extends Uint8Array {
    static from(value, encoding) {
      if (typeof value !== "string") return super.from(value);
      if (encoding === "hex") return super.from(value.match(/../g) ?? [], (pair) => parseInt(pair, 16));
      return super.from(value, (letter) => letter.charCodeAt(0));
    }
    static alloc(size) {
      return new Buffer(size);
    }
    static allocUnsafe(size) {
      return new Buffer(size);
    }
    static concat(list) {
      const all = new Buffer(list.reduce((size, one) => size + one.length, 0));
      let at = 0;
      for (const one of list) {
        all.set(one, at);
        at += one.length;
      }
      return all;
    }
    get view() {
      return new DataView(this.buffer, this.byteOffset, this.length);
    }
    toString(encoding) {
      if (encoding !== "hex") throw new Error("bytes are written as hexadecimal digits only");
      return Array.from(this, (byte) => byte.toString(16).padStart(2, "0")).join("");
    }
    equals(other) {
      return this.length === other.length && this.every((byte, at) => byte === other[at]);
    }
    copy(target, at) {
      target.set(this, at);
    }
    readUInt16LE(at = 0) {
      return this.view.getUint16(at, true);
    }
    readUInt32LE(at = 0) {
      return this.view.getUint32(at, true);
    }
    readUIntLE(at, size) {
      return Array.from(this.subarray(at, at + size)).reduceRight((sum, byte) => 256 * sum + byte, 0);
    }
    readBigUInt64BE(at = 0) {
      return this.view.getBigUint64(at);
    }
    writeUInt16LE(number, at = 0) {
      this.view.setUint16(at, number, true);
    }
    writeUInt32LE(number, at = 0) {
      this.view.setUint32(at, number, true);
    }
    writeUIntLE(number, at, size) {
      for (let k = 0; k < size; k += 1) this[at + k] = Math.floor(number / 256 ** k);
    }
    writeDoubleBE(number, at = 0) {
      this.view.setFloat64(at, number);
    }
  }

  // A hash of 32 bytes: each byte is stirred into one of eight words.
  function hash(...parts) {
    const words = new Uint32Array(8);
    let at = 0;
    const stir = (byte) => {
      const word = Math.imul(words[at] ^ byte ^ words[(at + 7) % 8] ^ 0x9e3779b9, 0x85ebca6b);
      words[at] = word ^ (word >>> 13);
      at = (at + 1) % 8;
    };
    for (const part of parts) for (const byte of [...part, part.length & 255]) stir(byte);
    for (let k = 0; k < 64; k += 1) stir(k);
    return Buffer.from(new Uint8Array(words.buffer));
  }

  // The pseudo-random generator: word k of the stream of a key. A probe replaces it to see what depends on which stream.
  const probe = { word: null };
  function stream(key) {
    let next = 0;
    const seed = hash(key).readUInt32LE();
    const name = key.toString("hex");
    const word = () => {
      const mixed = Math.imul(seed ^ Math.imul((next += 1), 0x9e3779b9), 0xc2b2ae35);
      return Math.imul(mixed ^ (mixed >>> 15), 0x27d4eb2f);
    };
    return {
      update() {
        const words = new Uint32Array(8); // the module asks again if it needs more
        if (probe.word) words.fill(probe.word(name));
        else for (let at = 0; at < words.length; at += 1) words[at] = word();
        return new Buffer(words.buffer);
      },
    };
  }

  // A seal: the bytes with a hash added to them, and a hash of it all as the tag.
  function sealing(key, nonce, opening) {
    let associated = new Buffer(0);
    let sealed = new Buffer(0);
    let wanted = null;
    const tag = () => hash(key, nonce, associated, sealed).subarray(0, 16);
    return {
      setAAD: (bytes) => (associated = bytes),
      setAuthTag: (bytes) => (wanted = bytes),
      getAuthTag: tag,
      update(bytes) {
        const pads = Array.from({ length: Math.ceil(bytes.length / 32) }, (_, at) => hash(key, nonce, [at]));
        const pad = Buffer.concat(pads);
        const out = Buffer.from(bytes.map((byte, at) => byte ^ pad[at]));
        sealed = opening ? bytes : out;
        return out;
      },
      final() {
        if (opening && !tag().equals(wanted)) throw new Error("the tag is wrong");
        return new Buffer(0);
      },
    };
  }
  const cipher = (opening) => (name, key, nonce) => (name === "aes-256-ctr" ? stream(key) : sealing(key, nonce, opening));

  // Key agreement of Diffie and Hellman modulo a small prime.
  const PRIME = 2n ** 127n - 1n;
  const found = new Map();
  const numberOf = (bytes) => BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`);
  function power(base, exponent) {
    const name = `${base},${exponent}`;
    if (!found.has(name)) {
      let [result, square] = [1n, base % PRIME];
      for (let left = exponent % (PRIME - 1n); left > 0n; left >>= 1n) {
        if (left & 1n) result = (result * square) % PRIME;
        square = (square * square) % PRIME;
      }
      found.set(name, Buffer.from(result.toString(16).padStart(64, "0"), "hex").reverse());
    }
    return found.get(name);
  }

  function hashing(...start) {
    const parts = [...start];
    const self = { update: (bytes) => parts.push(bytes) && self, digest: () => hash(...parts) };
    return self;
  }

  let drawn = 0;
  const crypto = {
    createHash: () => hashing(),
    createHmac: (_, key) => hashing(key),
    hkdfSync: (_, secret, salt, info) => hash(secret, salt, info),
    createCipheriv: cipher(false),
    createDecipheriv: cipher(true),
    createPrivateKey: ({ key }) => ({ secret: key.subarray(-32) }),
    createPublicKey(given) {
      const open = given.secret ? power(3n, numberOf(given.secret)) : given.key.subarray(-32);
      return { open, export: () => Buffer.concat([new Buffer(12), open]) };
    },
    diffieHellman: ({ privateKey, publicKey }) => power(numberOf(publicKey.open), numberOf(privateKey.secret)),
    timingSafeEqual: (one, other) => one.equals(other),
    randomBytes(size) {
      const pieces = Array.from({ length: Math.ceil(size / 32) }, () => hash([(drawn += 1) & 255, drawn >> 8]));
      return Buffer.concat(pieces).subarray(0, size);
    },
  };
  return { Buffer, crypto, probe };
})();
