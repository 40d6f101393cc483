// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"errors"
	"fmt"
	"strings"
)

// Reasons why a request failed. Errors of a client wrap one of them where it fits.
var (
	// ErrSessionNotFound means that the server does not have the session: it expired, or the server was started again.
	ErrSessionNotFound = errors.New("the server does not have the session: it expired, or Arthas was started again")
	// ErrConsumerNotFound means that the server has the session, but no queue of the client: nothing pulled for 5
	// minutes.
	ErrConsumerNotFound = errors.New("the server removed the client's queue, because nothing pulled its results for 5 minutes")
	// ErrJobRunning means that another job runs in the session.
	ErrJobRunning = errors.New("another job runs in the session")
	// ErrNoJob means that no job runs in the session.
	ErrNoJob = errors.New("no job runs in the session")
	// ErrUnauthorized means that the server wants a user and a password, or refuses those that it got.
	ErrUnauthorized = errors.New("the server wants a user and a password, or refuses those that were sent")
	// ErrClosed means that the server closed the connection without an answer.
	ErrClosed = errors.New("the server closed the connection without an answer: Arthas stopped, or the Authorization header is malformed")
	// ErrNotListening means that nothing listens at the port.
	ErrNotListening = errors.New("nothing listens at the port: Arthas is not attached, or was stopped")
	// ErrTelnet means that Arthas' telnet port answers.
	ErrTelnet = errors.New("a telnet server answers, such as Arthas at port 3658: use the HTTP port of Arthas, which is 8563 by default")
	// ErrGreys means that a Greys server answers.
	ErrGreys = errors.New("a Greys server answers, and not Arthas: use the receiver greys")
	// ErrNotHTTP means that something answers that is not HTTP.
	ErrNotHTTP = errors.New("the answer is not HTTP: use the HTTP port of Arthas, which is 8563 by default")
	// ErrNotArthas means that an HTTP server answers that is not Arthas.
	ErrNotArthas = errors.New("an HTTP server answers, and not the API of Arthas")
	// ErrTooLarge means that an answer is larger than the limit.
	ErrTooLarge = errors.New("the answer is larger than the limit")
	// ErrCut means that an answer ended too early.
	ErrCut = errors.New("the answer ended too early")
	// ErrVersion means that the version of Arthas has no API as this package knows it.
	ErrVersion = errors.New("the version of Arthas is not supported: expected 3.4 or newer")
	// ErrClosedSession means that the client closed the session.
	ErrClosedSession = errors.New("the session is closed")
	// ErrPulling means that another pull of the session has not ended.
	ErrPulling = errors.New("another pull of the session has not ended")
)

// RequestError is a failed request.
type RequestError struct {
	// Peer is the address of the server. Action is the action of the API.
	Peer, Action string
	Err          error
}

// Error returns the error's text.
func (e *RequestError) Error() string { return fmt.Sprintf("%s: %s: %v", e.Peer, e.Action, e.Err) }

// Unwrap returns the reason.
func (e *RequestError) Unwrap() error { return e.Err }

// RefusedError is an answer of a server that did not carry out a request. It wraps one of the reasons above if the server
// names one.
type RefusedError struct {
	// State is the server's word: FAILED, REFUSED or another one.
	State, Message string
}

// Error returns the error's text. Of a known reason it has no ID, which would be another one each time.
func (e *RefusedError) Error() string {
	message := e.Message
	if known, is := e.known(); is {
		message = known.message
	}
	return fmt.Sprintf("the server answered %s: %s", e.State, message)
}

// Unwrap returns the reason, or nil.
func (e *RefusedError) Unwrap() error {
	known, _ := e.known()
	return known.reason
}

// known returns the known reason with which the message begins.
func (e *RefusedError) known() (refusal, bool) {
	for _, known := range refusals {
		if strings.HasPrefix(e.Message, known.message) {
			return known, true
		}
	}
	return refusal{}, false
}

// refusal is a reason with the begin of the server's message.
type refusal struct {
	message string
	reason  error
}

// refusals are the begins of the server's messages. Captures have each.
var refusals = []refusal{
	{"session not found", ErrSessionNotFound},
	{"consumer not found", ErrConsumerNotFound},
	{"Another job is running", ErrJobRunning},
	{"Another command is executing", ErrJobRunning},
	{"no foreground job is running", ErrNoJob},
}

// CommandError is the end of a command that failed.
type CommandError struct {
	// Code is the server's status code: -10 for a wrong command line, -1 for no matching class or a wrong expression,
	// 1 for others.
	Code    int32
	Message string
}

// Error returns the error's text.
func (e *CommandError) Error() string {
	return fmt.Sprintf("the command failed with status %d: %s", e.Code, e.Message)
}
