// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// maxDepth bounds how deep types, declarators and expressions may be nested.
const maxDepth = 64

// Parser reads the text of one trace's metadata and adds what it says to a
// metadata.Trace.
//
// Inside, an error is a panic of *metadata.Error that Append recovers: each of the
// grammar's rules is a method, and almost all of them can fail.
type Parser struct {
	trace *metadata.Trace
	root  *scope
	split splitter
	// pending is text behind the last complete declaration; where is its begin.
	pending []byte
	where   metadata.Position
	// seen are fingerprints of declarations by what they declare: a tracer may
	// repeat itself, but not contradict.
	seen map[string][sha256.Size]byte

	// The declaration that is being read.
	lex lexer
	tok token // the next token
	// spoken are the tokens so far, for its fingerprint.
	spoken []byte
	depth  int
}

// NewParser returns a parser that adds to trace.
func NewParser(trace *metadata.Trace) *Parser {
	return &Parser{
		trace: trace,
		root:  &scope{},
		where: metadata.Position{Line: 1, Column: 1},
		seen:  map[string][sha256.Size]byte{},
	}
}

// Pending is how many bytes wait for the end of their declaration.
func (p *Parser) Pending() int { return len(p.pending) }

// Append reads text, which continues what was given before. It fails with
// *metadata.Error if the text isn't TSDL or contradicts what was said before; the
// declarations in front of the wrong one count, and the parser can't go on.
func (p *Parser) Append(text []byte) error {
	n := p.split.scan(text)
	if n == 0 {
		p.pending = append(p.pending, text...)
		return nil
	}
	complete := append(p.pending, text[:n]...)
	p.pending = append([]byte(nil), text[n:]...)
	p.lex = lexer{text: complete, where: p.where}
	err := p.declarations()
	p.where = p.lex.where
	return err
}

// declarations reads everything that the lexer holds.
func (p *Parser) declarations() (err error) {
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(*metadata.Error)
			if !ok {
				panic(r)
			}
			err = failure
		}
	}()
	p.depth = 0
	p.scan()
	for p.tok.kind != end {
		p.spoken = p.spoken[:0]
		p.declaration()
	}
	return nil
}

// scan makes the lexer's next token the parser's.
func (p *Parser) scan() {
	t, err := p.lex.next()
	if err != nil {
		var failure *metadata.Error
		if errors.As(err, &failure) {
			panic(failure)
		}
		panic(err)
	}
	p.tok = t
}

// fail ends the reading of the text at a token.
func (p *Parser) fail(at metadata.Position, expected, format string, args ...any) {
	panic(&metadata.Error{Where: at, Expected: expected, Got: fmt.Sprintf(format, args...)})
}

// failToken ends the reading because of the next token.
func (p *Parser) failToken(expected string) {
	p.fail(p.tok.where, expected, "%s", p.tok.described())
}

// take returns the next token and moves behind it.
func (p *Parser) take() token {
	t := p.tok
	if t.kind == end {
		p.failToken("more")
	}
	p.spoken = append(p.spoken, byte(t.kind))
	p.spoken = binary.AppendUvarint(p.spoken, uint64(len(t.text)))
	p.spoken = append(p.spoken, t.text...)
	p.spoken = binary.LittleEndian.AppendUint64(p.spoken, t.value.Magnitude)
	p.scan()
	return t
}

// is says whether the next token is this word or sign.
func (p *Parser) is(text string) bool {
	return (p.tok.kind == word || p.tok.kind == sign) && p.tok.text == text
}

// accept moves behind the next token if it is this word or sign.
func (p *Parser) accept(text string) bool {
	if !p.is(text) {
		return false
	}
	p.take()
	return true
}

// expect moves behind the next token, which must be this word or sign.
func (p *Parser) expect(text string) {
	if !p.is(text) {
		p.failToken(fmt.Sprintf("%q", text))
	}
	p.take()
}

// word moves behind the next token, which must be a word.
func (p *Parser) word(expected string) token {
	if p.tok.kind != word {
		p.failToken(expected)
	}
	return p.take()
}

// deeper guards against nesting that would exhaust the stack; the function it
// returns undoes it.
func (p *Parser) deeper() func() {
	if p.depth == maxDepth {
		p.fail(p.tok.where, fmt.Sprintf("at most %d levels of nesting", maxDepth), "more")
	}
	p.depth++
	return func() { p.depth-- }
}

// repeated says whether the declaration that was just read was seen before in the
// same words. Another one of the same thing is an error.
func (p *Parser) repeated(at metadata.Position, what string) bool {
	print := sha256.Sum256(p.spoken)
	before, known := p.seen[what]
	if !known {
		p.seen[what] = print
		return false
	}
	if before != print {
		p.fail(at, what+" as it was declared before", "another declaration")
	}
	return true
}

// declaration reads one declaration at the top of the text.
func (p *Parser) declaration() {
	at := p.tok.where
	if p.accept(";") {
		return
	}
	if p.tok.kind == word {
		if block, ok := blocks[p.tok.text]; ok {
			p.take()
			block(p, at)
			return
		}
	}
	p.typeDeclaration(p.root)
}

// blocks are the declarations that aren't types, by their first word.
var blocks = map[string]func(*Parser, metadata.Position){
	"trace":    (*Parser).traceBlock,
	"stream":   (*Parser).streamBlock,
	"event":    (*Parser).eventBlock,
	"clock":    (*Parser).clockBlock,
	"env":      (*Parser).envBlock,
	"callsite": (*Parser).callsiteBlock,
}
