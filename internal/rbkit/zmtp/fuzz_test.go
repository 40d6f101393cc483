// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
)

// outcome is the result of a subscriber of a script.
func outcome(t *testing.T, says string, piece int) (got []string, told, ended string) {
	conn := newScript(says, piece)
	got, err := received(t, conn, zmtp.Options{Limits: lowLimits}, []byte{})
	var e *zmtp.Error
	require.ErrorAs(t, err, &e, "a script ends, and so does the connection")
	for _, m := range got {
		require.LessOrEqual(t, len(m), lowLimits.Message+lowLimits.Parts)
	}
	return got, conn.told.String(), err.Error()
}

// checkOutcome plays a script in two ways, whole and byte by byte. The result may differ only for
// a wrong greeting, because more first bytes show more.
func checkOutcome(t *testing.T, says string) {
	got, told, ended := outcome(t, says, 0)
	for _, piece := range []int{1, 3} {
		gotPieces, toldPieces, endedPieces := outcome(t, says, piece)
		require.Equal(t, got, gotPieces)
		require.Equal(t, told, toldPieces)
		if len(says) > 0 && says[0] == '\xff' {
			require.Equal(t, ended, endedPieces)
		}
	}
}

func FuzzGreeting(f *testing.F) {
	for _, tt := range wrongPeers {
		f.Add([]byte(tt.peer))
	}
	f.Add([]byte(pub))
	f.Fuzz(func(t *testing.T, says []byte) { checkOutcome(t, string(says)) })
}

func FuzzHandshake(f *testing.F) {
	for _, tt := range wrongPeers {
		if len(tt.peer) > len(null31) {
			f.Add([]byte(tt.peer[len(null31):]))
		}
	}
	f.Add([]byte(ready("PUB")))
	f.Fuzz(func(t *testing.T, says []byte) {
		checkOutcome(t, null31+string(says))
		_, err := zmtp.Subscribe(t.Context(), newScript(plain31+string(says), 0), zmtp.Options{Security: zmtp.Plain{}})
		checkError(t, err)
	})
}

func FuzzTraffic(f *testing.F) {
	for _, tt := range wrongTraffic {
		f.Add([]byte(tt.traffic))
	}
	f.Add([]byte("\x00\x01a\x01\x01b" + pingNoLimit + "\x00\x00"))
	f.Add(zmtp.AppendMessage(nil, []byte("a"), make([]byte, 99)))
	f.Fuzz(func(t *testing.T, says []byte) { checkOutcome(t, pub+string(says)) })
}

// checkError checks that an error is of this package, or none.
func checkError(t *testing.T, err error) {
	var e *zmtp.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("expected an *Error, got %T: %v", err, err)
	}
}

// FuzzConnection connects every side to a peer that sends any bytes.
func FuzzConnection(f *testing.F) {
	for _, socket := range []string{"PUB", "SUB", "REQ", "REP"} {
		f.Add([]byte(null31 + ready(socket) + "\x01\x00\x00\x02ok\x04\x0b\x09SUBSCRIBEa\x04\x08\x06CANCELa"))
	}
	f.Add([]byte(plain31 + hello + initiate))
	f.Fuzz(func(t *testing.T, says []byte) {
		r, err := zmtp.Request(t.Context(), newScript(string(says), 0), zmtp.Options{Limits: lowLimits})
		checkError(t, err)
		for n := 0; err == nil; n++ {
			_, err = r.Ask(t.Context(), []byte(fmt.Sprint(n)))
			checkError(t, err)
		}
		for _, security := range []zmtp.Security{zmtp.Null{}, zmtp.Plain{Username: "name", Password: "secre"}} {
			options := zmtp.ServerOptions{
				Options: zmtp.Options{Security: security, Limits: lowLimits},
				Report:  func(err error) { checkError(t, err) },
			}
			publisher := zmtp.NewPublisher(zmtp.PublisherOptions{ServerOptions: options})
			serveScript(t, publisher.Serve, says)
			require.Zero(t, publisher.Subscriptions())
			serveScript(t, zmtp.NewReplier(options, func(request zmtp.Message) [][]byte { return request }).Serve, says)
		}
	})
}

// serveScript has a server serve one script to its end.
func serveScript(t *testing.T, serve func(context.Context, net.Listener) error, says []byte) {
	conn := &closing{script: newScript(string(says), 0), closed: make(chan struct{})}
	require.ErrorIs(t, serve(t.Context(), &oneConnection{conn: conn}), net.ErrClosed)
}

// closing is a script that reports when it is closed.
type closing struct {
	*script
	once   sync.Once
	closed chan struct{}
}

func (c *closing) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// oneConnection is a listener that has one connection, and is closed after it.
type oneConnection struct {
	conn  *closing
	given bool
}

func (o *oneConnection) Accept() (net.Conn, error) {
	if o.given {
		<-o.conn.closed
		return nil, net.ErrClosed
	}
	o.given = true
	return o.conn, nil
}

func (*oneConnection) Close() error   { return nil }
func (*oneConnection) Addr() net.Addr { return peerAddr{} }
