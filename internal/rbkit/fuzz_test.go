// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fuzzSeed is how large a captured message may be to be a seed: longer ones are alike.
const fuzzSeed = 12_000

// FuzzMessage reads any bytes as a message of both dialects. It writes the events of a valid
// message, reads them again, and expects the same.
func FuzzMessage(f *testing.F) {
	eachMessage(f, func(_ string, message, _ []byte) {
		if len(message) <= fuzzSeed {
			f.Add(message)
		}
	})
	for _, tt := range wrongEvents {
		f.Add(message(f, tt.event))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		_, err := DialectOf(message)
		checkError(t, message, err)
		for at := range message {
			readAlike(t, message, at)
		}
		for _, d := range []Dialect{Released, Documented} {
			events, err := told(d, message)
			checkError(t, message, err)
			require.LessOrEqual(t, len(events), len(message))
			if err != nil {
				continue
			}
			if again, ok := rewritten(t, d, message); ok {
				got, err := told(d, again)
				require.NoError(t, err)
				require.Equal(t, events, got)
			}
		}
	})
}

// checkError checks that an error is nil, or of this package with a position in the message.
func checkError(t *testing.T, message []byte, err error) {
	var wrong *ProtocolError
	switch {
	case err == nil:
	case !errors.As(err, &wrong):
		t.Fatalf("expected a *ProtocolError, got %T: %v", err, err)
	case wrong.Offset < 0 || wrong.Offset > len(message):
		t.Fatalf("expected a place in %d bytes, got: %v", len(message), err)
	case wrong.Problem.String() == "" || strings.HasPrefix(wrong.Problem.String(), "Problem("):
		t.Fatalf("expected a problem, got: %v", err)
	}
}

// rewritten is a message written again; ok is false where it has something that is read
// and not written.
func rewritten(t *testing.T, d Dialect, message []byte) (again []byte, ok bool) {
	var r Reader
	require.NoError(t, r.Open(d, message))
	c := NewCollection(d)
	for r.Next() {
		e := r.Event()
		switch e.Kind {
		case Unknown, ObjectSpaceDump, GCStats:
			return nil, false
		case ObjectDestroyed:
			if e.Object.Class != nil {
				return nil, false
			}
		case CPUSample:
			if slices.ContainsFunc(slices.Collect(e.Frames.All()), func(f Frame) bool { return f.Thread != 0 && d == Documented }) {
				return nil, false
			}
		case AllocationSnapshot:
			// A file of nil is written as none, and a second one of a name with the first.
			_, files := rewriteSnapshot(e.Snapshot)
			if slices.ContainsFunc(files, func(f FileAllocations) bool { return f.File == nil }) || len(files) != e.Snapshot.Files() {
				return nil, false
			}
		}
		require.NoError(t, appendEvent(c, e))
	}
	return c.AppendTo(nil, r.Header().Time, r.Header().Counter), true
}

func FuzzHandshake(f *testing.F) {
	for _, capture := range captures {
		for name, reply := range files(f, capture) {
			if isReply(name) {
				f.Add(reply)
			}
		}
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		h, err := DecodeHandshake(reply)
		checkError(t, reply, err)
		if err != nil {
			require.Zero(t, h)
			return
		}
		again, err := DecodeHandshake(AppendHandshake(nil, h))
		require.NoError(t, err)
		require.Equal(t, h, again)
		require.Equal(t, bytes.Equal(reply, OK()), CheckOK(reply) == nil)
	})
}
