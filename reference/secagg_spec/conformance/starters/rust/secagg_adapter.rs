//! secagg_adapter.rs: an adapter for secagg-spec, without its operations. Copy it unchanged; adapter.rs is yours.
//!
//! Adapter protocol 1.0 (spec/adapter.md of secagg-spec; clause ids in brackets). Rust 1.63, no crates.
//!
//! A handler receives the members of `params` by name, in the variants of `Value` that their forms name, and the
//! sampled values as the object `p["rand"]`. It returns the members of the result, or a `Failure`: `refuse(…)` for a
//! deliberate refusal. An error of the library becomes `Broken` through `?`, and a panic becomes `Broken` too. Standard
//! output is reserved for answers: print with `eprintln!`.
//!
//! Part of secagg-spec. SPDX-License-Identifier: Apache-2.0

#![allow(dead_code)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};

pub const MAX_LINE: usize = 67_108_864; // bytes, including the line feed [ADP-02]
pub const DEEPEST: usize = 100; // nesting of lists and objects

// Values and failures

/// A JSON value. `Number` is a number that is not a 64-bit integer, as written; the last three are hex strings.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Flag(bool),
    Integer(i64),
    Number(String),
    Text(String),
    List(Vec<Value>),
    Object(Object),
    Bytes(Vec<u8>),
    Vector(Vec<u32>),
    Reals(Vec<f64>),
}

pub type Object = BTreeMap<String, Value>;

pub fn object<const N: usize>(members: [(&str, Value); N]) -> Object {
    members.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// Creates values with `into()`, and extracts their contents, as in `p["update"].vector()`.
macro_rules! values {
    ($($variant:ident($inner:ty): $name:ident -> $view:ty;)*) => {
        $(impl From<$inner> for Value {
            fn from(inner: $inner) -> Self {
                Value::$variant(inner)
            }
        })*
        impl Value {
            $(pub fn $name(&self) -> &$view {
                match self {
                    Value::$variant(inner) => inner,
                    _ => panic!("a member is no {}", stringify!($variant)),
                }
            })*
        }
    };
}

values! {
    Flag(bool): flag -> bool;
    Integer(i64): integer -> i64;
    Text(String): text -> str;
    List(Vec<Value>): list -> [Value];
    Object(Object): object -> Object;
    Bytes(Vec<u8>): bytes -> [u8];
    Vector(Vec<u32>): vector -> [u32];
    Reals(Vec<f64>): reals -> [f64];
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_string())
    }
}

/// Why there is no result. `code` is one of section 5; `blamed` are the parties that the refusal of a step blames.
pub enum Failure {
    Reject { code: &'static str, message: String, blamed: Vec<Value> },
    Unsupported,
    Broken(String),
}

pub type Answer = Result<Object, Failure>;

const CODES: &str =
    " malformed bad_param out_of_range noncanonical length_mismatch duplicate_id unknown_peer wrong_phase \
    replay inconsistent_sets bad_share below_threshold bad_signature bad_ciphertext weak_key other inexpressible ";

pub fn refuse(code: &'static str, message: &str) -> Failure {
    assert!(CODES.contains(&format!(" {code} ")), "{code} is no reject code"); // [ADP-09]
    Failure::Reject { code, message: message.to_string(), blamed: Vec::new() }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Broken(error.to_string())
    }
}

// Forms (section 3)

/// The required form of a member. `Decimal` gives an `Integer`, and `Json` any value. A `List` of one form has any
/// length; a `List` of several forms has exactly one entry for each. A `Record` has exactly these members.
#[derive(Clone, Debug)]
pub enum Form {
    Json,
    Integer,
    Decimal,
    Flag,
    Text,
    Bytes,
    Vector,
    Reals,
    Seed,
    Object,
    List(Vec<Form>),
    Record(Members),
}

pub type Members = Vec<(&'static str, Form)>;

impl Form {
    pub fn read(&self, value: Value) -> Result<Value, Failure> {
        Ok(match (self, value) {
            (Form::Json, value) if !holds_fraction(&value) => value,
            (Form::Integer, Value::Number(written)) if !is_fraction(&written) => number(&written)?,
            (Form::Decimal, Value::Text(text)) if is_decimal(&text) => number(&text)?, // [ADP-14]
            (Form::Integer, value @ Value::Integer(_)) => value,                       // [ADP-12]
            (Form::Flag, value @ Value::Flag(_)) => value,
            (Form::Text, value @ Value::Text(_)) => value,
            (Form::Object, value @ Value::Object(_)) => value,
            (Form::Seed, Value::Text(text)) if text.len() == 64 => unhex(&text, u8::from_le_bytes)?.into(),
            (Form::Bytes, Value::Text(text)) => unhex(&text, u8::from_le_bytes)?.into(),
            (Form::Vector, Value::Text(text)) => unhex(&text, u32::from_le_bytes)?.into(),
            (Form::Reals, Value::Text(text)) => unhex(&text, f64::from_le_bytes)?.into(),
            (Form::List(forms), Value::List(list)) if [1, list.len()].contains(&forms.len()) => {
                let entries = list.into_iter().zip(forms.iter().cycle());
                Value::List(entries.map(|(entry, form)| form.read(entry)).collect::<Result<_, _>>()?)
            }
            (Form::Record(members), Value::Object(object)) => read(members, object)?.into(),
            _ => return Err(refuse("malformed", &format!("its form is {self:?}"))),
        })
    }
}

fn read(members: &Members, mut object: Object) -> Answer {
    if object.len() != members.len() || !members.iter().all(|(name, _)| object.contains_key(*name)) {
        let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect(); // [ADP-05]
        return Err(refuse("malformed", &format!("the members are {}", names.join(", "))));
    }
    for (name, form) in members {
        let value = object.insert(name.to_string(), Value::Null).unwrap_or(Value::Null);
        let value = form.read(value).map_err(|failure| within(name, failure))?;
        object.insert(name.to_string(), value);
    }
    Ok(object)
}

fn within(name: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Reject { code, message, .. } => refuse(code, &format!("{name}: {message}")),
        other => other,
    }
}

fn is_fraction(written: &str) -> bool {
    written.contains(['.', 'e', 'E'])
}

fn holds_fraction(value: &Value) -> bool {
    match value {
        Value::Number(written) => is_fraction(written),
        Value::List(list) => list.iter().any(holds_fraction),
        Value::Object(object) => object.values().any(holds_fraction),
        _ => false,
    }
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let all = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
    all && (digits == "0" || !digits.starts_with('0'))
}

/// The most digits of an integer that reaches a handler.
const LONGEST: usize = 40;

thread_local! {
    /// Whether the request holds an integer of more than 64 bits: its handler reads the nearest i64, and gives no result.
    static BEYOND: Cell<bool> = const { Cell::new(false) };
}

fn number(digits: &str) -> Result<Value, Failure> {
    if digits.len() > LONGEST {
        return Err(refuse("bad_param", &format!("an integer of more than {LONGEST} digits")));
    }
    Ok(Value::Integer(digits.parse().unwrap_or_else(|_| {
        BEYOND.set(true);
        if digits.starts_with('-') { i64::MIN } else { i64::MAX }
    })))
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn unhex<T, const WIDTH: usize>(text: &str, entry: fn([u8; WIDTH]) -> T) -> Result<Vec<T>, Failure> {
    let digit = |c: u8| DIGITS.iter().position(|&digit| digit == c).map(|digit| digit as u8);
    match text.bytes().map(digit).collect::<Option<Vec<u8>>>() {
        Some(digits) if digits.len() % (2 * WIDTH) == 0 => {
            let bytes = |digits: &[u8]| std::array::from_fn(|i| 16 * digits[2 * i] + digits[2 * i + 1]);
            Ok(digits.chunks(2 * WIDTH).map(|digits| entry(bytes(digits))).collect())
        }
        _ => {
            let message = format!("not lowercase hex digits, {} for each entry", 2 * WIDTH);
            Err(refuse("malformed", &message)) // [ADP-13]
        }
    }
}

// The adapter

/// One implementation. `hello` is its declaration (section 2). If its random draws cannot be supplied, set "randomness"
/// to "seeded" or "none"; add "policy" and "reject_map" as needed.
pub struct Adapter {
    pub hello: Object,
    operations: BTreeMap<&'static str, Operation>,
}

pub struct Operation {
    params: Members,
    samples: Option<Form>,
    declared: Object,
    handler: Box<dyn FnMut(&Object) -> Answer>,
}

impl Operation {
    /// Declares that it draws, and the form of `rand` in the grade "explicit": `Json` if names depend on params.
    pub fn samples(&mut self, rand: Form) -> &mut Self {
        self.samples = Some(rand);
        self
    }

    /// Adds "ranges", "parameter_sets", "composed" and so on to the operation's entry in hello.
    pub fn declare(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        self.declared.insert(name.to_string(), value.into());
        self
    }
}

impl Adapter {
    pub fn new(name: &str, version: &str) -> Self {
        let names = [("name", name), ("version", version), ("language", "rust")];
        let hello = object([
            ("protocol", vec![Value::Integer(1), Value::Integer(0)].into()),
            ("implementation", object(names.map(|(name, text)| (name, text.into()))).into()),
            ("randomness", "explicit".into()),
        ]);
        Adapter { hello, operations: BTreeMap::new() }
    }

    /// Declares an operation with the members of its params, and returns it for further declarations.
    pub fn operation<const N: usize>(
        &mut self,
        name: &'static str,
        params: [(&'static str, Form); N],
        handler: impl FnMut(&Object) -> Answer + 'static,
    ) -> &mut Operation {
        let (params, handler) = (params.to_vec(), Box::new(handler));
        let operation = Operation { samples: None, declared: Object::new(), params, handler };
        self.operations.entry(name).or_insert(operation)
    }

    /// Answers requests until the end of input.
    pub fn run(&mut self) -> io::Result<()> {
        let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
        let mut line = Vec::new();
        while read_line(&mut input, &mut line)? {
            output.write_all(self.answer(&line).as_bytes())?;
            output.flush()?;
        }
        Ok(())
    }

    fn answer(&mut self, line: &[u8]) -> String {
        let (id, answer) = match parse(line).and_then(request) {
            Some((id, request)) => (id, self.result(request)),
            None => {
                let message = "a request is one JSON object in UTF-8, with an integer id, in at most 64 MiB";
                (Value::Null, Err(refuse("malformed", message))) // [ADP-10]
            }
        };
        let line = written(id.clone(), answer);
        if line.len() > MAX_LINE {
            return written(id, Err(Failure::Unsupported));
        }
        line
    }

    fn result(&mut self, mut request: Object) -> Answer {
        let (op, params) = (request.remove("op"), request.remove("params"));
        let rand = request.remove("rand").unwrap_or_else(|| object([]).into());
        let (op, params, rand) = match (op, params, rand) {
            (Some(Value::Text(op)), Some(Value::Object(params)), Value::Object(rand)) if request.is_empty() => {
                (op, params, rand)
            }
            _ => {
                let message = "a request has op, a string, params, an object, and perhaps rand, an object";
                return Err(refuse("malformed", message)); // [ADP-11]
            }
        };
        if op == "hello" {
            return Ok(self.greet()); // [ADP-07]
        }
        let operation = self.operations.get_mut(op.as_str()).ok_or(Failure::Unsupported)?; // [ADP-04]
        BEYOND.set(false);
        let mut p = read(&operation.params, params)?;
        let grade = operation.declared.get("randomness").unwrap_or(&self.hello["randomness"]);
        let samples = match (&operation.samples, grade.text()) {
            (Some(form), "explicit") => form.clone(),
            (Some(_), "seeded") => Form::Record(vec![("seed", Form::Seed)]),
            _ => Form::Record(vec![]),
        };
        let rand = samples.read(rand.into()).map_err(|failure| within("rand", failure))?;
        p.insert("rand".to_string(), rand);
        let answer = catch_unwind(AssertUnwindSafe(|| (operation.handler)(&p))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let message = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or_default();
            Err(Failure::Broken(format!("panic: {message}")))
        })?;
        if BEYOND.get() {
            return Err(refuse("bad_param", "an integer of more than 64 bits"));
        }
        Ok(answer)
    }

    fn greet(&self) -> Object {
        let mut operations = Object::new();
        for (name, operation) in &self.operations {
            operations.insert(name.to_string(), operation.declared.clone().into());
        }
        let mut hello = self.hello.clone();
        hello.insert("operations".to_string(), operations.into());
        hello
    }
}

// Lines (section 1)

/// Reads the next line, and returns whether there is one. A line that is too long becomes empty, since an empty line is
/// no request either.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    let mut too_long = false;
    loop {
        line.clear();
        let length = input.take(MAX_LINE as u64).read_until(b'\n', line)?;
        if length < MAX_LINE || line.ends_with(b"\n") {
            if too_long {
                line.clear();
            }
            return Ok(too_long || length > 0);
        }
        too_long = true;
    }
}

fn request(value: Value) -> Option<(Value, Object)> {
    match value {
        Value::Object(mut request) => match request.remove("id")? {
            Value::Number(written) if is_fraction(&written) => None,
            id @ (Value::Integer(_) | Value::Number(_)) => Some((id, request)),
            _ => None,
        },
        _ => None,
    }
}

fn written(id: Value, answer: Answer) -> String {
    let (member, content) = match answer {
        Ok(result) => ("result", result.into()),
        Err(Failure::Unsupported) => ("unsupported", true.into()),
        Err(Failure::Broken(message)) => ("error", object([("message", message.into())]).into()),
        Err(Failure::Reject { code, message, blamed }) => {
            let mut reject = object([("code", code.into()), ("message", message.into())]);
            if !blamed.is_empty() {
                reject.insert("blamed".to_string(), blamed.into());
            }
            ("reject", reject.into())
        }
    };
    let mut line = String::new();
    write(&object([("id", id), (member, content)]).into(), &mut line);
    line + "\n"
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Integer(number) => out.push_str(&number.to_string()),
        Value::Number(written) => out.push_str(written),
        Value::Text(text) => quote(text, out),
        Value::Bytes(bytes) => hex(bytes.iter().copied(), out),
        Value::Vector(entries) => hex(entries.iter().flat_map(|entry| entry.to_le_bytes()), out),
        Value::Reals(entries) => hex(entries.iter().flat_map(|entry| entry.to_le_bytes()), out),
        Value::List(list) => {
            for (i, entry) in list.iter().enumerate() {
                out.push(if i == 0 { '[' } else { ',' });
                write(entry, out);
            }
            out.push_str(if list.is_empty() { "[]" } else { "]" });
        }
        Value::Object(object) => {
            for (i, (name, entry)) in object.iter().enumerate() {
                out.push(if i == 0 { '{' } else { ',' });
                quote(name, out);
                out.push(':');
                write(entry, out);
            }
            out.push_str(if object.is_empty() { "{}" } else { "}" });
        }
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..='\x1f' => out.push_str(&format!("\\u{:04x}", c as u32)),
            _ => out.push(c),
        }
    }
    out.push('"');
}

fn hex(bytes: impl Iterator<Item = u8>, out: &mut String) {
    out.push('"');
    for byte in bytes {
        out.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
    }
    out.push('"');
}

// A JSON reader: `None` means invalid JSON, or JSON nested too deep

fn parse(line: &[u8]) -> Option<Value> {
    let mut reader = Reader { text: std::str::from_utf8(line).ok()?, at: 0 };
    let value = reader.value(0)?;
    reader.peek().is_none().then_some(value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        match self.peek()? {
            b'{' => {
                let mut object = Object::new();
                self.entries(depth, b'}', |reader| {
                    reader.peek()?;
                    let name = reader.string()?;
                    reader.peek()?;
                    reader.take(":")?;
                    object.insert(name, reader.value(depth + 1)?);
                    Some(())
                })?;
                Some(object.into())
            }
            b'[' => {
                let mut list = Vec::new();
                self.entries(depth, b']', |reader| {
                    list.push(reader.value(depth + 1)?);
                    Some(())
                })?;
                Some(list.into())
            }
            b'"' => self.string().map(Value::Text),
            b'n' => self.take("null").map(|()| Value::Null),
            b't' => self.take("true").map(|()| true.into()),
            b'f' => self.take("false").map(|()| false.into()),
            _ => self.number(),
        }
    }

    /// Reads comma-separated items between brackets.
    fn entries<F>(&mut self, depth: usize, close: u8, mut entry: F) -> Option<()>
    where
        F: FnMut(&mut Self) -> Option<()>,
    {
        self.at += 1;
        let mut next = self.peek().filter(|_| depth < DEEPEST)?;
        if next != close {
            entry(self)?;
            next = self.peek()?;
        }
        while next == b',' {
            self.at += 1;
            entry(self)?;
            next = self.peek()?;
        }
        self.at += 1;
        (next == close).then_some(())
    }

    fn string(&mut self) -> Option<String> {
        let mut text = String::new();
        self.take("\"")?;
        loop {
            let rest = &self.text[self.at..];
            let end = rest.bytes().position(|c| c == b'"' || c == b'\\' || c < b' ')?;
            text.push_str(&rest[..end]);
            self.at += end + 1;
            match rest.as_bytes()[end] {
                b'"' => return Some(text),
                b'\\' => text.push(self.escape()?),
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        if self.skip(b"u") {
            let mut units = [self.unit()?, 0];
            if (0xd800..0xdc00).contains(&units[0]) {
                self.take("\\u")?;
                units[1] = self.unit()?;
            }
            return char::decode_utf16(units).next()?.ok(); // a lone surrogate is not a character
        }
        let letter = b"\"\\/bfnrt".iter().position(|&letter| self.here() == Some(letter))?;
        self.at += 1;
        "\"\\/\x08\x0c\n\r\t".chars().nth(letter)
    }

    fn unit(&mut self) -> Option<u16> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        let all = digits.bytes().all(|c| c.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| all)
    }

    fn number(&mut self) -> Option<Value> {
        let start = self.at;
        self.skip(b"-");
        let zero = self.here() == Some(b'0');
        if self.digits()? > 1 && zero {
            return None;
        }
        if self.skip(b".") {
            self.digits()?;
        }
        if self.skip(b"eE") {
            self.skip(b"+-");
            self.digits()?;
        }
        let written = &self.text[start..self.at];
        Some(written.parse().map_or_else(|_| Value::Number(written.to_string()), Value::Integer))
    }

    fn digits(&mut self) -> Option<usize> {
        let start = self.at;
        while self.skip(b"0123456789") {}
        Some(self.at - start).filter(|&digits| digits > 0)
    }

    fn skip(&mut self, any: &[u8]) -> bool {
        let found = matches!(self.here(), Some(c) if any.contains(&c));
        self.at += usize::from(found);
        found
    }

    fn take(&mut self, word: &str) -> Option<()> {
        let found = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        found.then_some(())
    }

    /// Skips spaces, and returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        while self.skip(b" \t\r\n") {}
        self.here()
    }

    fn here(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}
