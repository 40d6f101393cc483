// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// MaxExpressionBytes is the maximum length of an expression.
const MaxExpressionBytes = 4096

// NewPattern returns a pattern that a command line can hold, or an error that names the first invalid character. Both
// servers read *, ? and the backslash alike.
func NewPattern(text string) (javamethods.Pattern, error) {
	p, err := javamethods.NewPattern(text)
	if err == nil {
		err = CheckPattern(p)
	}
	if err != nil {
		return javamethods.Pattern{}, err
	}
	return p, nil
}

// CheckPattern returns an error if a command line cannot hold a pattern.
func CheckPattern(p javamethods.Pattern) error { return checkArgument("pattern", p.String()) }

// Expression is an OGNL expression. The server runs it inside the traced program, where it can do everything, so only
// an operator may write one. It is one argument of a command. The zero value is no expression.
type Expression struct{ text string }

// NewExpression returns an expression, or an error that names the first invalid character. The server checks the
// expression itself.
func NewExpression(text string) (Expression, error) {
	switch {
	case text == "":
		return Expression{}, fmt.Errorf("expression is empty: expected an OGNL expression, such as #cost>10")
	case len(text) > MaxExpressionBytes:
		return Expression{}, fmt.Errorf("expression has %d bytes: expected at most %d", len(text), MaxExpressionBytes)
	case !utf8.ValidString(text):
		return Expression{}, fmt.Errorf("expression %q is not UTF-8", text)
	}
	for at, r := range text {
		if r != ' ' && !unicode.IsPrint(r) {
			return Expression{}, fmt.Errorf("expression %q has %q at byte %d: expected printable characters", text, r, at)
		}
	}
	if err := checkArgument("expression", text); err != nil {
		return Expression{}, err
	}
	return Expression{text}, nil
}

// LongerThan returns the condition that a call took longer than a duration.
func LongerThan(d time.Duration) Expression {
	return Expression{"#cost>" + strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)}
}

// String returns the text.
func (e Expression) String() string { return e.text }

// checkArgument refuses the texts that the server does not read as an argument, even in quotes: it removes the quotes
// before it looks for a pipe, for a file to write to, and for a command in the background.
func checkArgument(what, text string) error {
	switch {
	case text == ">" || text == ">>":
		return fmt.Errorf("%s is %q: the server would write its results to a file", what, text)
	case text == "&":
		return fmt.Errorf("%s is %q: the server would run the command in the background", what, text)
	case strings.HasPrefix(text, "|") || strings.HasSuffix(text, "|"):
		return fmt.Errorf("%s %q begins or ends with a vertical bar: the server would read it as a pipe", what, text)
	}
	return nil
}
