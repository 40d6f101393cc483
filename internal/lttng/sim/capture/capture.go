// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/testkit/capturefile"
)

// Capture contains the bytes between a viewer and a relay daemon.
type Capture struct {
	ViewerToRelay []byte
	RelayToViewer []byte
	// Exchanges are the requests, each with its reply, in order.
	Exchanges []Exchange
	// Minor is the agreed minor version.
	Minor uint32
}

// Exchange is a request and its reply.
type Exchange struct {
	At            time.Duration // of the reply's last byte, since the capture's first
	Request       lttnglive.Request
	RequestOffset int // in Capture.ViewerToRelay
	Reply         lttnglive.Reply
	ReplyOffset   int // in Capture.RelayToViewer
}

// The names of the files.
const (
	requestsFile = "viewer-to-relay.bin"
	repliesFile  = "relay-to-viewer.bin"
	timesFile    = "times.tsv"
)

// maxFileBytes bounds each unpacked file of a capture.
const maxFileBytes = 1 << 30

// Open reads the capture in the zip file of that name.
func Open(name string) (*Capture, error) { return capturefile.Open(name, Read) }

// Read reads the capture in a zip file of size bytes. It ignores files of other names. It fails if one of the three
// is missing or larger than 1 GiB, or if they contradict each other.
func Read(r io.ReaderAt, size int64) (*Capture, error) {
	names := []string{requestsFile, repliesFile, timesFile}
	limits := capturefile.Limits{File: maxFileBytes, All: int64(len(names)) * maxFileBytes}
	files, err := capturefile.Unpack(r, size, limits, func(name string) bool { return slices.Contains(names, name) })
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if files[name] == nil {
			return nil, fmt.Errorf("expected a file %s, got none", name)
		}
	}
	return parse(files[requestsFile], files[repliesFile], files[timesFile])
}

// parse splits the bytes of both directions into exchanges. The last request may have no reply.
func parse(requests, replies, times []byte) (*Capture, error) {
	sent, err := parseTimes(times)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", timesFile, err)
	}
	c := &Capture{ViewerToRelay: requests, RelayToViewer: replies}
	asked, answered := 0, 0
	for asked < len(requests) {
		request, n, err := lttnglive.DecodeRequest(requests[asked:])
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s from byte %d: %w", requestsFile, asked, err)
		case n == 0:
			return nil, fmt.Errorf("%s from byte %d: expected a whole request, got %d bytes", requestsFile, asked, len(requests)-asked)
		case answered == len(replies) && asked+n == len(requests):
			return c, nil
		}
		reply, m, err := lttnglive.DecodeReply(request, c.Minor, lttnglive.Limits{}, replies[answered:])
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s from byte %d, %s: %w", repliesFile, answered, request.Command(), err)
		case m == 0:
			return nil, fmt.Errorf("%s from byte %d: expected a whole reply to %s, got %d bytes", repliesFile, answered, request.Command(), len(replies)-answered)
		}
		if r, ok := reply.(lttnglive.ConnectReply); ok {
			c.Minor = min(r.Version.Minor, request.(lttnglive.ConnectRequest).Version.Minor)
		}
		at, err := sent.at(answered + m)
		if err != nil {
			return nil, err
		}
		c.Exchanges = append(c.Exchanges, Exchange{At: at, Request: request, RequestOffset: asked, Reply: reply, ReplyOffset: answered})
		asked += n
		answered += m
	}
	if answered < len(replies) {
		return nil, fmt.Errorf("%s: expected its end at byte %d, after the last reply, got %d more bytes", repliesFile, answered, len(replies)-answered)
	}
	return c, nil
}
