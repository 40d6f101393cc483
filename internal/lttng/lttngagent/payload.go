// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// payload is the unread part of a command's payload. It records its first error, and is empty afterwards.
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

// check fails if err is a ValueError of a value at an offset.
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

// pattern reads a name from its field. The field may be shorter at the end of the payload.
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

// countedText reads a text after its size, which includes the NUL. A size of 0 means an empty text.
func (p *payload) countedText(name string) string {
	b := p.next(uint64(p.number("the size of "+name)), name)
	text, found := bytes.CutSuffix(b, []byte{0})
	if len(b) > 0 && !found {
		p.fail(p.offset-1, "a NUL at the end of "+name, fmt.Sprintf("%#02x", b[len(b)-1]))
	}
	return string(text)
}

func (p *payload) number(name string) uint32 {
	b := p.next(4, name)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

// next returns the next n bytes. name is their name for errors.
func (p *payload) next(n uint64, name string) []byte {
	if n > uint64(len(p.rest)) {
		p.fail(p.offset, fmt.Sprintf("%d bytes of %s", n, name), fmt.Sprint(len(p.rest)))
		return nil
	}
	b := p.rest[:n]
	p.rest, p.offset = p.rest[n:], p.offset+int(n)
	return b
}
