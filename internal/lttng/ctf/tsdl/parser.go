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

// maxDepth bounds the nesting of types, declarators and expressions.
const maxDepth = 64

// Parser reads the text of one trace's metadata and adds its declarations to a metadata.Trace.
//
// Inside, an error is a panic of *metadata.Error, which Append recovers. Each rule of the grammar is a method, and
// almost all of them can fail.
type Parser struct {
	trace *metadata.Trace
	root  *scope
	split splitter
	// pending is the text after the last complete declaration. where is its position.
	pending []byte
	where   metadata.Position
	// seen maps declared things to the fingerprints of their declarations. A tracer may repeat a declaration, but not
	// change it.
	seen map[string][sha256.Size]byte

	// The declaration that the parser is reading.
	lex lexer
	tok token // the next token
	// read encodes the declaration's tokens so far, for its fingerprint.
	read  []byte
	depth int
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

// Pending returns the number of bytes that wait for the end of their declaration.
func (p *Parser) Pending() int { return len(p.pending) }

// Append reads text, which continues the previous text. It fails with *metadata.Error if the text is not TSDL or
// contradicts earlier declarations. The declarations before the wrong one count. After an error the parser cannot
// continue.
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

// declarations reads all declarations of the lexer's text.
func (p *Parser) declarations() (err error) {
	defer metadata.Recover(&err)
	p.depth = 0
	p.scan()
	for p.tok.kind != end {
		p.read = p.read[:0]
		p.declaration()
	}
	return nil
}

// scan reads the next token from the lexer.
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

// fail stops the parser with an error at a position.
func (p *Parser) fail(at metadata.Position, expected, format string, args ...any) {
	panic(&metadata.Error{Where: at, Expected: expected, Got: fmt.Sprintf(format, args...)})
}

// failToken stops the parser with an error at the next token.
func (p *Parser) failToken(expected string) {
	p.fail(p.tok.where, expected, "%s", p.tok.described())
}

// next returns the next token and moves behind it.
func (p *Parser) next() token {
	t := p.tok
	if t.kind == end {
		p.failToken("another token")
	}
	p.read = append(p.read, byte(t.kind))
	p.read = binary.AppendUvarint(p.read, uint64(len(t.text)))
	p.read = append(p.read, t.text...)
	p.read = binary.LittleEndian.AppendUint64(p.read, t.value.Magnitude)
	p.scan()
	return t
}

// is reports whether the next token is this word or sign.
func (p *Parser) is(text string) bool {
	return (p.tok.kind == word || p.tok.kind == sign) && p.tok.text == text
}

// accept moves behind the next token if it is this word or sign, and reports whether it did.
func (p *Parser) accept(text string) bool {
	if !p.is(text) {
		return false
	}
	p.next()
	return true
}

// expect moves behind the next token, which must be this word or sign.
func (p *Parser) expect(text string) {
	if !p.is(text) {
		p.failToken(fmt.Sprintf("%q", text))
	}
	p.next()
}

// word returns the next token, which must be a word, and moves behind it.
func (p *Parser) word(expected string) token {
	if p.tok.kind != word {
		p.failToken(expected)
	}
	return p.next()
}

// enter counts a level of nesting and fails at maxDepth, because deeper nesting would exhaust the stack. The function
// that it returns leaves the level.
func (p *Parser) enter() func() {
	if p.depth == maxDepth {
		p.fail(p.tok.where, fmt.Sprintf("at most %d levels of nesting", maxDepth), "more")
	}
	p.depth++
	return func() { p.depth-- }
}

// repeated reports whether the declaration that was just read occurred before in the same words. It fails if thing
// was declared in other words.
func (p *Parser) repeated(at metadata.Position, thing string) bool {
	fingerprint := sha256.Sum256(p.read)
	before, known := p.seen[thing]
	if !known {
		p.seen[thing] = fingerprint
		return false
	}
	if before != fingerprint {
		p.fail(at, thing+" as it was declared before", "another declaration")
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
			p.next()
			block(p, at)
			return
		}
	}
	p.typeDeclaration(p.root)
}

// blocks are the declarations that are not types, by their first word.
var blocks = map[string]func(*Parser, metadata.Position){
	"trace":    (*Parser).traceBlock,
	"stream":   (*Parser).streamBlock,
	"event":    (*Parser).eventBlock,
	"clock":    (*Parser).clockBlock,
	"env":      (*Parser).envBlock,
	"callsite": (*Parser).callsiteBlock,
}
