// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent_test

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
)

func TestFaultsHaveNames(t *testing.T) {
	for i, name := range logagent.FaultNames() {
		kind, err := logagent.ParseFaultKind(name)
		require.NoError(t, err)
		assert.Equal(t, logagent.Silent+logagent.FaultKind(i), kind)
		assert.Equal(t, name, kind.String())
	}
	for _, name := range []string{"", "none"} {
		_, err := logagent.ParseFaultKind(name)
		assert.ErrorContains(t, err, `expected one of ["silent" "stranger"`)
	}
	assert.Equal(t, "fault 99", logagent.FaultKind(99).String())
}

func TestFaultsOfRegistrations(t *testing.T) {
	for kind, part := range map[logagent.FaultKind]string{
		logagent.Stranger: "or 6 (log4j2), got 99", logagent.Future: "version 2.0 of the protocol, got 9.0",
	} {
		d := listen(t)
		d.start(logagent.Options{Fault: logagent.Fault{Kind: kind, Times: 1}})
		l := d.accept()
		b := make([]byte, lttngagent.RegistrationSize)
		_, err := io.ReadFull(l.from, b)
		require.NoError(t, err)
		_, err = lttngagent.ParseRegistration(b)
		require.ErrorContains(t, err, part)
		require.NoError(t, l.Close())
		d.registered() // a correct one
	}
	d := listen(t)
	d.start(logagent.Options{Fault: logagent.Fault{Kind: logagent.Silent}})
	for range 2 {
		l := d.accept()
		require.NoError(t, l.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
		_, err := l.from.ReadByte()
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, l.Close())
	}
}

// isIncomplete reports whether the daemon waits for the rest of a list. The list of the RFC has no size of its names.
func isIncomplete(kind logagent.FaultKind, dialect lttngagent.Dialect) bool {
	switch kind {
	case logagent.Mute, logagent.Stall:
		return true
	case logagent.WrongCount, logagent.NoNUL:
		return dialect == lttngagent.RFC
	default:
		return false
	}
}

func TestFaultsOfLists(t *testing.T) {
	isProtocolError := func(err error) bool {
		var wrong *lttngagent.ProtocolError
		return errors.As(err, &wrong)
	}
	for kind, want := range map[logagent.FaultKind]func(error) bool{
		logagent.HugeSize:   isProtocolError,
		logagent.WrongCount: func(err error) bool { return isProtocolError(err) || timedOut(err) },
		logagent.NoNUL:      func(err error) bool { return isProtocolError(err) || timedOut(err) },
		logagent.NoUTF8:     isProtocolError,
		logagent.Mute:       timedOut,
		logagent.Stall:      timedOut,
		logagent.Die:        func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) },
	} {
		for _, dialect := range []lttngagent.Dialect{lttngagent.V2, lttngagent.RFC} {
			d := listen(t)
			a, _ := d.start(logagent.Options{
				Dialect: dialect, Loggers: []string{"a.b", "c.d"}, HandlerTimeout: time.Nanosecond,
				Fault: logagent.Fault{Kind: kind, After: 1, Times: 1},
			})
			await(t, "the loggers are there", func() bool { return len(a.Loggers()) == 2 })
			for connection := range 2 {
				l := d.link(dialect)
				assert.Len(t, l.list(), 2, "%s: before the fault", kind)
				if connection == 0 && isIncomplete(kind, dialect) {
					require.NoError(t, l.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
				}
				reply, err := l.tryList()
				if connection == 0 {
					assert.True(t, want(err), "%s, %s: got %v, %v", kind, dialect, reply, err)
				} else {
					assert.NoError(t, err, "%s, %s: it happens once", kind, dialect)
				}
				require.NoError(t, l.Close())
			}
			assert.Equal(t, 1, a.Stats().Faults, "%s", kind)
		}
	}
}

func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

func (d daemon) link(dialect lttngagent.Dialect) *link {
	if dialect == lttngagent.RFC {
		return d.accept()
	}
	l, _ := d.registered()
	return l
}

func TestCommandsAreRefused(t *testing.T) {
	d := listen(t)
	d.start(logagent.Options{Fault: logagent.Fault{Kind: logagent.Refuse, After: 1}})
	l, _ := d.registered()
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.Enable{Logger: pattern(t, "*")}))
	for range 2 {
		assert.Equal(t, lttngagent.Invalid, l.code(lttngagent.Enable{Logger: pattern(t, "*")}))
	}
}

func TestAnAgentSendsUnexpectedBytes(t *testing.T) {
	d := listen(t)
	d.start(logagent.Options{Fault: logagent.Fault{Kind: logagent.Talk}})
	l, _ := d.registered()
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.Enable{Logger: pattern(t, "*")}))
	b := make([]byte, len("unasked"))
	_, err := io.ReadFull(l.from, b)
	require.NoError(t, err)
	assert.Equal(t, "unasked", string(b))
}
