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

// Parser reads the fragments of one trace's metadata and adds their declarations to a metadata.Trace.
type Parser struct {
	trace   *metadata.Trace
	aliases map[string]metadata.Type
	split   splitter
	// pending is an incomplete fragment.
	pending []byte
	where   metadata.Position
	// seen maps declared things to the hashes of their fragments. A tracer may repeat a fragment, but not change it.
	// hash is that of the current fragment.
	seen map[string][sha256.Size]byte
	hash [sha256.Size]byte
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

// blank are the characters that may stand between fragments.
const blank = "\x1e \t\r\n"

// Pending returns the number of bytes that wait for the end of their fragment.
func (p *Parser) Pending() int { return len(bytes.TrimLeft(p.pending, blank)) }

// Append reads text, which continues the previous text. It fails with *metadata.Error if the text is not CTF 2
// metadata or contradicts earlier declarations. The fragments before the wrong one count. After an error the parser
// cannot continue.
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

// fragment reads one fragment, with the record separator and blanks before it.
func (p *Parser) fragment(text []byte) error {
	body := bytes.TrimLeft(text, blank)
	begin := p.where.After(text[:len(text)-len(body)])
	p.where = p.where.After(text)
	if bytes.IndexByte(text[:len(text)-len(body)], RecordSeparator) < 0 {
		return &metadata.Error{Where: begin, Expected: "a record separator before a fragment", Got: "none"}
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		return syntaxError(begin, body, decoder, err)
	}
	p.hash = sha256.Sum256(body)
	return p.declare(object{value: value, where: begin})
}

// syntaxError returns the position and the text of an error in JSON.
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
	at := begin.After(body[:min(max(0, offset), int64(len(body)))])
	return &metadata.Error{Where: at, Expected: expected, Got: err.Error()}
}

// declare reads one fragment. Inside, errors are panics of *metadata.Error.
func (p *Parser) declare(o object) (err error) {
	defer metadata.Recover(&err)
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

// fragments are the functions that read fragments, by type.
var fragments = map[string]func(*Parser, object){
	"preamble":           (*Parser).preamble,
	"field-class-alias":  (*Parser).alias,
	"trace-class":        (*Parser).traceClass,
	"clock-class":        (*Parser).clockClass,
	"data-stream-class":  (*Parser).streamClass,
	"event-record-class": (*Parser).eventClass,
}

// repeated reports whether the same fragment occurred before: the same bytes, because a tracer that repeats a fragment
// writes it in the same way. It fails if another fragment declared the same thing.
func (p *Parser) repeated(o object, thing string) bool {
	before, known := p.seen[thing]
	if known && before != p.hash {
		o.fail(thing+" as it was declared before", "another declaration")
	}
	p.seen[thing] = p.hash
	return known
}
