// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
)

// deadlines are those of the reads of a subscriber that gets opening and then traffic,
// one byte at a time.
func deadlines(t *testing.T, opening, traffic string, options zmtp.Options) (ofOpening, ofTraffic []time.Time) {
	t.Helper()
	conn := newScript(opening+traffic, 1)
	_, err := received(t, conn, options)
	require.ErrorIs(t, err, zmtp.ErrClosed)
	return conn.deadlines[:len(opening)], conn.deadlines[len(opening):]
}

func TestTheOpeningHasOneDeadline(t *testing.T) {
	began := time.Now()
	opening, _ := deadlines(t, pub, "", zmtp.Options{Timeout: time.Minute})
	// The deadline of all, and the earlier ends of two hesitations.
	different := slices.Compact(opening)
	require.Len(t, different, 3)
	require.WithinRange(t, different[2], began.Add(time.Minute), time.Now().Add(time.Minute))
	require.Less(t, different[0].Sub(began), time.Minute)
	require.Less(t, different[1].Sub(began), time.Minute)
}

func TestAMessageThatDripsHasNoMoreTimeThanOneThatStops(t *testing.T) {
	const size = 200_000
	body := strings.Repeat("a", size/2)
	_, traffic := deadlines(t, pub, long(1, body)+long(0, body), zmtp.Options{})
	// The first byte is waited for, then every 64 KiB have a deadline.
	require.Len(t, slices.Compact(traffic[1:len(traffic)-1]), 1+size/(64<<10))
}

func TestBetweenMessagesThereIsTimeUntilAPing(t *testing.T) {
	began := time.Now()
	_, traffic := deadlines(t, pub, "\x00\x01a", zmtp.Options{Heartbeat: time.Minute, Timeout: time.Hour})
	for _, idle := range []int{0, 3} {
		require.WithinRange(t, traffic[idle], began.Add(time.Minute), time.Now().Add(time.Minute))
	}
	require.WithinRange(t, traffic[1], began.Add(time.Hour), time.Now().Add(time.Hour))
}

func TestAPeerOfVersion30MayBeSilentForEver(t *testing.T) {
	_, traffic := deadlines(t, null30+ready("PUB"), "\x00\x01a", zmtp.Options{})
	require.Equal(t, []time.Time{{}, traffic[1], traffic[2], {}}, traffic)
	require.NotZero(t, traffic[1])
}

func TestATimeToLiveHoldsFromThenOn(t *testing.T) {
	const ping = "\x04\x07\x04PING\x00\x0a" // one second
	began := time.Now()
	_, traffic := deadlines(t, pub, ping, zmtp.Options{Heartbeat: time.Minute})
	require.WithinRange(t, traffic[0], began.Add(time.Minute), time.Now().Add(time.Minute))
	require.WithinRange(t, traffic[len(ping)], began.Add(time.Second), time.Now().Add(time.Second))
}

func TestAPeerIsAskedAfterAnHourAtLast(t *testing.T) {
	began := time.Now()
	_, traffic := deadlines(t, pub, "\x00\x01a", zmtp.Options{Heartbeat: 100 * time.Hour})
	require.WithinRange(t, traffic[0], began.Add(time.Hour), time.Now().Add(time.Hour))
}

// A replier may answer PING and nothing else: only the answer counts.
func TestARequestHasOneDeadlineAndNoPing(t *testing.T) {
	conn := newDialog(null31, ready("REP"), "", "\x01\x00\x00\x02ok")
	r, err := zmtp.Request(t.Context(), conn, zmtp.Options{Heartbeat: time.Nanosecond, Timeout: time.Hour})
	require.NoError(t, err)
	opened := len(conn.deadlines)
	began := time.Now()
	_, err = r.Ask(t.Context(), []byte("one"))
	require.NoError(t, err)
	require.NotEmpty(t, conn.deadlines[opened:])
	for _, d := range conn.deadlines[opened:] {
		require.WithinRange(t, d, began.Add(time.Hour), time.Now().Add(time.Hour))
	}
	require.NotContains(t, conn.told.String(), "PING")
}

// counted is a connection that counts deadlines of writes, and the bytes of the longest.
type counted struct {
	*script
	deadlines int
	longest   int
}

func (c *counted) Write(b []byte) (int, error) {
	c.longest = max(c.longest, len(b))
	return c.script.Write(b)
}

func (c *counted) SetWriteDeadline(time.Time) error {
	c.deadlines++
	return nil
}

func TestALongMessageIsSentInPiecesWithTheirOwnDeadlines(t *testing.T) {
	conn := &counted{script: newDialog(null31, ready("REP"), "", "", "", "", "\x01\x00\x00\x02ok")}
	r, err := zmtp.Request(t.Context(), conn, zmtp.Options{})
	require.NoError(t, err)
	conn.deadlines = 0
	_, err = r.Ask(t.Context(), make([]byte, 200<<10))
	require.NoError(t, err)
	require.Equal(t, 4, conn.deadlines)
	require.LessOrEqual(t, conn.longest, 64<<10)
}

// idle is a connection that returns no bytes and no error after its script.
type idle struct{ *script }

func (i idle) Read(b []byte) (int, error) {
	if i.says.Len() == 0 {
		return 0, nil
	}
	return i.script.Read(b)
}

func TestReceiveEndsOnAConnectionThatReadsNoBytesRepeatedly(t *testing.T) {
	_, err := received(t, idle{newScript(pub, 0)}, zmtp.Options{})
	require.ErrorIs(t, err, io.ErrNoProgress)
}
