// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys"
)

// probed probes a server that does something with the request.
func probed(ctx context.Context, t *testing.T, config Config, do func(p *peer, r Request)) (net.Conn, *peer, Speaks, error) {
	t.Helper()
	c, p := connected(t, config)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r, err := p.requests.Next(); assert.NoError(t, err) {
			do(p, r)
		}
	}()
	speaks, err := Probe(ctx, c.conn, config)
	receive(t, done)
	return c.conn, p, speaks, err
}

func TestAProbeSaysWhichProtocolIsSpoken(t *testing.T) {
	short := Config{ProbeTimeout: 100 * time.Millisecond}
	for name, tt := range map[string]struct {
		config Config
		do     func(p *peer, r Request)
		want   Speaks
	}{
		"a version":                   {Config{}, func(p *peer, r Request) { p.answer(r.SendID, Done, versionIs) }, SpeaksGP},
		"a version of GP not known":   {Config{}, func(p *peer, r Request) { p.answer(r.SendID, VersionUnsupported, "") }, SpeaksGP},
		"a failure":                   {Config{}, func(p *peer, r Request) { p.answer(r.SendID, 77, "?") }, SpeaksGP},
		"a prompt":                    {Config{}, func(p *peer, _ Request) { p.raw("\rga?>") }, SpeaksConsole},
		"text":                        {Config{}, func(p *peer, _ Request) { p.raw("Command not found.\n\x04") }, SpeaksConsole},
		"the end of a reply":          {Config{}, func(p *peer, _ Request) { p.raw("\x04") }, SpeaksConsole},
		"silence, as the released do": {short, func(*peer, Request) {}, SpeaksConsole},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, speaks, err := probed(t.Context(), t, tt.config, tt.do)
			require.NoError(t, err)
			assert.Equal(t, tt.want, speaks)
		})
	}
}

func TestAProbeTellsWhatIsNeither(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(p *peer, r Request)
		says string
	}{
		"another request's reply": {func(p *peer, _ Request) { p.answer(2, Done, versionIs) }, "asking Greys server pipe for its protocol: byte 0: expected a reply to send_id 1, got one to 2"},
		"more than a reply": {func(p *peer, r Request) {
			p.raw(string(AppendAnswer(nil, Answer{SendID: 1})) + "x")
		}, "byte 16: expected one reply, got more bytes"},
		"half a reply":     {func(p *peer, _ Request) { p.raw("\x00\x00\x00\x01") }, "byte 4: expected the rest of a reply, got nothing within 200ms"},
		"an end":           {func(p *peer, _ Request) { _ = p.Close() }, "the connection was closed"},
		"too long a reply": {func(p *peer, _ Request) { p.raw("\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff") }, "byte 12: expected a length"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, speaks, err := probed(t.Context(), t, Config{ProbeTimeout: 200 * time.Millisecond}, tt.do)
			require.ErrorContains(t, err, tt.says)
			assert.Equal(t, SpeaksNeither, speaks)
		})
	}
}

func TestAProbeEndsWithItsContext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	_, _, speaks, err := probed(ctx, t, Config{}, func(*peer, Request) { end() })
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, SpeaksNeither, speaks)
}

// dated remembers the deadline of a connection.
type dated struct {
	net.Conn
	deadline time.Time
}

func (d *dated) SetDeadline(at time.Time) error {
	d.deadline = at
	return d.Conn.SetDeadline(at)
}

func TestAProbeLeavesNoDeadline(t *testing.T) {
	c, p := connected(t, Config{})
	conn := &dated{Conn: c.conn}
	go func() {
		if r, err := p.requests.Next(); assert.NoError(t, err) {
			p.answer(r.SendID, Done, versionIs)
		}
	}()
	_, err := Probe(t.Context(), conn, Config{})
	require.NoError(t, err)
	assert.Zero(t, conn.deadline)
}

func TestAProbedConnectionGoesOn(t *testing.T) {
	conn, p, _, err := probed(t.Context(), t, Config{}, func(p *peer, r Request) { p.answer(r.SendID, Done, versionIs) })
	require.NoError(t, err)
	c := NewClient(conn, Config{})
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- c.Serve(ctx) }()
	asking := run(t.Context(), t, c, greys.VersionCommand{})
	p.answer(p.request(Version).SendID, Done, versionIs)
	require.NoError(t, asking.end())
	end()
	require.Error(t, receive(t, served))
}

func TestAProbeIsNoLineOfTheConsole(t *testing.T) {
	_, _, _, err := probed(t.Context(), t, Config{}, func(p *peer, r Request) {
		assert.NotContains(t, string(AppendRequest(nil, r)), "\n")
		p.answer(r.SendID, Done, versionIs)
	})
	require.NoError(t, err)
}
