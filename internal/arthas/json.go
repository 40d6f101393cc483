// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// Limits of one answer. A server that exceeds one sends nothing that a client could use.
const (
	// maxNesting is the maximum depth of objects and arrays. A call of a trace has two levels.
	maxNesting = 1024
	// maxValues is the maximum number of values.
	maxValues = 1 << 20
	// maxFields is the maximum number of fields of an object that is not skipped. Its square limits the comparisons.
	maxFields = 64
	// maxTextBytes is the maximum length of a text. A longer one is cut, and counted.
	maxTextBytes = 64 << 10
)

// MalformedError means that an answer is not what Arthas sends.
type MalformedError struct {
	// Position is the position in the body, in bytes.
	Position           int
	Expected, Received string
}

// Error returns the error's text.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("at byte %d of the answer: expected %s, received %s", e.Position, e.Expected, e.Received)
}

// reader reads JSON from memory. After the first error every method returns a zero value.
type reader struct {
	data   []byte
	at     int
	depth  int
	values int
	// open has the keys of all open objects, to find a repeated one.
	open [][]byte
	err  error
	// ignored counts fields and results of unknown names, and cut counts texts that were too long.
	ignored, cut int64
	scratch      []byte
	names        *javamethods.Names
	// held counts the memory of objects and arrays; nil counts nothing. uncounted is not in it so far.
	held      *held
	uncounted int
}

// memoryOfObject is the memory of the largest element of a result, a call of a trace.
const memoryOfObject = int(unsafe.Sizeof(TraceNode{}))

// countedAtOnce is the memory that is counted together.
const countedAtOnce = 64 << 10

// reserve counts the memory of objects. It reports whether there is room.
func (r *reader) reserve() bool {
	bytes := r.uncounted
	r.uncounted = 0
	if r.held == nil {
		return true
	}
	err := r.held.more(bytes)
	if err != nil && r.err == nil {
		r.err = err
	}
	return err == nil
}

func (r *reader) fail(position int, expected, received string) {
	if r.err == nil {
		r.err = &MalformedError{Position: position, Expected: expected, Received: received}
	}
}

// unexpected fails with the value at the current position.
func (r *reader) unexpected(expected string) { r.fail(r.at, expected, r.excerpt(r.at)) }

// excerpt is the begin of the data at a position, in quotes.
func (r *reader) excerpt(position int) string {
	if position >= len(r.data) {
		return "the end of the answer"
	}
	const most = 24
	return strconv.QuoteToGraphic(string(r.data[position:min(position+most, len(r.data))]))
}

// next skips white space and returns the next byte, or 0 at the end.
func (r *reader) next() byte {
	for ; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// value begins a value: it returns the first byte of the value. It skips null, and then returns 0: the server leaves out
// fields that are null, so null is a missing field.
func (r *reader) value(expected string) byte {
	if r.err != nil {
		return 0
	}
	if r.values++; r.values > maxValues {
		r.fail(r.at, fmt.Sprintf("at most %d values", maxValues), "more")
		return 0
	}
	first := r.next()
	if first == 'n' {
		r.literal("null")
		return 0
	}
	if first == 0 {
		r.unexpected(expected)
	}
	return first
}

func (r *reader) literal(word string) bool {
	if bytes.HasPrefix(r.data[r.at:], []byte(word)) {
		r.at += len(word)
		return true
	}
	r.unexpected(word)
	return false
}

// enter begins an object or array.
func (r *reader) enter() bool {
	if r.depth >= maxNesting {
		r.fail(r.at, fmt.Sprintf("at most %d nested objects and arrays", maxNesting), "more")
		return false
	}
	if r.uncounted += memoryOfObject; r.uncounted >= countedAtOnce && !r.reserve() {
		return false
	}
	r.depth++
	r.at++
	return true
}

// separated reads what stands before the next element of an object or array, and reports whether there is one.
func (r *reader) separated(first bool, end byte) bool {
	if r.err != nil {
		return false
	}
	switch c := r.next(); {
	case c == end:
		r.at++
		r.depth--
		return false
	case first && c != 0:
		return true
	case !first && c == ',':
		r.at++
		if r.next() != end {
			return true
		}
	}
	r.unexpected(fmt.Sprintf("an element or %q", end))
	return false
}

// object yields the keys of an object. The loop must read the value of each key, and must not break.
func (r *reader) object(expected string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if first := r.value(expected); first != '{' {
			if first != 0 {
				r.unexpected(expected)
			}
			return
		}
		if !r.enter() {
			return
		}
		begin := len(r.open)
		for first := true; r.separated(first, '}'); first = false {
			at := r.at
			key := r.key()
			if r.err != nil {
				break
			}
			if slices.ContainsFunc(r.open[begin:], func(other []byte) bool { return bytes.Equal(key, other) }) {
				r.fail(at, "each key once", r.excerpt(at))
				break
			}
			if len(r.open)-begin == maxFields {
				r.fail(at, fmt.Sprintf("at most %d fields", maxFields), "more")
				break
			}
			r.open = append(r.open, key)
			yield(key)
		}
		r.open = r.open[:begin]
	}
}

// key reads a key and its colon. The bytes stay valid as long as the data.
func (r *reader) key() []byte {
	begin := r.at
	key := r.bytes("a key")
	if len(key) > 0 && &key[0] != &r.data[begin+1] {
		key = slices.Clone(key)
	}
	if r.err == nil && r.next() != ':' {
		r.unexpected(`":"`)
		return nil
	}
	r.at++
	return key
}

// array yields the index of each element. The loop must read each element, and must not break.
func (r *reader) array(expected string) iter.Seq[int] {
	return func(yield func(int) bool) {
		if first := r.value(expected); first != '[' {
			if first != 0 {
				r.unexpected(expected)
			}
			return
		}
		if !r.enter() {
			return
		}
		for i := 0; r.separated(i == 0, ']'); i++ {
			yield(i)
		}
	}
}

// skip reads a value and ignores it.
func (r *reader) skip() {
	switch first := r.value("a value"); first {
	case 0:
	case '{':
		if !r.enter() {
			return
		}
		for first := true; r.separated(first, '}'); first = false {
			if r.bytes("a key"); r.err == nil && r.next() != ':' {
				r.unexpected(`":"`)
				return
			}
			r.at++
			r.skip()
		}
	case '[':
		if !r.enter() {
			return
		}
		for first := true; r.separated(first, ']'); first = false {
			r.skip()
		}
	case '"':
		r.bytes("a text")
	case 't':
		r.literal("true")
	case 'f':
		r.literal("false")
	default:
		r.number("a value")
	}
}

// ignore skips a value that the client does not know, and counts it.
func (r *reader) ignore() {
	r.skip()
	r.ignored++
}

// raw returns the text of any value, as JSON. A longer text is cut.
func (r *reader) raw() string {
	if r.err != nil || r.next() == 0 {
		r.unexpected("a value")
		return ""
	}
	begin := r.at
	r.skip()
	if r.err != nil {
		return ""
	}
	return r.bounded(r.data[begin:r.at])
}

func (r *reader) boolean(expected string) bool {
	switch r.value(expected) {
	case 0:
		return false
	case 't':
		return r.literal("true")
	case 'f':
		r.literal("false")
		return false
	default:
		r.unexpected(expected)
		return false
	}
}

// number reads the bytes of a number.
func (r *reader) number(expected string) []byte {
	begin := r.at
	for r.at < len(r.data) {
		switch c := r.data[r.at]; {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
			r.at++
		default:
			goto end
		}
	}
end:
	number := r.data[begin:r.at]
	if !isNumber(number) {
		r.at = begin
		r.unexpected(expected)
		return nil
	}
	return number
}

// isNumber reports whether the bytes are a number of JSON.
func isNumber(b []byte) bool {
	digits := func() bool {
		n := 0
		for len(b) > n && b[n] >= '0' && b[n] <= '9' {
			n++
		}
		b = b[n:]
		return n > 0
	}
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	if len(b) > 1 && b[0] == '0' && b[1] >= '0' && b[1] <= '9' || !digits() {
		return false
	}
	if len(b) > 0 && b[0] == '.' {
		if b = b[1:]; !digits() {
			return false
		}
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		if b = b[1:]; len(b) > 0 && (b[0] == '-' || b[0] == '+') {
			b = b[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(b) == 0
}

// integer reads a whole number of 64 bits. Some versions send some numbers as texts.
func (r *reader) integer(expected string) int64 {
	first := r.value(expected)
	if first == 0 {
		return 0
	}
	begin := r.at
	var digits []byte
	if first == '"' {
		digits = r.bytes(expected)
	} else {
		digits = r.number(expected)
	}
	if r.err != nil {
		return 0
	}
	value, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		r.fail(begin, expected, r.excerpt(begin))
		return 0
	}
	return value
}

// count reads a number of things: at least 0.
func (r *reader) count(expected string) int64 {
	r.next()
	begin := r.at
	value := r.integer(expected)
	if value < 0 {
		r.fail(begin, expected, r.excerpt(begin))
		return 0
	}
	return value
}

// small reads a whole number of 32 bits.
func (r *reader) small(expected string) int32 {
	r.next()
	begin := r.at
	value := r.integer(expected)
	if value != int64(int32(value)) {
		r.fail(begin, expected, r.excerpt(begin))
		return 0
	}
	return int32(value)
}

// decimal reads a number, and reports whether it is not null.
func (r *reader) decimal(expected string) (value float64, is bool) {
	if r.value(expected) == 0 {
		return 0, false
	}
	begin := r.at
	digits := r.number(expected)
	if r.err != nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(string(digits), 64)
	if err != nil || math.IsInf(value, 0) {
		r.fail(begin, expected, r.excerpt(begin))
		return 0, false
	}
	return value, true
}

// text reads a text of valid UTF-8. A longer one than maxTextBytes is cut.
func (r *reader) text(expected string) string {
	if r.value(expected) == 0 {
		return ""
	}
	return r.bounded(r.bytes(expected))
}

// wholeText reads a text of any length, such as a profile. Only the length of the answer limits it.
func (r *reader) wholeText(expected string) string {
	if r.value(expected) == 0 {
		return ""
	}
	return javamethods.ValidText(r.bytes(expected))
}

func (r *reader) bounded(text []byte) string {
	if len(text) > maxTextBytes {
		r.cut++
		text = text[:maxTextBytes]
	}
	return javamethods.ValidText(text)
}

// name reads a text that is often repeated.
func (r *reader) name(expected string) string {
	if r.value(expected) == 0 {
		return ""
	}
	text := r.bytes(expected)
	if len(text) > maxTextBytes {
		return r.bounded(text)
	}
	return r.names.Intern(text)
}

// bytes reads a text without its quotes. The bytes stay valid until the next text.
func (r *reader) bytes(expected string) []byte {
	if r.err != nil || r.next() != '"' {
		r.unexpected(expected)
		return nil
	}
	quote := r.at
	r.at++
	begin := r.at
	for ; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; {
		case c == '"':
			r.at++
			return r.data[begin : r.at-1]
		case c == '\\':
			return r.unescaped(quote, begin)
		case c < ' ':
			r.unexpected("a text without control characters")
			return nil
		}
	}
	r.fail(quote, "the end of the text", "the end of the answer")
	return nil
}

// unescaped reads the rest of a text from its first backslash. The text begins at begin.
func (r *reader) unescaped(quote, begin int) []byte {
	r.scratch = append(r.scratch[:0], r.data[begin:r.at]...)
	for r.at < len(r.data) {
		c := r.data[r.at]
		switch {
		case c == '"':
			r.at++
			return r.scratch
		case c < ' ':
			r.unexpected("a text without control characters")
			return nil
		case c != '\\':
			r.scratch = append(r.scratch, c)
			r.at++
			continue
		}
		if !r.escape() {
			r.unexpected("an escape of JSON")
			return nil
		}
	}
	r.fail(quote, "the end of the text", "the end of the answer")
	return nil
}

// escape reads one escape. Half of a pair of surrogates becomes U+FFFD.
func (r *reader) escape() bool {
	rest := r.data[r.at+1:]
	if len(rest) == 0 {
		return false
	}
	if i := bytes.IndexByte([]byte(`"\/bfnrt`), rest[0]); i >= 0 {
		r.scratch = append(r.scratch, "\"\\/\b\f\n\r\t"[i])
		r.at += 2
		return true
	}
	unit, ok := hexUnit(rest)
	if !ok {
		return false
	}
	r.at += 6
	if utf16.IsSurrogate(unit) {
		pair := rune(utf8.RuneError)
		if len(rest) > 5 && rest[5] == '\\' {
			if low, ok := hexUnit(rest[6:]); ok {
				pair = utf16.DecodeRune(unit, low)
			}
		}
		if unit = pair; pair != utf8.RuneError {
			r.at += 6
		}
	}
	r.scratch = utf8.AppendRune(r.scratch, unit)
	return true
}

// hexUnit reads the part of an escape that follows the backslash: u and four digits.
func hexUnit(b []byte) (rune, bool) {
	if len(b) < 5 || b[0] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(b[1:5]), 16, 16)
	return rune(unit), err == nil
}
