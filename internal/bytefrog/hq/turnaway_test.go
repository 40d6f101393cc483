// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package hq

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// unstarted is an agent that was not started.
type unstarted struct {
	says []bytefrog.Message
	sent []bytefrog.Message
	// fails is the number of the message that cannot be sent, from 1.
	fails int
}

func (u *unstarted) Send(m bytefrog.Message) error {
	u.sent = append(u.sent, m)
	if len(u.sent) == u.fails {
		return errors.New("closed")
	}
	return nil
}

func (u *unstarted) Next(time.Time) (bytefrog.Message, error) {
	if len(u.says) == 0 {
		return nil, io.EOF
	}
	m := u.says[0]
	u.says = u.says[1:]
	return m, nil
}

func TestAnAgentGetsTheReasonWhenItCanReadIt(t *testing.T) {
	for name, c := range map[string]struct {
		says   []bytefrog.Message
		unread int
	}{
		"it reports a class": {[]bytefrog.Message{
			bytefrog.Heartbeat{}, bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored}, bytefrog.Heartbeat{},
		}, 1},
		"it sends none in time": {[]bytefrog.Message{bytefrog.Heartbeat{}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstarted{says: c.says}
			require.NoError(t, TurnAway(u, 1, "no room", time.Minute))
			require.Len(t, u.sent, 3)
			configuration, err := bytefrog.ParseAgentConfiguration(u.sent[0])
			require.NoError(t, err)
			assert.Zero(t, configuration.DataConnections)
			assert.Equal(t, []string{""}, configuration.Exclusions)
			assert.Equal(t, bytefrog.Command{Of: bytefrog.TypeStart}, u.sent[1])
			assert.Equal(t, bytefrog.ErrorMessage{Text: "no room"}, u.sent[2])
			assert.Len(t, u.says, c.unread, "nothing is read after the class report")
		})
	}
	for fails := 1; fails <= 3; fails++ {
		u := &unstarted{fails: fails}
		require.Error(t, TurnAway(u, 1, "no room", time.Minute))
		assert.Len(t, u.sent, fails)
	}
	require.Error(t, TurnAway(&unstarted{}, 9, "no room", time.Minute), "no such version")
}

func TestARefusedPeerThatStillSendsReadsTheReason(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	peer, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer peer.Close()
	conn, err := listener.Accept()
	require.NoError(t, err)
	_, err = peer.Write(make([]byte, 1000))
	require.NoError(t, err)
	require.NoError(t, peer.(*net.TCPConn).CloseWrite())
	Refuse(conn, "no room")
	require.NoError(t, conn.Close())
	received, err := io.ReadAll(peer)
	require.NoError(t, err)
	assert.Equal(t, bytefrog.ErrorMessage{Text: "no room"}.AppendTo(nil), received)
	assert.ErrorContains(t, Write(conn, bytefrog.DataHelloReply{}), "closed")
}
