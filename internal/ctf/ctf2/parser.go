// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf2

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/callbraid/callbraid/internal/ctf/metadata"
)

// RecordSeparator stands before each fragment.
const RecordSeparator = 0x1E

// Parser reads the fragments of one trace's metadata and adds what they say to a
// metadata.Trace.
type Parser struct {
	trace   *metadata.Trace
	aliases map[string]metadata.Type
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

// Pending is how many bytes wait for the end of their fragment.
func (p *Parser) Pending() int { return len(p.pending) }

// Append reads text, which continues what was given before. It fails with
// *metadata.Error if it isn't CTF 2 metadata or contradicts what was said before;
// the fragments in front of the wrong one count, and the parser can't go on.
func (p *Parser) Append(text []byte) error {
	text = append(p.pending, text...)
	p.pending = nil
	for {
		next := bytes.IndexByte(text[min(1, len(text)):], RecordSeparator) + 1
		if next == 0 {
			break
		}
		if err := p.fragment(text[:next], true); err != nil {
			return err
		}
		text = text[next:]
	}
	return p.last(text)
}

// last takes what has no record separator behind it: it is read if it is complete.
func (p *Parser) last(text []byte) error {
	if len(bytes.Trim(text, "\x1e \t\r\n")) == 0 || bytes.IndexByte(text, '\n') < 0 {
		p.pending = append([]byte(nil), text...)
		return nil
	}
	err := p.fragment(text, false)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		p.pending = append([]byte(nil), text...)
		return nil
	}
	return err
}

// fragment reads what stands between two record separators. If it isn't known to be
// complete, it may fail with io.ErrUnexpectedEOF.
func (p *Parser) fragment(text []byte, complete bool) error {
	body := bytes.TrimLeft(text, "\x1e")
	if len(bytes.TrimSpace(body)) == 0 {
		p.where = after(p.where, text)
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value map[string]any
	err := decoder.Decode(&value)
	if errors.Is(err, io.ErrUnexpectedEOF) && !complete {
		return err
	}
	begin := after(p.where, text[:len(text)-len(body)])
	p.where = after(p.where, text)
	if err != nil {
		return syntaxError(begin, body, decoder, err)
	}
	if rest := bytes.TrimSpace(body[decoder.InputOffset():]); len(rest) > 0 {
		at := after(begin, body[:decoder.InputOffset()])
		return &metadata.Error{Where: at, Expected: "the end of the fragment", Got: fmt.Sprintf("%q", rest[:1])}
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
