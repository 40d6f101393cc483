// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// payload is what is left of a command's payload. Its first error stays, and nothing is
// left after it.
type payload struct {
	rest   []byte
	offset int // of rest in the message
	err    error
}

func (p *payload) fail(offset int, expected, got string) {
	if p.err == nil {
		p.err = &ProtocolError{offset, expected, got}
	}
	p.rest = nil
}

// check fails if what was taken at an offset is not valid.
func (p *payload) check(offset int, err error) {
	var invalid *ValueError
	if errors.As(err, &invalid) {
		p.fail(offset, invalid.Expected, invalid.Got)
	}
}

func (p *payload) enable() Enable {
	levels := p.levels()
	if len(p.rest) < nameFieldSize {
		p.fail(p.offset, fmt.Sprintf("a name in %d bytes", nameFieldSize), fmt.Sprint(len(p.rest)))
	}
	logger := p.pattern()
	return Enable{Logger: logger, Levels: levels, Filter: p.filter()}
}

func (p *payload) levels() Levels {
	level := Level(p.number("a level"))
	at := p.offset
	l, err := NewLevels(LevelType(p.number("a type of levels")), level)
	p.check(at, err)
	return l
}

// pattern takes a name in its field, which ends with the payload at the latest.
func (p *payload) pattern() Pattern {
	at := p.offset
	b := p.next(uint64(min(max(1, len(p.rest)), nameFieldSize)), "a name")
	text, _, _ := bytes.Cut(b, []byte{0})
	pattern, err := ParsePattern(string(text))
	p.check(at, err)
	return pattern
}

func (p *payload) filter() Filter {
	at := p.offset
	f, err := ParseFilter(p.countedText("a filter"))
	p.check(at, err)
	return f
}

func (p *payload) context() Context {
	at := p.offset
	provider := p.countedText("the provider of a context")
	c, err := NewContext(provider, p.countedText("the name of a context"))
	p.check(at, err)
	return c
}

// countedText takes a text behind its size, which counts the NUL; or, with a size of
// 0, none.
func (p *payload) countedText(what string) string {
	b := p.next(uint64(p.number("the size of "+what)), what)
	text, found := bytes.CutSuffix(b, []byte{0})
	if len(b) > 0 && !found {
		p.fail(p.offset-1, "a NUL at the end of "+what, fmt.Sprintf("%#02x", b[len(b)-1]))
	}
	return string(text)
}

func (p *payload) number(what string) uint32 {
	b := p.next(4, what)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

// next takes n bytes of what is named.
func (p *payload) next(n uint64, what string) []byte {
	if n > uint64(len(p.rest)) {
		p.fail(p.offset, fmt.Sprintf("%d bytes of %s", n, what), fmt.Sprint(len(p.rest)))
		return nil
	}
	b := p.rest[:n]
	p.rest, p.offset = p.rest[n:], p.offset+int(n)
	return b
}
