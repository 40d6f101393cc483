// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// probed probes a server whose reaction to the request is do.
func probed(ctx context.Context, t *testing.T, config Config, do func(p *peer, r Request)) (net.Conn, *peer, Probed, error) {
	t.Helper()
	c, p := connected(t, config)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r, err := p.requests.Next(); assert.NoError(t, err) {
			do(p, r)
		}
	}()
	how, err := Probe(ctx, c.conn, config)
	receive(t, done)
	return c.conn, p, how, err
}

func TestAProbeFindsTheProtocol(t *testing.T) {
	short := Config{ProbeTimeout: 100 * time.Millisecond}
	provoking := Config{ProbeTimeout: 100 * time.Millisecond, Provoke: true}
	for name, tt := range map[string]struct {
		config Config
		do     func(p *peer, r Request)
		want   Speaks
	}{
		"a version":                      {Config{}, func(p *peer, r Request) { p.answer(r.SendID, Done, versionIs) }, SpeaksGP},
		"an unknown version of GP":       {Config{}, func(p *peer, r Request) { p.answer(r.SendID, VersionUnsupported, "") }, SpeaksGP},
		"a failure":                      {Config{}, func(p *peer, r Request) { p.answer(r.SendID, 77, "?") }, SpeaksGP},
		"a prompt":                       {Config{}, func(p *peer, _ Request) { p.raw("\rga?>") }, SpeaksConsole},
		"text":                           {Config{}, func(p *peer, _ Request) { p.raw("Command not found.\n\x04") }, SpeaksConsole},
		"the end of a reply":             {Config{}, func(p *peer, _ Request) { p.raw("\x04") }, SpeaksConsole},
		"text, to a line end":            {provoking, func(p *peer, _ Request) { p.line(); p.raw("Command not found.\n\x04") }, SpeaksConsole},
		"nothing, to a line end":         {provoking, func(p *peer, _ Request) { p.line() }, SpeaksNothing},
		"silence, like released servers": {short, func(*peer, Request) {}, SpeaksNothing},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, how, err := probed(t.Context(), t, tt.config, tt.do)
			require.NoError(t, err)
			assert.Equal(t, tt.want, how.Speaks)
		})
	}
}

// line reads the line end of a provoking probe.
func (p *peer) line() {
	p.t.Helper()
	end := make([]byte, 4)
	_, err := io.ReadFull(p, end)
	assert.NoError(p.t, err)
	assert.Equal(p.t, "\r\n\r\n", string(end))
}

func TestAProbeFailsForOtherServers(t *testing.T) {
	for name, tt := range map[string]struct {
		do      func(p *peer, r Request)
		message string
	}{
		"another request's reply": {func(p *peer, _ Request) { p.answer(2, Done, versionIs) }, "asking Greys server pipe for its protocol: byte 0: expected a reply to send_id 1, got one to 2"},
		"more than a reply": {func(p *peer, r Request) {
			p.raw(string(AppendAnswer(nil, Answer{SendID: 1})) + "x")
		}, "byte 16: expected one reply, got more bytes"},
		"half a reply":                         {func(p *peer, _ Request) { p.raw("\x00\x00\x00\x01") }, "byte 4: expected the rest of a reply, got nothing within 200ms"},
		"an HTTP server that waits for a line": {func(p *peer, _ Request) { p.line(); p.raw("HTTP/1.0 400 Bad Request\r\n") }, "an HTTP server answers, not Greys"},
		"an HTTP server":                       {func(p *peer, _ Request) { p.raw("HTTP/1.1 400 Bad Request\r\n") }, "an HTTP server answers, not Greys"},
		"an end":                               {func(p *peer, _ Request) { _ = p.Close() }, "the connection was closed"},
		"too long a reply":                     {func(p *peer, _ Request) { p.raw("\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff") }, "byte 12: expected a length"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, how, err := probed(t.Context(), t, Config{ProbeTimeout: 200 * time.Millisecond, Provoke: true}, tt.do)
			require.ErrorContains(t, err, tt.message)
			assert.Equal(t, SpeaksNeither, how.Speaks)
		})
	}
}

func TestAProbeEndsWithItsContext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	_, _, how, err := probed(ctx, t, Config{}, func(*peer, Request) { end() })
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, SpeaksNeither, how.Speaks)
}

// dated records the deadline of a connection.
type dated struct {
	net.Conn
	deadline time.Time
}

func (d *dated) SetDeadline(at time.Time) error {
	d.deadline = at
	return d.Conn.SetDeadline(at)
}

func TestAProbeRemovesItsDeadline(t *testing.T) {
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

// The probe already has the version, so the client sends no second request for it.
func TestAClientUsesTheProbedConnection(t *testing.T) {
	conn, p, how, err := probed(t.Context(), t, Config{}, func(p *peer, r Request) {
		assert.EqualValues(t, 1, r.SendID)
		p.answer(r.SendID, Done, versionIs)
	})
	require.NoError(t, err)
	c := how.Client(conn, Config{Codes: UsualCodes()})
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- c.Serve(ctx) }()
	asking := run(t.Context(), t, c, javamethods.VersionCommand{})
	require.NoError(t, asking.end())
	assert.Len(t, asking.replies, 1, "the probe's answer")

	asking = run(t.Context(), t, c, javamethods.SessionsCommand{})
	r := p.request(UsualCodes().Sessions)
	assert.EqualValues(t, 2, r.SendID)
	p.answer(r.SendID, Done, `{"pid":1,"items":[]}`)
	require.NoError(t, asking.end())

	asking = run(t.Context(), t, c, javamethods.VersionCommand{})
	r = p.request(Version)
	assert.EqualValues(t, 3, r.SendID, "a second VersionCommand sends a request")
	p.answer(r.SendID, Done, versionIs)
	require.NoError(t, asking.end())
	assert.EqualValues(t, 3, c.Stats().Frames, "including the probe's")
	assert.Zero(t, c.Stats().Gaps)
	end()
	require.Error(t, receive(t, served))
}

func TestARefusedProbeFailsTheFirstVersionCommand(t *testing.T) {
	conn, _, how, err := probed(t.Context(), t, Config{}, func(p *peer, r Request) { p.answer(r.SendID, VersionUnsupported, "2") })
	require.NoError(t, err)
	err = how.Client(conn, Config{}).Run(t.Context(), javamethods.VersionCommand{}, func(javamethods.Reply) {})
	var version *VersionError
	require.ErrorAs(t, err, &version)
	assert.Equal(t, "2", version.Theirs)
}

func TestAProbeContainsNoLineOfTheConsole(t *testing.T) {
	_, _, _, err := probed(t.Context(), t, Config{}, func(p *peer, r Request) {
		assert.NotContains(t, string(AppendRequest(nil, r)), "\n")
		p.answer(r.SendID, Done, versionIs)
	})
	require.NoError(t, err)
}
