// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

const captureFolder = "../../../testdata/lttng/agent"

// capture contains the bytes between an agent and a daemon on one connection.
type capture struct {
	name              string
	toDaemon, toAgent []byte
}

// captures returns those in testdata: the real Java agent with a test's daemon, which also sent invalid messages, and
// with the real daemon.
func captures(t testing.TB) []capture {
	t.Helper()
	var all []capture
	for _, ends := range [][2]string{{".a2s.bin", ".s2a.bin"}, {".c2s.bin", ".s2c.bin"}} {
		files, err := filepath.Glob(filepath.Join(captureFolder, "*"+ends[0]))
		require.NoError(t, err)
		for _, file := range files {
			toDaemon, err := os.ReadFile(file)
			require.NoError(t, err)
			name := strings.TrimSuffix(filepath.Base(file), ends[0])
			toAgent, err := os.ReadFile(filepath.Join(captureFolder, name+ends[1]))
			require.NoError(t, err)
			all = append(all, capture{name, toDaemon, toAgent})
		}
	}
	require.Len(t, all, 11, "captures in "+captureFolder)
	return all
}

// sizeOfHeader is the size of a command's header in version 2.0.
const sizeOfHeader = 16

// exchange is a captured command with the agent's reply.
type exchange struct {
	bytes    []byte
	request  lttngagent.Request
	command  lttngagent.Command
	reply    []byte // empty if the agent ended before
	code     lttngagent.Code
	loggers  []string
	answered bool
}

// requests returns the commands of a capture, and checks that it has no other bytes.
func (c capture) requests(t testing.TB) []exchange {
	t.Helper()
	var all []exchange
	for rest := c.toAgent; len(rest) > 0; {
		q, err := lttngagent.V2.ReadRequest(bufio.NewReader(bytes.NewReader(rest)))
		require.NoError(t, err, c.name)
		command, err := q.Command(lttngagent.V2)
		require.NoError(t, err, c.name)
		n := sizeOfHeader + len(q.Payload)
		all = append(all, exchange{bytes: rest[:n], request: q, command: command})
		rest = rest[n:]
	}
	return all
}

// exchanges returns the commands of a capture with the replies, and checks that it has no other bytes.
func (c capture) exchanges(t testing.TB) (lttngagent.Registration, []exchange) {
	t.Helper()
	registration, err := lttngagent.ParseRegistration(c.toDaemon[:lttngagent.RegistrationSize])
	require.NoError(t, err, c.name)
	agent, all := registration.Agent(), c.requests(t)
	rest := c.toDaemon[lttngagent.RegistrationSize:]
	for i := range all {
		e := &all[i]
		if e.request.Type == lttngagent.CommandRegistrationDone {
			continue // has no reply
		}
		if e.answered = len(rest) > 0; !e.answered {
			require.Equal(t, len(all)-1, i, "%s: the agent ended before its last reply", c.name)
			continue
		}
		unread := bytes.NewReader(rest)
		from := bufio.NewReader(unread)
		if e.request.Type == lttngagent.CommandList {
			var reply lttngagent.ListReply
			reply, err = agent.ReadList(from, lttngagent.Limits{})
			e.code, e.loggers = reply.Code, reply.Loggers
		} else {
			e.code, err = agent.ReadCode(from)
		}
		require.NoError(t, err, c.name)
		n := len(rest) - unread.Len() - from.Buffered()
		e.reply, rest = rest[:n], rest[n:]
	}
	require.Empty(t, rest, c.name)
	return registration, all
}

// isOurs reports whether AppendCommand encodes a captured command. The daemon of the captures also sent others to
// test the agent.
func (e exchange) isOurs() bool {
	switch e.request.Type {
	case lttngagent.CommandList:
		return len(e.request.Payload) == 0 && e.request.Version == 0
	case lttngagent.CommandDisable:
		return len(e.request.Payload) == 256
	default:
		return true
	}
}

func TestCapturedExchangesAreDecodedAndEncodedByteForByte(t *testing.T) {
	ours, others := 0, 0
	for _, c := range captures(t) {
		registration, all := c.exchanges(t)
		assert.Equal(t, c.toDaemon[:lttngagent.RegistrationSize], registration.AppendTo(nil), c.name)
		for i, e := range all {
			if e.answered {
				assert.Equal(t, e.reply, e.encodedReply(), "%s, reply %d", c.name, i)
			}
			encoded, err := registration.Agent().AppendCommand(nil, e.command)
			require.NoError(t, err)
			if !e.isOurs() {
				others++
				continue
			}
			ours++
			assert.Equal(t, e.bytes, encoded, "%s, command %d", c.name, i)
		}
	}
	assert.Equal(t, 53, ours)
	assert.Equal(t, 9, others)
}

func (e exchange) encodedReply() []byte {
	if e.request.Type == lttngagent.CommandList {
		return lttngagent.ListReply{Code: e.code, Loggers: e.loggers}.AppendTo(nil, lttngagent.V2)
	}
	return e.code.AppendTo(nil)
}

func TestCapturedExchangesEqualTheirRecord(t *testing.T) {
	compared := 0
	for _, c := range captures(t) {
		name, connection, _ := strings.Cut(c.name, ".")
		if name == "real2" {
			continue // has no record
		}
		record, err := os.ReadFile(filepath.Join(captureFolder, name+".log"))
		require.NoError(t, err)
		registration, all := c.exchanges(t)
		want := []string{fmt.Sprintf("REGISTER domain=%d(%s) pid=%d version=%d.%d",
			registration.Domain, registration.Domain, registration.PID, registration.Major, registration.Minor)}
		for _, e := range all {
			unrecorded := name == "jul_dribble" && !e.answered
			if e.answered || e.request.Type == lttngagent.CommandRegistrationDone && !unrecorded {
				want = append(want, e.asRecorded(name))
			}
		}
		assert.Equal(t, recorded(string(record), connection), want, c.name)
		compared++
	}
	assert.Equal(t, 10, compared)
}

// recorded returns the exchanges of a connection in the record of captures.
func recorded(record, connection string) []string {
	var exchanges []string
	current := ""
	for line := range strings.Lines(record) {
		_, entry, _ := strings.Cut(strings.TrimSpace(line), " ")
		if accepted, found := strings.CutPrefix(entry, "accepted "); found {
			current = accepted
			continue
		}
		text, found := strings.CutPrefix(entry, "["+connection+"] ")
		if !found && !(current == connection && strings.HasPrefix(entry, "dribbled ")) {
			continue
		}
		if !strings.HasSuffix(text, "closed by us") && !strings.HasPrefix(text, "EOFError") {
			exchanges = append(exchanges, strings.TrimSuffix(text, " (no reply expected)"))
		}
	}
	return exchanges
}

// asRecorded returns the exchange in the format of the record of captures.
func (e exchange) asRecorded(name string) string {
	var quoted []string
	size := 0
	for _, l := range e.loggers {
		quoted = append(quoted, "b'"+l+"'")
		size += len(l) + 1
	}
	switch c := e.command.(type) {
	case lttngagent.RegistrationDone:
		return "sent REG_DONE"
	case lttngagent.List:
		switch {
		case name == "jul_dribble":
			names := strings.Join(append(e.loggers, ""), `\x00`)
			return fmt.Sprintf("dribbled LIST %d %d %d b'%s'", e.code, size, len(e.loggers), names)
		case len(e.request.Payload) > 0:
			return fmt.Sprintf("LIST with %d-byte payload, ver %d -> rc=%d nb=%d", len(e.request.Payload), e.request.Version, e.code, len(e.loggers))
		case e.request.Version > 0:
			return fmt.Sprintf("LIST with cmd_version=%d -> rc=%d nb=%d", e.request.Version, e.code, len(e.loggers))
		}
		return fmt.Sprintf("LIST -> ret_code=%d data_size=%d nb=%d names=[%s]", e.code, size, len(e.loggers), strings.Join(quoted, ", "))
	case lttngagent.Enable:
		level := int64(c.Levels.Level())
		if c.Levels.Type() == lttngagent.AllLevels {
			level = -2147483648
		}
		return fmt.Sprintf("ENABLE name='%s' loglevel=%d type=%d filter=b'%s' -> ret_code=%d", c.Logger, level, c.Levels.Type(), c.Filter, e.code)
	case lttngagent.Disable:
		return fmt.Sprintf("DISABLE name='%s' (payload %d) -> ret_code=%d", c.Logger, len(e.request.Payload), e.code)
	case lttngagent.EnableContext:
		return fmt.Sprintf("APP_CTX ENABLE %s -> ret_code=%d", c.Context, e.code)
	case lttngagent.DisableContext:
		return fmt.Sprintf("APP_CTX DISABLE %s -> ret_code=%d", c.Context, e.code)
	default:
		return "unknown"
	}
}
