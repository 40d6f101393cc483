// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"math"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit"
)

func TestAProcessMatchesTheNameThatItReports(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		name      string
		want      bool
	}{
		{[]string{"ruby", "prog.rb"}, "prog.rb", true},
		{[]string{"/usr/bin/ruby3.1", "-Ilib", "/app/bin/rails", "server"}, "bin/rails", true},
		{[]string{"puma 6.4 (tcp://0.0.0.0:3000) [app]"}, "puma 6.4 (tcp://0.0.0.0:3000)", true},
		{[]string{"puma 6.4 (tcp://0.0.0.0:3000) [app]", "", ""}, "puma 6.4 (tcp://0.0.0.0:3000) [app]", true},
		{[]string{"sleep", "20"}, "puma 6.4", false},
		{[]string{"ruby", "other.rb"}, "prog.rb", false},
		{[]string{"ruby", "other.rb"}, "", false},
		{nil, "prog.rb", false},
	} {
		assert.Equal(t, c.want, isCalled(c.arguments, c.name), "%v is %q", c.arguments, c.name)
	}
}

func TestTheProcessOfThisMachineIsFound(t *testing.T) {
	directory, err := os.Getwd()
	require.NoError(t, err)
	hello := rbkit.HandshakeReply{}
	hello.PID, hello.WorkingDirectory, hello.ProcessName = uint64(os.Getpid()), directory, os.Args[0]
	local := FindLocal(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &hello)
	require.NotNil(t, local)
	assert.WithinRange(t, local.Started, time.Now().Add(-time.Hour), time.Now().Add(time.Second))

	assert.Nil(t, FindLocal(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, &hello), "another machine")
	other := hello
	other.WorkingDirectory = "/"
	assert.Nil(t, FindLocal(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &other), "another process")
	other = hello
	other.ProcessName = "puma 6.4 (tcp://0.0.0.0:3000)"
	assert.Nil(t, FindLocal(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &other), "a process of the same ID that does something else")
	other = hello
	other.PID = math.MaxUint64
	assert.Nil(t, FindLocal(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &other))
}

func TestRepliesDistinguishLivesOfAServer(t *testing.T) {
	hello := func(change func(*rbkit.HandshakeReply)) Identity {
		h := reply
		change(&h)
		return Identity{State: &h}
	}
	same := hello(func(*rbkit.HandshakeReply) {})
	at := func(seconds int64) Identity {
		return Identity{State: same.State, Local: &LocalProcess{Started: time.Unix(seconds, 0)}}
	}
	for name, c := range map[string]struct {
		before, now Identity
		other       bool
	}{
		"nothing is known":                  {Identity{}, Identity{}, false},
		"it doesn't answer any more":        {same, Identity{}, false},
		"it answers now":                    {Identity{}, same, false},
		"the same reply":                    {same, same, false},
		"it has changed its name":           {same, hello(func(h *rbkit.HandshakeReply) { h.ProcessName = "other" }), false},
		"it is in another directory":        {same, hello(func(h *rbkit.HandshakeReply) { h.WorkingDirectory = "/" }), false},
		"another process":                   {same, hello(func(h *rbkit.HandshakeReply) { h.PID++ }), true},
		"another version of the server":     {same, hello(func(h *rbkit.HandshakeReply) { h.ServerVersion = "2" }), true},
		"another dialect":                   {same, hello(func(h *rbkit.HandshakeReply) { h.Dialect = rbkit.Documented }), true},
		"a process that was started later":  {at(100), at(110), true},
		"a clock of the machine that moved": {at(100), at(101), false},
		"a process that was not to be seen": {same, at(100), false},
	} {
		assert.Equal(t, c.other, c.before.IsOther(c.now), name)
	}
}
