// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javamethods

import "errors"

// Reasons why a command failed. Errors of clients wrap one of them where it fits, with the words of the server.
var (
	// ErrUnsupported means that the server or its protocol does not know the command.
	ErrUnsupported = errors.New("the server does not support it")
	// ErrRefused means that the server knows the command and could not carry it out.
	ErrRefused = errors.New("the server could not carry it out")
	// ErrUnmatched means that the patterns match no method, although the server may have changed classes.
	ErrUnmatched = errors.New("the patterns match no method")
	// ErrLimit means that the command has reached its limit, as the server counts it: results that got lost count too.
	ErrLimit = errors.New("the command has reached its limit")
	// ErrSessionTimedOut means that the server ended an idle session.
	ErrSessionTimedOut = errors.New("the server ended the session because it was idle")
)
