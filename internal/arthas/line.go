// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// line builds a command line. These are the server's rules:
//
//   - Blanks and tabs outside of quotes separate tokens.
//   - Between two ' every character stands for itself. Between two " a \ stays, except before a ".
//   - Outside of quotes, a \ makes the next character stand for itself.
//   - The token | ends the command, also if a token begins or ends with it. The tokens > and >> write to a file. An & at
//     the end runs the command in the background. The server compares tokens without their quotes.
//   - The first token is the command. A token that begins with - is an option, until the token --.
//
// So a line has its options first, then --, then arguments. Arguments with other than harmless characters are in '.
type line struct {
	text strings.Builder
	err  error
}

func newLine(command string) *line {
	l := &line{}
	l.text.WriteString(command)
	return l
}

func (l *line) fail(err error) *line {
	if l.err == nil {
		l.err = err
	}
	return l
}

// word writes a word of the command's own language.
func (l *line) word(word string) *line {
	l.text.WriteByte(' ')
	l.text.WriteString(word)
	return l
}

// flag writes an option without a value, if it is set.
func (l *line) flag(option string, set bool) *line {
	if set {
		l.word(option)
	}
	return l
}

// number writes an option with a number, if it is not 0.
func (l *line) number(option string, value int64) *line {
	switch {
	case value < 0:
		return l.fail(fmt.Errorf("option %s is %d: expected at least 0", option, value))
	case value > 0:
		l.word(option).word(strconv.FormatInt(value, 10))
	}
	return l
}

// milliseconds writes an option with a duration, if it is not 0.
func (l *line) milliseconds(option string, d time.Duration) *line {
	if d%time.Millisecond != 0 {
		return l.fail(fmt.Errorf("option %s is %v: expected whole milliseconds", option, d))
	}
	return l.number(option, d.Milliseconds())
}

func (l *line) needs(has bool, what string) *line {
	if !has {
		return l.fail(errors.New("the command has no " + what))
	}
	return l
}

// pattern writes an option with a pattern, if it has one.
func (l *line) pattern(option string, value javamethods.Pattern) *line {
	if value != (javamethods.Pattern{}) {
		l.word(option).argument(value.String())
	}
	return l
}

// argument writes one token.
func (l *line) argument(text string) *line {
	if err := checkArgument("argument", text); err != nil {
		return l.fail(err)
	}
	if text != "" && strings.IndexFunc(text, mayNeedQuotes) < 0 {
		return l.word(text)
	}
	return l.word("'" + strings.ReplaceAll(text, "'", `'\''`) + "'")
}

func mayNeedQuotes(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && !strings.ContainsRune("._$*?-/", r)
}
