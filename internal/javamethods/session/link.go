// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// Asker sends a command. It calls each for every reply, in order, and returns when the command
// has ended, or when ctx ends it. Several goroutines may use it.
type Asker interface {
	Run(ctx context.Context, command javamethods.Command, each func(javamethods.Reply)) error
}

// Dialect describes how a server behaves, beside its commands.
type Dialect struct {
	// Protocol is the name of the protocol. A server that changes it counts as another process.
	Protocol string
	// ResetsAll means that a reset affects all classes, and its pattern has no effect.
	ResetsAll bool
	// OneLayer means that a class has the same instrumentation after many commands as after one.
	OneLayer bool
	// Aborts means that the client can abort a command at the server. Otherwise a cancelled command runs at the server
	// until the connection ends. MaxAbandoned limits such commands.
	Aborts       bool
	MaxAbandoned int
	// Unconfirmed means that the server need not confirm a command before its first result.
	Unconfirmed bool
	// ListsRecords means that the server has no command that records calls, and lists the recorded calls of all
	// clients.
	ListsRecords bool
	// MixesCalls means that the server keeps one begin of a call for each thread and command: times of methods that
	// call each other are false.
	MixesCalls bool
	// CountsSessions means that the server lists the sessions of all clients. NumbersSessions means that it reports
	// only the session of the connection, and numbers all sessions in order.
	CountsSessions, NumbersSessions bool
}

// Link is a server that speaks a known protocol. It ends when it is lost, or by Close.
type Link struct {
	Asker
	Dialect
	// Lost is closed when the link is lost. Why then returns the reason. Both are nil if each command has its own
	// connection.
	Lost <-chan struct{}
	Why  func() error
	// Begin prepares the process for the first session of the link with it. It returns classes that may have
	// instrumentation of an earlier collector. Nil means that the server keeps no sessions without a connection.
	Begin func(ctx context.Context, who Identity) (owed []javamethods.Classes, err error)
	// Close ends the link and waits for its goroutines.
	Close func()
	// Total returns the counts of the link so far.
	Total func() Stats
	// Unsent reports whether the command of an error did not reach the server.
	Unsent func(error) bool
	// IsSame reports whether a reply after a time shows that the server is still the same process. Then it need not identify
	// itself. Nil means that no reply shows it.
	IsSame func(after time.Time) bool
	// IsForeign reports whether an error shows that the peer is no such server, or has an unknown version.
	IsForeign func(error) bool

	// Abandoned is the number of cancelled commands that still run at the server, because the protocol cannot abort
	// them.
	Abandoned int

	reported Stats
}

// IsLost reports whether the link is lost.
func (l *Link) IsLost() bool {
	select {
	case <-l.Lost:
		return true
	default:
		return false
	}
}

// endsBy reports whether the error of an identity request shows that the link is unusable. Other errors concern only
// that request.
func (l *Link) endsBy(err error) bool {
	return l.IsForeign(err) || l.IsLost() || l.Unsent(err)
}

// IsOneConnection reports whether all commands share one connection.
func (l *Link) IsOneConnection() bool { return l.Lost != nil }

// NewStats returns the new counts since the last call, and the total. Only one goroutine may call it.
func (l *Link) NewStats() (since, total Stats) {
	total = l.Total()
	since = total.minus(l.reported)
	l.reported = total
	return since, total
}

// Stats are the counts of a link.
type Stats struct {
	// Bad are replies that could not be decoded. LastBad is the error of the last one, unless its command returns the
	// error. Missing are gaps in the sequence numbers of replies.
	Bad, Missing uint64
	LastBad      error
	// Repeated, Unasked and Late are dropped replies: the server sent them twice, without a
	// command, or after the end of their command.
	Repeated, Unasked, Late uint64
	// Lost are commands that the server ended without a reason. Unanswered are aborted commands
	// whose end the server did not confirm in time.
	Lost, Unanswered uint64
}

func (s Stats) minus(before Stats) Stats {
	return Stats{
		Bad: s.Bad - before.Bad, Missing: s.Missing - before.Missing, LastBad: s.LastBad,
		Repeated: s.Repeated - before.Repeated, Unasked: s.Unasked - before.Unasked, Late: s.Late - before.Late,
		Lost: s.Lost - before.Lost, Unanswered: s.Unanswered - before.Unanswered,
	}
}
