// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// lexer splits text into tokens.
type lexer struct {
	text  []byte
	at    int
	where metadata.Position
}

// signs are the tokens of several characters that are neither words nor numbers, longer ones first.
var signs = []string{"...", ":=", "->", "<<", ">>"}

// next returns the next token and moves behind it.
func (l *lexer) next() (token, error) {
	if err := l.blank(); err != nil {
		return token{}, err
	}
	t := token{where: l.where}
	if l.at == len(l.text) {
		return t, nil
	}
	c := l.text[l.at]
	switch {
	case c == '"' || c == 'L' && l.follows("L\""):
		return l.quoted(t)
	case c == '\'' || c == 'L' && l.follows("L'"):
		return l.character(t)
	case isLetter(c):
		t.kind, t.text = word, l.run(isWord)
		return t, nil
	case isDigit(c):
		return l.number(t)
	}
	t.kind = sign
	for _, s := range signs {
		if l.follows(s) {
			t.text = s
			l.move(len(s))
			return t, nil
		}
	}
	if c < ' ' || c > '~' {
		return t, l.fail(t.where, "a token", fmt.Sprintf("the byte %#02x", c))
	}
	t.text = string(c)
	l.move(1)
	return t, nil
}

func (l *lexer) fail(where metadata.Position, expected, got string) error {
	return &metadata.Error{Where: where, Expected: expected, Got: got}
}

func (l *lexer) follows(s string) bool {
	return bytes.HasPrefix(l.text[l.at:], []byte(s))
}

// move moves n bytes forward.
func (l *lexer) move(n int) {
	l.where = l.where.After(l.text[l.at : l.at+n])
	l.at += n
}

// run returns the longest run of bytes that match, and moves behind it.
func (l *lexer) run(matches func(byte) bool) string {
	n := l.at
	for n < len(l.text) && matches(l.text[n]) {
		n++
	}
	text := string(l.text[l.at:n])
	l.move(n - l.at)
	return text
}

// blank moves behind white space and comments.
func (l *lexer) blank() error {
	for {
		n := l.at
		for n < len(l.text) && isBlank(l.text[n]) {
			n++
		}
		l.move(n - l.at)
		var stop string
		switch {
		case l.follows("//"):
			stop = "\n"
		case l.follows("/*"):
			stop = "*/"
		default:
			return nil
		}
		where := l.where
		l.move(2)
		n = bytes.Index(l.text[l.at:], []byte(stop))
		switch {
		case n >= 0:
			l.move(n + len(stop))
		case stop == "\n":
			l.move(len(l.text) - l.at)
		default:
			return l.fail(where, "the end of the comment that begins here", "the end of the text")
		}
	}
}

// quoted reads text between double quotes. The specification requires UTF-8 (section 7.1). Invalid UTF-8 is replaced
// by U+FFFD.
func (l *lexer) quoted(t token) (token, error) {
	if l.text[l.at] == 'L' {
		l.move(1)
	}
	text, err := l.unquote('"')
	t.kind, t.text = quoted, strings.ToValidUTF8(text, "\uFFFD")
	return t, err
}

// character reads a constant like 'a'. Its value is the number of the character.
func (l *lexer) character(t token) (token, error) {
	if l.text[l.at] == 'L' {
		l.move(1)
	}
	text, err := l.unquote('\'')
	if err != nil {
		return t, err
	}
	if len(text) != 1 {
		return t, l.fail(t.where, "one byte between single quotes", fmt.Sprintf("%d bytes", len(text)))
	}
	t.kind, t.value = number, metadata.Unsigned(uint64(text[0]))
	return t, nil
}

// unquote reads from one quote to the next.
func (l *lexer) unquote(quote byte) (string, error) {
	where := l.where
	l.move(1)
	var text []byte
	for l.at < len(l.text) {
		c := l.text[l.at]
		switch c {
		case quote:
			l.move(1)
			return string(text), nil
		case '\n':
			return "", l.fail(l.where, "the closing "+string(quote), "the end of the line")
		case '\\':
			var err error
			if text, err = l.escape(text); err != nil {
				return "", err
			}
		default:
			text = append(text, c)
			l.move(1)
		}
	}
	return "", l.fail(where, "the closing "+string(quote), "the end of the text")
}

// simpleEscapes are the escapes of one character.
var simpleEscapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
	'\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// escape appends the byte for the next escape sequence.
func (l *lexer) escape(text []byte) ([]byte, error) {
	where := l.where
	l.move(1)
	if l.at == len(l.text) {
		return nil, l.fail(where, "an escape sequence", "the end of the text")
	}
	c := l.text[l.at]
	if r, ok := simpleEscapes[c]; ok {
		l.move(1)
		return append(text, r), nil
	}
	base, most := 8, 3
	if c == 'x' {
		l.move(1)
		base, most = 16, 2
	}
	value, digits := 0, 0
	for ; l.at < len(l.text) && digits < most; digits++ {
		d := digit(l.text[l.at])
		if d >= base {
			break
		}
		value = value*base + d
		l.move(1)
	}
	if digits == 0 || value > 0xFF {
		return nil, l.fail(where, "an escape sequence for one byte", fmt.Sprintf("\\%c", c))
	}
	return append(text, byte(value)), nil
}

// number reads an integer constant of C: decimal, octal, hexadecimal or binary, with the suffixes u and l.
func (l *lexer) number(t token) (token, error) {
	text := l.run(isWord)
	digits, base := text, uint64(10)
	switch {
	case len(text) > 1 && (text[1] == 'x' || text[1] == 'X'):
		digits, base = text[2:], 16
	case len(text) > 1 && (text[1] == 'b' || text[1] == 'B'):
		digits, base = text[2:], 2
	case text[0] == '0':
		base = 8
	}
	bare := len(digits)
	for bare > 0 && isSuffix(digits[bare-1]) {
		bare--
	}
	if len(digits)-bare > len("ull") || bare == 0 {
		return t, l.fail(t.where, "an integer", text)
	}
	value := uint64(0)
	for i := range bare {
		d := uint64(digit(digits[i]))
		if d >= base {
			return t, l.fail(t.where, fmt.Sprintf("digits of base %d", base), text)
		}
		if value > (1<<64-1-d)/base {
			return t, l.fail(t.where, "an integer of at most 64 bits", text)
		}
		value = value*base + d
	}
	t.kind, t.value = number, metadata.Unsigned(value)
	return t, nil
}

// digit returns the value of a digit of up to base 16, or 16 for other characters.
func digit(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return 16
}

func isSuffix(c byte) bool { return c == 'u' || c == 'U' || c == 'l' || c == 'L' }
func isBlank(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'
}
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLetter(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
func isWord(c byte) bool { return isLetter(c) || isDigit(c) }
