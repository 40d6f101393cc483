// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package printed

import (
	"fmt"
	"regexp"
	"strings"
)

// Value is a Number, a Text, a Label, a Struct or a List.
type Value any

type (
	// Number is a number with the printed digits: decimal, hexadecimal with 0x, or floating point with six digits.
	Number string
	// Text is a text.
	Text string
	// Label is the value of an enumeration. Name is "" if the value has no label.
	Label struct {
		Name   string
		Number Number
	}
	// Struct is a structure, or the selected option of a variant. Both look the same.
	Struct []Member
	// List is an array or a sequence.
	List []Value
)

// Member is a member of a structure.
type Member struct {
	Name  string
	Value Value
	// printed is the printed value, a text without its quotation marks.
	printed string
}

// parser reads a text from its beginning to its end.
type parser struct {
	text string
	at   int
}

func (p *parser) rest() string { return p.text[p.at:] }

// skip skips a text if it is next, and reports whether it was.
func (p *parser) skip(text string) bool {
	if !strings.HasPrefix(p.rest(), text) {
		return false
	}
	p.at += len(text)
	return true
}

func (p *parser) expect(text string) error {
	if !p.skip(text) {
		return fmt.Errorf("expected %q, got %.20q", text, p.rest())
	}
	return nil
}

// The characters of names, of digits after "0x", and of other numbers.
const (
	ofNames       = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:"
	ofHexadecimal = "0123456789ABCDEF"
	ofNumbers     = "-+.0123456789abcdefghijklmnopqrstuvwxyz"
)

// leading returns the longest prefix of text that consists of the characters in of. A regular expression is many
// times slower, and there are many names and numbers.
func leading(text, of string) string { return text[:len(text)-len(strings.TrimLeft(text, of))] }

var (
	labelStart = regexp.MustCompile(`^\( (?:"([^"]*)"|<unknown>) : container = ([-0-9a-zA-FxX]+) \)`)
	// textEnd matches a quotation mark and characters that can follow a value.
	textEnd = regexp.MustCompile(`"(?:, [\w.:\[\]]+ = | [}\]]|$)`)
)

// name reads the name of an assignment.
func (p *parser) name() (string, error) {
	const assigned = " = "
	name := leading(p.rest(), ofNames)
	if name == "" || !strings.HasPrefix(p.rest()[len(name):], assigned) {
		return "", fmt.Errorf("expected a name and %q, got %.20q", assigned, p.rest())
	}
	p.at += len(name) + len(assigned)
	return name, nil
}

// word reads up to the next comma.
func (p *parser) word() string {
	word, _, _ := strings.Cut(p.rest(), ",")
	p.at += len(word)
	return word
}

// value reads a value.
func (p *parser) value() (Value, error) {
	switch rest := p.rest(); {
	case strings.HasPrefix(rest, "{"):
		return p.structure()
	case strings.HasPrefix(rest, "["):
		return p.list()
	case strings.HasPrefix(rest, `"`):
		return p.quoted()
	case strings.HasPrefix(rest, "("):
		m := labelStart.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("expected a label and its number, got %.40q", rest)
		}
		p.at += len(m[0])
		return Label{Name: m[1], Number: Number(m[2])}, nil
	default:
		n := number(rest)
		if n == "" {
			return nil, fmt.Errorf("expected a value, got %.20q", rest)
		}
		p.at += len(n)
		return n, nil
	}
}

// number returns the number at the start of a text, or "".
func number(text string) Number {
	const hexadecimal = "0x"
	if digits, ok := strings.CutPrefix(text, hexadecimal); ok && leading(digits, ofHexadecimal) != "" {
		return Number(hexadecimal + leading(digits, ofHexadecimal))
	}
	return Number(leading(text, ofNumbers))
}

func (p *parser) quoted() (Value, error) {
	end := textEnd.FindStringIndex(p.rest()[1:])
	if end == nil {
		return nil, fmt.Errorf("expected the end of a text, got %.20q", p.rest())
	}
	text := p.rest()[1:][:end[0]]
	p.at += len(text) + 2
	return Text(text), nil
}

func (p *parser) structure() (Struct, error) {
	s := Struct{}
	err := p.between("{", "}", func() error {
		name, err := p.name()
		if err != nil {
			return err
		}
		from := p.at
		v, err := p.value()
		m := Member{Name: name, Value: v, printed: p.text[from:p.at]}
		if text, ok := v.(Text); ok {
			m.printed = string(text)
		}
		s = append(s, m)
		return err
	})
	return s, err
}

func (p *parser) list() (List, error) {
	l := List{}
	err := p.between("[", "]", func() error {
		if err := p.expect(fmt.Sprintf("[%d] = ", len(l))); err != nil {
			return err
		}
		v, err := p.value()
		l = append(l, v)
		return err
	})
	return l, err
}

// between reads items separated by commas.
func (p *parser) between(open, end string, one func() error) error {
	if err := p.expect(open + " "); err != nil {
		return err
	}
	for !p.skip(end) {
		if err := one(); err != nil {
			return err
		}
		if !p.skip(", ") {
			if err := p.expect(" "); err != nil {
				return err
			}
		}
	}
	return nil
}
