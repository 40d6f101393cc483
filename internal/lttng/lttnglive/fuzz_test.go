// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// fuzzLimits are low, so that random bytes often exceed them.
var fuzzLimits = lttnglive.Limits{Sessions: 3, Streams: 3, Packet: 1 << 16, Metadata: 1 << 16}

// fuzzSeed is the maximum size of a reply as a seed, because entries of streams are long and similar.
const fuzzSeed = 10_000

// fuzzReply fuzzes the replies to one command, from bytes and from a connection. The seeds are the replies of all
// captures and of the tests.
func fuzzReply(f *testing.F, request lttnglive.Request, minors ...uint32) {
	for _, name := range captureNames {
		c := openCapture(f, name)
		for i, e := range c.Exchanges {
			if e.Request.Command() != request.Command() {
				continue
			}
			end := len(c.RelayToViewer)
			if i+1 < len(c.Exchanges) {
				end = c.Exchanges[i+1].ReplyOffset
			}
			f.Add(c.RelayToViewer[e.ReplyOffset:min(end, e.ReplyOffset+fuzzSeed)], uint8(4))
		}
	}
	for _, c := range replyCases {
		if c.request.Command() == request.Command() {
			f.Add(unhex(f, c.bytes), uint8(c.minor))
		}
	}
	for _, c := range wrongReplies {
		if c.request.Command() == request.Command() {
			f.Add(unhex(f, c.bytes), uint8(c.minor))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, minor uint8) {
		checkReply(t, request, uint32(minor), b)
	})
}

// checkReply decodes b, checks the guarantees of DecodeReply, and that a viewer reads the same from a connection.
func checkReply(t *testing.T, request lttnglive.Request, minor uint32, b []byte) {
	reply, n, err := lttnglive.DecodeReply(request, minor, fuzzLimits, b)
	var wrong *lttnglive.ProtocolError
	switch {
	case err != nil:
		if !errors.As(err, &wrong) || wrong.Offset >= len(b) || reply != nil || n != 0 {
			t.Fatalf("expected a ProtocolError inside %d bytes and nothing else, got %v, %v of %d bytes", len(b), err, reply, n)
		}
	case n == 0:
		if reply != nil {
			t.Fatalf("expected no reply, got %v", reply)
		}
	default:
		again, m, err := lttnglive.DecodeReply(request, minor, fuzzLimits, reply.AppendTo(nil, minor))
		if err != nil || m != n || !bytes.Equal(again.AppendTo(nil, minor), reply.AppendTo(nil, minor)) {
			t.Fatalf("decoded, encoded and decoded again: expected %v of %d bytes, got %v of %d bytes, %v", reply, n, again, m, err)
		}
	}
	if minor < lttnglive.MinMinor || minor > lttnglive.MaxMinor || request.Command() == lttnglive.CommandDetachSession && minor < 8 {
		return // no viewer sends such a request
	}
	got := readFromConnection(request, minor, b)
	var status *lttnglive.StatusError
	switch {
	case err != nil && (!errors.As(got, &wrong) || got.Error() != "relay daemon bytes, "+request.Command().String()+": "+err.Error()):
		t.Fatalf("expected %v from a connection, too, got %v", err, got)
	case err == nil && n == 0 && !errors.Is(got, lttnglive.ErrClosed):
		t.Fatalf("expected %v, got %v", lttnglive.ErrClosed, got)
	case err == nil && n > 0 && got != nil && !errors.As(got, &status):
		t.Fatalf("expected %v to be read from a connection, too, got %v", reply, got)
	}
}

// readFromConnection makes a viewer read b as the reply to the request, after the replies that it needs first.
func readFromConnection(request lttnglive.Request, minor uint32, b []byte) error {
	connected := lttnglive.ConnectReply{Version: lttnglive.Version{Major: 2, Minor: minor}}.AppendTo(nil, minor)
	created := lttnglive.CreateSessionReply{Status: lttnglive.CreateSessionOK}.AppendTo(nil, minor)
	attached := lttnglive.AttachSessionReply{Status: lttnglive.AttachOK}.AppendTo(nil, minor)
	conn := &byteConn{}
	switch request.Command() {
	case lttnglive.CommandConnect:
		conn.Reset(b)
	case lttnglive.CommandListSessions:
		conn.Reset(slices.Concat(connected, b))
	case lttnglive.CommandCreateSession:
		if len(b) >= len(created) {
			b = slices.Concat(b[:len(created)], attached)
		}
		conn.Reset(slices.Concat(connected, b))
	case lttnglive.CommandAttachSession:
		conn.Reset(slices.Concat(connected, created, b))
	default:
		conn.Reset(slices.Concat(connected, created, attached, b))
	}
	ctx := context.Background()
	v, err := lttnglive.Connect(ctx, conn, lttnglive.ViewerOptions{Limits: fuzzLimits})
	if err != nil || request.Command() == lttnglive.CommandConnect {
		return err
	}
	if request.Command() == lttnglive.CommandListSessions {
		_, err = v.Sessions(ctx)
		return err
	}
	a, _, err := v.Attach(ctx, 1, lttnglive.SeekLast)
	if err != nil {
		return err
	}
	switch r := request.(type) {
	case lttnglive.GetNextIndexRequest:
		_, err = a.NextIndex(ctx, 5)
	case lttnglive.GetPacketRequest:
		_, err = a.Packet(ctx, 5, 0, uint64(r.Length), nil)
	case lttnglive.GetMetadataRequest:
		_, err = a.Metadata(ctx, 5, nil)
	case lttnglive.GetNewStreamsRequest:
		_, err = a.NewStreams(ctx)
	case lttnglive.DetachSessionRequest:
		err = a.Detach(ctx)
	}
	return err
}

// byteConn is a connection with fixed input, then its end. It accepts all output.
type byteConn struct{ bytes.Reader }

type byteAddr struct{}

func (byteAddr) Network() string { return "bytes" }
func (byteAddr) String() string  { return "bytes" }

func (*byteConn) Write(b []byte) (int, error)      { return len(b), nil }
func (*byteConn) Close() error                     { return nil }
func (*byteConn) LocalAddr() net.Addr              { return byteAddr{} }
func (*byteConn) RemoteAddr() net.Addr             { return byteAddr{} }
func (*byteConn) SetDeadline(time.Time) error      { return nil }
func (*byteConn) SetReadDeadline(time.Time) error  { return nil }
func (*byteConn) SetWriteDeadline(time.Time) error { return nil }

func FuzzConnectReply(f *testing.F) { fuzzReply(f, lttnglive.ConnectRequest{}) }

func FuzzListSessionsReply(f *testing.F) { fuzzReply(f, lttnglive.ListSessionsRequest{}) }

func FuzzAttachSessionReply(f *testing.F) { fuzzReply(f, lttnglive.AttachSessionRequest{}) }

func FuzzIndex(f *testing.F) { fuzzReply(f, lttnglive.GetNextIndexRequest{}) }

// The captures' packets have 4,096 bytes. Those of the tables are too short for this request.
func FuzzPacketReply(f *testing.F) { fuzzReply(f, lttnglive.GetPacketRequest{Length: 4096}) }

func FuzzMetadataReply(f *testing.F) { fuzzReply(f, lttnglive.GetMetadataRequest{}) }

func FuzzNewStreamsReply(f *testing.F) { fuzzReply(f, lttnglive.GetNewStreamsRequest{}) }

func FuzzCreateSessionReply(f *testing.F) { fuzzReply(f, lttnglive.CreateSessionRequest{}) }

func FuzzDetachSessionReply(f *testing.F) { fuzzReply(f, lttnglive.DetachSessionRequest{}) }

func FuzzRequest(f *testing.F) {
	for _, c := range requestCases {
		f.Add(unhex(f, c.bytes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		request, n, err := lttnglive.DecodeRequest(b)
		var unknown *lttnglive.UnknownCommandError
		switch {
		case err != nil:
			if !errors.As(err, &unknown) || request != nil || n != 0 {
				t.Fatalf("expected an UnknownCommandError and nothing else, got %v, %v of %d bytes", err, request, n)
			}
		case n == 0:
			if request != nil {
				t.Fatalf("expected no request, got %v", request)
			}
		default:
			again, m, err := lttnglive.DecodeRequest(lttnglive.AppendRequest(nil, request))
			if err != nil || m != n || again != request {
				t.Fatalf("decoded, encoded and decoded again: expected %v of %d bytes, got %v of %d bytes, %v", request, n, again, m, err)
			}
		}
	})
}

// FuzzRelay serves a viewer that sends any bytes. Serving ends with the viewer, and all output can be read as replies
// to its requests.
func FuzzRelay(f *testing.F) {
	for _, name := range captureNames {
		c := openCapture(f, name)
		f.Add(c.ViewerToRelay[:min(len(c.ViewerToRelay), 1000)])
	}
	var all []byte
	for _, c := range requestCases {
		all = append(all, unhex(f, c.bytes)...)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, b []byte) {
		relay, err := lttnglive.NewRelay([]*lttnglive.Recording{recording()}, lttnglive.RelayOptions{Restart: true})
		if err != nil {
			t.Fatal(err)
		}
		conn := &recordingConn{}
		conn.Reset(b)
		err = relay.Serve(context.Background(), conn)
		replies, minor := conn.written.Bytes(), uint32(0)
		for {
			request, n, decodeErr := lttnglive.DecodeRequest(b)
			if decodeErr != nil || n == 0 {
				break
			}
			b = b[n:]
			reply, m, decodeErr := lttnglive.DecodeReply(request, minor, lttnglive.Limits{Packet: 1 << 30}, replies)
			if decodeErr != nil {
				t.Fatalf("%s: %v", request.Command(), decodeErr)
			}
			if m == 0 {
				if err == nil {
					t.Fatalf("%s: expected a reply, got none", request.Command())
				}
				break
			}
			if r, ok := reply.(lttnglive.ConnectReply); ok {
				minor = min(r.Version.Minor, request.(lttnglive.ConnectRequest).Version.Minor)
			}
			replies = replies[m:]
		}
		if rest := len(replies); rest != 0 && !(rest == 4 && err != nil) {
			t.Fatalf("expected no reply without a request, got %d bytes; %v", rest, err)
		}
	})
}

// recordingConn is a byteConn that records its output.
type recordingConn struct {
	byteConn
	written bytes.Buffer
}

func (c *recordingConn) Write(b []byte) (int, error) { return c.written.Write(b) }
