// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// capture is what an agent and a daemon sent each other on one connection.
type capture struct {
	name              string
	toDaemon, toAgent []byte
}

// captures are those in testdata: of the real Java agent with a test's daemon, which
// also sent what no daemon sends, and with the real one.
func captures(t testing.TB) []capture {
	t.Helper()
	const folder = "../../testdata/lttng/agent"
	var all []capture
	for _, ends := range [][2]string{{".a2s.bin", ".s2a.bin"}, {".c2s.bin", ".s2c.bin"}} {
		files, err := filepath.Glob(filepath.Join(folder, "*"+ends[0]))
		require.NoError(t, err)
		for _, file := range files {
			toDaemon, err := os.ReadFile(file)
			require.NoError(t, err)
			name := strings.TrimSuffix(filepath.Base(file), ends[0])
			toAgent, err := os.ReadFile(filepath.Join(folder, name+ends[1]))
			require.NoError(t, err)
			all = append(all, capture{name, toDaemon, toAgent})
		}
	}
	require.Len(t, all, 11, "captures in "+folder)
	return all
}

// exchange is a command as it was captured, and its reply.
type exchange struct {
	request Request
	command Command
	code    Code
	loggers []string
}

// exchanges decodes a capture, and checks that encoding the replies, and the commands
// that are as ours, gives the bytes that were captured.
func (c capture) exchanges(t testing.TB) (Registration, []exchange) {
	t.Helper()
	registration, err := ParseRegistration(c.toDaemon[:RegistrationSize])
	require.NoError(t, err)
	agent := registration.Agent()
	fromAgent := bufio.NewReader(bytes.NewReader(c.toDaemon[RegistrationSize:]))
	fromDaemon := bufio.NewReader(bytes.NewReader(c.toAgent))
	replies := registration.AppendTo(nil)
	rest := c.toAgent
	var all []exchange
	for {
		request, err := V2.ReadRequest(fromDaemon)
		if err == io.EOF || err != nil && strings.HasSuffix(err.Error(), "got 0: EOF") {
			break
		}
		require.NoError(t, err)
		command, err := request.Command(V2)
		require.NoError(t, err)
		e := exchange{request: request, command: command}
		switch command.(type) {
		case RegistrationDone:
			e.code = Success // is not sent
		case List:
			if e.code, e.loggers, err = readListed(agent, fromAgent); err == nil {
				replies = ListReply{e.code, e.loggers}.AppendTo(replies, V2)
			}
		default:
			if e.code, err = agent.ReadCode(fromAgent); err == nil {
				replies = e.code.AppendTo(replies)
			}
		}
		size := V2.headerSize() + len(request.Payload)
		if isOurs(request) {
			ours, err := agent.AppendCommand(nil, command)
			require.NoError(t, err)
			assert.Equal(t, rest[:size], ours, "%s", request.Type)
		}
		rest = rest[size:]
		if err != nil {
			require.ErrorIs(t, err, io.EOF, "the agent ended in front of a reply")
			require.Empty(t, rest)
			break
		}
		all = append(all, e)
	}
	assert.Equal(t, c.toDaemon, replies)
	return registration, all
}

func readListed(agent Agent, from *bufio.Reader) (Code, []string, error) {
	reply, err := agent.ReadList(from, Limits{})
	return reply.Code, reply.Loggers, err
}

// isOurs says that a captured command is one that we would send: the daemon of the
// captures also tried what the agent would make of others.
func isOurs(q Request) bool {
	switch q.Type {
	case CommandList:
		return len(q.Payload) == 0 && q.Version == 0
	case CommandDisable:
		return len(q.Payload) == nameFieldSize
	default:
		return true
	}
}

func TestCapturedExchangesAreDecodedAndEncodedByteForByte(t *testing.T) {
	loggers, ours := 0, 0
	for _, c := range captures(t) {
		registration, all := c.exchanges(t)
		assert.Equal(t, JUL, registration.Domain, c.name)
		for _, e := range all {
			loggers += len(e.loggers)
			if isOurs(e.request) {
				ours++
			}
		}
	}
	assert.Equal(t, 16, loggers)
	assert.Equal(t, 51, ours)
}
