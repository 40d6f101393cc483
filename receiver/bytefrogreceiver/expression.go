// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
)

// areExpressions returns an error for the first value that is certainly no Java regular expression.
// The agent compiles them, and Go knows a part of Java's syntax.
func areExpressions(field string, values []string) error {
	for i, value := range values {
		if err := invalidInJava(value); err != nil {
			return fmt.Errorf("%s[%d] is %q, which is no Java regular expression: %w: correct it; to match a special character itself, write \\ in front of it",
				field, i, value, err)
		}
	}
	return nil
}

// invalidInJava returns an error for an expression that is invalid in Java too; nil: it may be valid.
// Go reads from left to right, and stops at syntax that only Java has, such as (?=a) and a*+.
func invalidInJava(expression string) error {
	_, err := syntax.Parse(expression, syntax.Perl)
	var wrong *syntax.Error
	if !errors.As(err, &wrong) {
		return nil
	}
	switch wrong.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen, syntax.ErrMissingBracket, syntax.ErrTrailingBackslash,
		syntax.ErrMissingRepeatArgument:
		return errors.New(wrong.Code.String())
	case syntax.ErrInvalidRepeatOp:
		// A + there is Java's possessive quantifier.
		if strings.HasSuffix(wrong.Expr, "*") {
			return errors.New(wrong.Code.String())
		}
	}
	return nil
}
