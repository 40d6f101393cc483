// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf2

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// RecordSeparator stands before each fragment.
const RecordSeparator = 0x1E

// Parser reads the fragments of one trace's metadata and adds what they say to a
// metadata.Trace.
type Parser struct {
	trace   *metadata.Trace
	aliases map[string]metadata.Type
	split   splitter
	// pending is a fragment whose end hasn't come.
	pending []byte
	where   metadata.Position
	// seen are fingerprints of fragments by what they declare: a tracer may repeat
	// itself, but not contradict.
	seen map[string][sha256.Size]byte
	// streams and clocks are the IDs that were declared.
	streams map[uint64]bool
	clocks  map[string]bool
}

// NewParser returns a parser that adds to trace.
func NewParser(trace *metadata.Trace) *Parser {
	return &Parser{
		trace:   trace,
		aliases: map[string]metadata.Type{},
		where:   metadata.Position{Line: 1, Column: 1},
		seen:    map[string][sha256.Size]byte{},
		streams: map[uint64]bool{},
		clocks:  map[string]bool{},
	}
}

// blank is what may stand between fragments.
const blank = "\x1e \t\r\n"

// Pending is how many bytes wait for the end of their fragment.
func (p *Parser) Pending() int { return len(bytes.TrimLeft(p.pending, blank)) }

// Append reads text, which continues what was given before. It fails with
// *metadata.Error if it isn't CTF 2 metadata or contradicts what was said before;
// the fragments in front of the wrong one count, and the parser can't go on.
func (p *Parser) Append(text []byte) error {
	for {
		n, ended := p.split.scan(text)
		p.pending = append(p.pending, text[:n]...)
		if !ended {
			return nil
		}
		text = text[n:]
		fragment := p.pending
		p.pending = nil
		if err := p.fragment(fragment); err != nil {
			return err
		}
	}
}

// fragment reads one fragment, with the record separator and what else is before it.
func (p *Parser) fragment(text []byte) error {
	body := bytes.TrimLeft(text, blank)
	begin := after(p.where, text[:len(text)-len(body)])
	p.where = after(p.where, text)
	if bytes.IndexByte(text[:len(text)-len(body)], RecordSeparator) < 0 {
		return &metadata.Error{Where: begin, Expected: "a record separator before a fragment", Got: "none"}
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		return syntaxError(begin, body, decoder, err)
	}
	return p.declare(object{value: value, where: begin})
}

// syntaxError says where JSON is wrong.
func syntaxError(begin metadata.Position, body []byte, decoder *json.Decoder, err error) error {
	const expected = "an object of JSON"
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return &metadata.Error{Where: begin, Expected: expected, Got: other.Value}
	}
	offset := decoder.InputOffset()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = syntax.Offset - 1
	}
	at := after(begin, body[:min(max(0, offset), int64(len(body)))])
	return &metadata.Error{Where: at, Expected: expected, Got: err.Error()}
}

// after is the position behind text that begins at p.
func after(p metadata.Position, text []byte) metadata.Position {
	for _, c := range text {
		if c == '\n' {
			p.Line++
			p.Column = 0
		}
		p.Column++
	}
	return p
}

// declare reads one fragment. Failures inside are panics of *metadata.Error.
func (p *Parser) declare(o object) (err error) {
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(*metadata.Error)
			if !ok {
				panic(r)
			}
			err = failure
		}
	}()
	kind := o.text("type")
	if !p.trace.Declared && kind != "preamble" {
		o.fail("a preamble as the first fragment", "%q", kind)
	}
	fragment, ok := fragments[kind]
	if !ok {
		o.get("type").fail("a fragment's type", "%q", kind)
	}
	o.path = kind
	fragment(p, o)
	return nil
}

// fragments are the kinds of fragments by their types.
var fragments = map[string]func(*Parser, object){
	"preamble":           (*Parser).preamble,
	"field-class-alias":  (*Parser).alias,
	"trace-class":        (*Parser).traceClass,
	"clock-class":        (*Parser).clockClass,
	"data-stream-class":  (*Parser).streamClass,
	"event-record-class": (*Parser).eventClass,
}

// repeated says whether the same fragment was seen before. Another one for the same
// thing is an error.
func (p *Parser) repeated(o object, what string) bool {
	text, err := json.Marshal(o.value)
	if err != nil {
		o.fail("a fragment of JSON", "%v", err)
	}
	print := sha256.Sum256(text)
	before, known := p.seen[what]
	if known && before != print {
		o.fail(what+" as it was declared before", "another declaration")
	}
	p.seen[what] = print
	return known
}
