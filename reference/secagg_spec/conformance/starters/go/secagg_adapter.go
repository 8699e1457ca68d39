// secagg_adapter.go: an adapter for secagg-spec, without its operations. Copy it unchanged; adapter.go is yours.
//
// Adapter protocol 1.0 (spec/adapter.md of secagg-spec; clause ids in brackets). Go 1.19, no dependencies.
//
// A handler receives the members of params by name, in the Go types of their forms, and the sampled values as
// p["rand"].(Params). It returns the members of the result, or an error: Refuse(…) for a deliberate refusal,
// Unsupported, or any other error for a failure. A panic is a failure too. Printed text goes to standard error.
//
// Part of secagg-spec. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	MaxLine = 67_108_864 // bytes of a line, including the line feed [ADP-02]
	Deepest = 100        // nesting of lists and objects
)

type (
	Params  = map[string]any
	Result  = map[string]any
	Handler = func(p Params) (Result, error)
)

// Refusals and failures

// Reject is a deliberate refusal, with a code of section 5. Blamed are the parties that the refusal of a step blames.
type Reject struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Blamed  []any  `json:"blamed,omitempty"`
}

// Broken says that the implementation failed unintentionally.
type Broken string

// Unsupported says that the adapter does not support these parameters.
var Unsupported = errors.New("unsupported")

const rejectCodes = " malformed bad_param out_of_range noncanonical length_mismatch duplicate_id unknown_peer" +
	" wrong_phase replay inconsistent_sets bad_share below_threshold bad_signature bad_ciphertext weak_key other inexpressible "

func (r Reject) Error() string { return r.Message }
func (b Broken) Error() string { return string(b) }

// Refuse returns a refusal, with a message formatted by fmt.Sprintf.
func Refuse(code, format string, values ...any) error {
	return Reject{Code: code, Message: fmt.Sprintf(format, values...)}
}

func malformed(format string, values ...any) error { return Refuse("malformed", format, values...) }

// Forms (section 3)

// Form converts a JSON value to a Go value, or refuses it. Members are the exact members that an object must have.
//
//	Integer, Decimal       int64
//	Text, Flag             string, bool
//	Bytes, Vector, Reals   []byte, []uint32, []float64
//	ListOf(form)           []any; ListOf(form, form, …) has exactly one entry for each form
//	Record(members)        map[string]any
//	Object, JSON           as decoded by encoding/json, with json.Number for numbers
type (
	Form    = func(value any) (any, error)
	Members = map[string]Form
)

func Text(value any) (any, error)   { return typed[string](value, "string") }
func Flag(value any) (any, error)   { return typed[bool](value, "true or false") }
func Object(value any) (any, error) { return typed[map[string]any](value, "object") }
func Bytes(value any) (any, error)  { return unpack[byte](value, 1) }
func Vector(value any) (any, error) { return unpack[uint32](value, 4) }
func Reals(value any) (any, error)  { return unpack[float64](value, 8) }

func Integer(value any) (any, error) {
	if !isInteger(value) { // [ADP-12]
		return nil, malformed("not a JSON integer")
	}
	return within64Bits(string(value.(json.Number)))
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

func Decimal(value any) (any, error) {
	text, isText := value.(string)
	if !isText || !decimal.MatchString(text) { // [ADP-14]
		return nil, malformed("not a decimal string")
	}
	return within64Bits(text)
}

func JSON(value any) (any, error) {
	switch value := value.(type) {
	case []any:
		return ListOf(JSON)(value)
	case map[string]any:
		for name, entry := range value {
			if _, err := JSON(entry); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	case json.Number:
		if !isInteger(value) {
			return nil, malformed("a number with a fraction or an exponent")
		}
	}
	return value, nil
}

func ListOf(forms ...Form) Form {
	return func(value any) (any, error) {
		list, err := typed[[]any](value, "list")
		if err == nil && len(forms) > 1 && len(forms) != len(list) {
			err = malformed("not a list of %d", len(forms))
		}
		read := make([]any, len(list))
		for i := 0; err == nil && i < len(list); i++ {
			read[i], err = forms[i%len(forms)](list[i])
		}
		return read, err
	}
}

func Record(members Members) Form {
	return func(value any) (any, error) {
		object, err := typed[map[string]any](value, "object")
		if err != nil {
			return nil, err
		}
		names := make([]string, 0, len(members))
		for name := range members { // [ADP-05]
			if _, present := object[name]; !present {
				return nil, malformed("the member %q is missing", name)
			}
			names = append(names, name)
		}
		for name := range object {
			if members[name] == nil {
				return nil, malformed("there is no member %q", name)
			}
		}
		sort.Strings(names) // so that the choice between two refusals is deterministic
		for _, name := range names {
			if object[name], err = members[name](object[name]); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		return object, nil
	}
}

// Pack returns a []uint32, []float64, []float32 or []byte as hex digits.
func Pack(entries any) string {
	var data bytes.Buffer
	if err := binary.Write(&data, binary.LittleEndian, entries); err != nil {
		panic(err)
	}
	return hex.EncodeToString(data.Bytes())
}

func unpack[T any](value any, width int) ([]T, error) {
	text, isText := value.(string)
	data, err := hex.DecodeString(text)
	if !isText || err != nil || len(data)%width != 0 || strings.ContainsAny(text, "ABCDEF") { // [ADP-13]
		return nil, malformed("not lowercase hex digits, %d for each entry", 2*width)
	}
	entries := make([]T, len(data)/width)
	return entries, binary.Read(bytes.NewReader(data), binary.LittleEndian, entries)
}

func typed[T any](value any, what string) (T, error) {
	read, fits := value.(T)
	if !fits {
		return read, malformed("not a JSON %s", what)
	}
	return read, nil
}

func isInteger(value any) bool {
	number, isNumber := value.(json.Number)
	return isNumber && !strings.ContainsAny(string(number), ".eE")
}

// longest is the number of digits of the longest integer that reaches a handler.
const longest = 40

// beyond is whether the request holds an integer of more than 64 bits: its handler reads the nearest int64, and gives no
// result.
var beyond bool

func within64Bits(digits string) (any, error) {
	if len(digits) > longest {
		return nil, Refuse("bad_param", fmt.Sprintf("an integer of more than %d digits", longest))
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	beyond = beyond || err != nil
	return number, nil
}

// The adapter

// Adapter is one implementation. Hello is its declaration (section 2). If its random draws cannot be supplied, set
// "randomness" to "seeded" or "none"; add "policy" and "reject_map" as needed.
type Adapter struct {
	Hello      map[string]any
	operations map[string]*Operation
}

// Operation is one operation. Samples is the form of its rand in the grade "explicit": nil if it does not draw, JSON if
// the names depend on params. Declared is its entry in hello: "ranges", "randomness", "parties" and so on.
type Operation struct {
	Samples  Form
	Declared map[string]any
	params   Form
	handler  Handler
}

func NewAdapter(name, version string) *Adapter {
	return &Adapter{operations: map[string]*Operation{}, Hello: map[string]any{
		"protocol":       []int{1, 0},
		"implementation": map[string]any{"name": name, "version": version, "language": "go"},
		"randomness":     "explicit",
		"operations":     map[string]any{},
	}}
}

// Operation declares an operation with the members of its params, and returns it for further declarations.
func (a *Adapter) Operation(name string, members Members, handler Handler) *Operation {
	operation := &Operation{params: Record(members), handler: handler, Declared: map[string]any{}}
	a.operations[name] = operation
	a.Hello["operations"].(map[string]any)[name] = operation.Declared
	return operation
}

func (a *Adapter) answer(line []byte) Result {
	request, _ := parse(line).(map[string]any)
	id := request["id"]
	if !isInteger(id) { // [ADP-10]
		message := "a request is one JSON object in UTF-8, with an integer id, in a line of at most 64 MiB"
		return Result{"id": nil, "reject": Reject{Code: "malformed", Message: message}}
	}
	result, err := a.result(request)
	var reject Reject
	switch {
	case err == nil && result != nil:
		return Result{"id": id, "result": result}
	case err == nil:
		err = Broken("the handler returned neither a result nor an error")
	case errors.Is(err, Unsupported):
		return Result{"id": id, "unsupported": true}
	case errors.As(err, &reject) && strings.Contains(rejectCodes, " "+reject.Code+" "): // [ADP-09]
		reject.Message = err.Error()
		return Result{"id": id, "reject": reject}
	}
	return Result{"id": id, "error": map[string]any{"message": err.Error()}}
}

func (a *Adapter) result(request map[string]any) (result Result, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			os.Stderr.Write(debug.Stack())
			result, err = nil, Broken(fmt.Sprint("panic: ", failure))
		}
	}()
	for name := range request { // [ADP-11]
		if name != "id" && name != "op" && name != "params" && name != "rand" {
			return nil, malformed("a request has no member %q", name)
		}
	}
	op, isText := request["op"].(string)
	params, isObject := request["params"].(map[string]any)
	rand, given := request["rand"]
	if !given {
		rand = map[string]any{}
	}
	if _, fits := rand.(map[string]any); !fits || !isText || !isObject {
		return nil, malformed("op is a string, params an object, and rand an object where it is given")
	}
	if op == "hello" { // [ADP-07]
		return a.Hello, nil
	}
	operation := a.operations[op]
	if operation == nil { // [ADP-04]
		return nil, Unsupported
	}
	beyond = false
	read, err := operation.params(params)
	if err != nil {
		return nil, err
	}
	p := read.(Params)
	if p["rand"], err = a.sampled(operation)(rand); err != nil {
		return nil, fmt.Errorf("rand: %w", err)
	}
	if result, err = operation.handler(p); err == nil && beyond {
		return nil, Refuse("bad_param", "an integer of more than 64 bits")
	}
	return result, err
}

// sampled returns the form of rand for the operation's grade.
func (a *Adapter) sampled(operation *Operation) Form {
	grade, given := operation.Declared["randomness"]
	if !given {
		grade = a.Hello["randomness"]
	}
	switch {
	case operation.Samples != nil && grade == "explicit":
		return operation.Samples
	case operation.Samples != nil && grade == "seeded":
		return Record(Members{"seed": seed})
	}
	return Record(nil)
}

func seed(value any) (any, error) {
	data, err := unpack[byte](value, 1)
	if err == nil && len(data) != 32 {
		err = malformed("not 64 digits")
	}
	return data, err
}

// Lines (section 1)

// Run answers requests until the end of input.
func (a *Adapter) Run() {
	out, in := os.Stdout, bufio.NewReaderSize(os.Stdin, 1<<16)
	os.Stdout = os.Stderr
	var line []byte
	for end := error(nil); end == nil; {
		if line, end = readLine(in, line[:0]); end != nil && len(line) == 0 {
			return
		}
		if _, err := out.Write(encode(a.answer(line))); err != nil {
			os.Exit(1)
		}
	}
}

// readLine appends the next line. A line that is too long becomes empty, since an empty line is no request either.
func readLine(in *bufio.Reader, line []byte) ([]byte, error) {
	for tooLong := false; ; {
		part, err := in.ReadSlice('\n')
		tooLong = tooLong || len(line)+len(part) > MaxLine
		if line = append(line, part...); tooLong {
			line = line[:0]
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

func encode(answer Result) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		return encode(Result{"id": answer["id"], "error": map[string]any{"message": err.Error()}})
	}
	if out.Len() > MaxLine {
		return encode(Result{"id": answer["id"], "unsupported": true})
	}
	return out.Bytes()
}

// parse returns the JSON value of a line, or nil if the line is not a single value.
func parse(line []byte) (value any) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if !utf8.Valid(line) || !readable(line) || decoder.Decode(&value) != nil {
		return nil
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil
	}
	return value
}

// readable reports whether a line is not nested too deep and contains no escape of a lone surrogate, which
// encoding/json would replace by another character.
func readable(line []byte) bool {
	depth, inText := 0, false
	for i := 0; i < len(line) && depth <= Deepest; i++ {
		switch c := line[i]; {
		case c == '"':
			inText = !inText
		case inText && c == '\\':
			if half(line[i:], "89ab") && half(line[i+6:], "cdef") {
				i += 10
			} else if half(line[i:], "89abcdef") {
				return false
			}
			i++
		case !inText && (c == '[' || c == '{'):
			depth++
		case !inText && (c == ']' || c == '}'):
			depth--
		}
	}
	return depth <= Deepest
}

// half reports whether a text begins with the escape of a surrogate whose second digit is one of these.
func half(text []byte, digits string) bool {
	return len(text) >= 6 && text[0] == '\\' && text[1] == 'u' && text[2]|0x20 == 'd' &&
		strings.IndexByte(digits, text[3]|0x20) >= 0
}
