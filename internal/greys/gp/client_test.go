// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/javamethods"
)

const (
	cycleOf1  = `{"affect":{"class-count":"1","method-count":"1"},"items":[{"timestamp":"1","class":"a.B","method":"c","total":"1","success":"1","fail":"0","rt":"1"}]}`
	versionIs = `{"version":"1.8.0.0"}`
)

func TestTheFlowOfTheDocument(t *testing.T) {
	c, p, _ := serving(t, Config{})
	watching := run(t.Context(), t, c, monitor(t))
	first := p.request(Monitor)
	assert.Equal(t, Request{Version: 1, SendID: 1, Type: Monitor, Data: first.Data}, first)
	p.answer(1, Continued, cycleOf1)
	assert.Equal(t, &javamethods.Affected{Classes: 1, Methods: 1}, watching.next())
	assert.IsType(t, &javamethods.Statistics{}, watching.next())

	asking := run(t.Context(), t, c, javamethods.VersionCommand{})
	assert.Equal(t, int32(2), p.request(Version).SendID)
	p.answer(1, Continued, cycleOf1)
	p.answer(1, Done, cycleOf1)
	p.answer(2, Done, versionIs)
	assert.Equal(t, &javamethods.Version{Text: "1.8.0.0"}, asking.next())
	require.NoError(t, asking.end())
	assert.IsType(t, &javamethods.Statistics{}, watching.next(), "the counts are delivered once")
	assert.IsType(t, &javamethods.Statistics{}, watching.next())
	require.NoError(t, watching.end())
	assert.Equal(t, Stats{Frames: 4, Bytes: uint64(4*answerHeader + 3*len(cycleOf1) + len(versionIs))}, c.Stats())
}

func TestAFailingReturnCodeEndsItsRequest(t *testing.T) {
	for name, tt := range map[string]struct {
		code    ReturnCode
		data    string
		is      error
		message string
	}{
		"an unknown error":     {Failed, "out of memory", javamethods.ErrRefused, `GP server pipe, monitor a.* *: return code 0x10: the server could not carry it out: "out of memory"`},
		"an unknown type":      {TypeUnsupported, "{}", javamethods.ErrUnsupported, "return code 0x12: the server does not support it"},
		"an undocumented code": {0x13, "", javamethods.ErrRefused, "return code 0x13"},
		"a code of 32 bits":    {math.MaxUint32, strings.Repeat("x", 1000), javamethods.ErrRefused, "return code 0xffffffff"},
	} {
		t.Run(name, func(t *testing.T) {
			c, p, _ := serving(t, Config{})
			watching := run(t.Context(), t, c, monitor(t))
			p.answer(p.request(Monitor).SendID, tt.code, tt.data)
			err := watching.end()
			require.ErrorIs(t, err, tt.is)
			assert.ErrorContains(t, err, tt.message)
			assert.Less(t, len(err.Error()), 500)
			assert.NotContains(t, err.Error(), "{}", "empty data are omitted")

			asking := run(t.Context(), t, c, javamethods.VersionCommand{}) // the connection stays open
			p.answer(p.request(Version).SendID, Done, versionIs)
			require.NoError(t, asking.end())
		})
	}
}

func TestAnUnsupportedVersionEndsTheConnection(t *testing.T) {
	for data, message := range map[string]string{
		"":        "the server does not know version 0x0007 of the protocol, and does not report its own version",
		versionIs: `the server does not know version 0x0007 of the protocol, and reports "{\"version\":\"1.8.0.0\"}"`,
	} {
		c, p, served := serving(t, Config{Version: 7})
		watching, asking := run(t.Context(), t, c, monitor(t)), (*running)(nil)
		assert.Equal(t, uint16(7), p.request(Monitor).Version)
		asking = run(t.Context(), t, c, javamethods.VersionCommand{})
		p.answer(p.request(Version).SendID, VersionUnsupported, data)
		for _, err := range []error{served(), watching.end(), asking.end(), c.Run(t.Context(), javamethods.VersionCommand{}, nil)} {
			var wrong *VersionError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, &VersionError{Ours: 7, Theirs: data}, wrong)
			assert.ErrorContains(t, err, message)
			assert.NotErrorIs(t, err, javamethods.ErrUnsupported)
		}
	}
}

func TestIDsOfRequestsOverflow(t *testing.T) {
	c, p, _ := serving(t, Config{})
	c.lastID, p.respID = math.MaxInt32-1, math.MaxInt32-1
	watching := run(t.Context(), t, c, monitor(t))
	assert.Equal(t, int32(math.MaxInt32), p.request(Monitor).SendID)
	asking := run(t.Context(), t, c, javamethods.VersionCommand{})
	assert.Equal(t, int32(math.MinInt32), p.request(Version).SendID)
	p.answer(math.MaxInt32, Continued, cycleOf1) // after the largest resp_id follows the lowest
	p.answer(math.MinInt32, Done, versionIs)
	require.NoError(t, asking.end())
	p.answer(math.MaxInt32, Done, cycleOf1)
	require.NoError(t, watching.end())
	assert.Zero(t, c.Stats().Gaps)
}

func TestTheIDOfAnOpenRequestIsNotReused(t *testing.T) {
	c, p, _ := serving(t, Config{})
	ctx, end := context.WithCancel(t.Context())
	watching := run(t.Context(), t, c, monitor(t))
	p.request(Monitor) // 1: stays open
	left := run(ctx, t, c, monitor(t))
	p.request(Monitor) // 2
	end()
	require.ErrorIs(t, left.end(), context.Canceled)
	c.mu.Lock()
	c.lastID = 0
	c.mu.Unlock()
	asking := run(t.Context(), t, c, javamethods.VersionCommand{})
	assert.Equal(t, int32(3), p.request(Version).SendID)
	p.answer(3, Done, versionIs)
	require.NoError(t, asking.end())
	p.answer(1, Done, cycleOf1)
	require.NoError(t, watching.end())
}

func TestRepliesWithoutACallerAreCounted(t *testing.T) {
	c, p, _ := serving(t, Config{})
	p.answer(99, Done, versionIs)
	p.answer(-1, Failed, "")
	ctx, end := context.WithCancel(t.Context())
	watching := run(ctx, t, c, monitor(t))
	id := p.request(Monitor).SendID
	p.respID += 5
	p.answer(id, Continued, cycleOf1)
	watching.next()
	end()
	require.ErrorIs(t, watching.end(), context.Canceled)
	p.answer(id, Continued, cycleOf1)
	p.answer(id, Done, cycleOf1)
	p.answer(id, Done, cycleOf1) // its request has ended
	p.respID--
	p.answer(id, Done, cycleOf1)
	asking := run(t.Context(), t, c, javamethods.VersionCommand{})
	p.answer(p.request(Version).SendID, Done, versionIs)
	require.NoError(t, asking.end())
	stats := c.Stats()
	assert.Equal(t, Stats{Frames: 8, Bytes: stats.Bytes, Unasked: 4, Late: 2, Gaps: 2}, stats)
	assert.Empty(t, c.abandoned)
	assert.Empty(t, c.running)
}

func TestAnInvalidReplyIsDroppedAlone(t *testing.T) {
	c, p, _ := serving(t, Config{})
	watching := run(t.Context(), t, c, monitor(t))
	id := p.request(Monitor).SendID
	for _, data := range []string{"{", "[]", "null", "7", "\x00\xff", `{"items":[{}]}`, `{"items":{}}`, `{'items':[{'class':'a'},]}`, strings.Repeat("[", 1000)} {
		p.answer(id, Continued, data)
	}
	p.answer(id, Continued, "")
	p.answer(id, Continued, "{}")
	p.answer(id, Continued, cycleOf1[:len(cycleOf1)-1]+",}")
	watching.next()
	watching.next()
	p.answer(id, Done, `{"items":[7]}`)
	var wrong *ProtocolError
	require.ErrorAs(t, watching.end(), &wrong, "an invalid last reply is an error")
	stats := c.Stats()
	assert.Equal(t, uint64(9), stats.Dropped) // null is valid without an answer; the last reply counts once
	assert.Equal(t, uint64(1), stats.Tolerated)
	require.ErrorAs(t, stats.LastDropped, &wrong)
	assert.Equal(t, &ProtocolError{Offset: 10, Expected: `'{'`, Got: `'7'`}, wrong)
}

func TestACommandOfOneAnswerFailsWithoutIt(t *testing.T) {
	c, p, _ := serving(t, Config{Codes: UsualCodes()})
	for code, command := range map[RequestType]javamethods.Command{
		Version: javamethods.VersionCommand{}, 7: javamethods.SessionsCommand{}, 10: javamethods.RecordDetailCommand{}, Reset: javamethods.ResetCommand{Class: pattern(t, "a")},
	} {
		for _, data := range []string{"", "{}"} {
			asking := run(t.Context(), t, c, command)
			p.answer(p.request(code).SendID, Done, data)
			require.ErrorContains(t, asking.end(), "expected an answer, got an end without one", data)
		}
	}
}

func TestACommandWithoutARequestIsUnsupported(t *testing.T) {
	c, _ := connected(t, Config{})
	target := javamethods.Target{Class: pattern(t, "a"), Method: pattern(t, "b")}
	for _, command := range []javamethods.Command{
		javamethods.TraceCommand{Target: target}, javamethods.RecordCommand{Target: target}, // GP has none of these
		javamethods.SessionsCommand{}, javamethods.StackCommand{Target: target}, javamethods.RecordsCommand{}, javamethods.RecordDetailCommand{}, // these have no code
	} {
		require.ErrorIs(t, c.Run(t.Context(), command, nil), javamethods.ErrUnsupported)
	}
}

func TestASlowCallerFailsOnlyItsOwnRequest(t *testing.T) {
	c, p, _ := serving(t, Config{MaxWaiting: 4 * len(cycleOf1)})
	held, goOn := make(chan struct{}, 100), make(chan struct{})
	over := make(chan error, 1)
	given := 0
	go func() {
		over <- c.Run(t.Context(), monitor(t), func(javamethods.Reply) {
			given++
			held <- struct{}{}
			<-goOn
		})
	}()
	id := p.request(Monitor).SendID
	p.answer(id, Continued, cycleOf1)
	receive(t, held)
	for range 100 {
		p.answer(id, Continued, cycleOf1)
	}
	asking := run(t.Context(), t, c, javamethods.VersionCommand{})
	p.answer(p.request(Version).SendID, Done, versionIs)
	require.NoError(t, asking.end(), "other requests continue")
	close(goOn)
	require.ErrorIs(t, receive(t, over), ErrTooSlow)
	assert.Equal(t, 5, given, "the waiting replies are delivered: the counts, the first cycle, and the 3 that fit")
	assert.Equal(t, uint64(97), c.Stats().Late)
}

func TestASingleLongReplyMayAlwaysWait(t *testing.T) {
	c, p, _ := serving(t, Config{MaxWaiting: 1})
	watching := run(t.Context(), t, c, monitor(t))
	id := p.request(Monitor).SendID
	p.answer(id, Continued, cycleOf1)
	watching.next()
	watching.next()
	p.answer(id, Done, strings.Repeat(" ", 3<<20)+cycleOf1)
	watching.next()
	require.NoError(t, watching.end())
}

func TestTheBufferOfALongReplyIsReleased(t *testing.T) {
	q := newQueue(nil)
	for _, size := range []int{keptBuffer + 1, 1} {
		require.True(t, q.push(Continued, make([]byte, size), 0))
		replies, over := q.popAll(nil)
		require.NoError(t, over)
		_, data, rest := nextWaiting(replies)
		require.Len(t, data, size)
		require.Empty(t, rest)
		empty, _ := q.popAll(replies)
		require.Empty(t, empty)
		q.mu.Lock()
		require.LessOrEqual(t, cap(q.waiting), keptBuffer)
		require.Equal(t, size == 1, cap(q.waiting) > 0, "a buffer of the usual size is reused")
		q.mu.Unlock()
	}
}

func TestOpenRequestsHaveAMaximum(t *testing.T) {
	c, p, _ := serving(t, Config{MaxRequests: 2})
	ctx, end := context.WithCancel(t.Context())
	first, second := run(ctx, t, c, monitor(t)), (*running)(nil)
	p.request(Monitor)
	end()
	require.ErrorIs(t, first.end(), context.Canceled) // the server continues it
	second = run(t.Context(), t, c, monitor(t))
	id := p.request(Monitor).SendID
	require.ErrorIs(t, c.Run(t.Context(), javamethods.VersionCommand{}, nil), ErrTooMany)
	p.answer(id, Done, cycleOf1)
	require.NoError(t, second.end())
}

func TestATooLongFrameEndsOnlyItsRequest(t *testing.T) {
	const most = 2*keptBuffer + 17
	c, p, _ := serving(t, Config{MaxFrame: most})
	watching, listing := run(t.Context(), t, c, monitor(t)), (*running)(nil)
	watched := p.request(Monitor).SendID
	listing = run(t.Context(), t, c, javamethods.ClassesCommand{Class: pattern(t, "a")})
	listed := p.request(Classes).SendID
	p.answer(watched, Continued, cycleOf1)
	p.answer(listed, Continued, "{}"+strings.Repeat(" ", most-2)) // the maximum length
	for _, code := range []ReturnCode{Continued, Continued, Done} {
		p.answer(listed, code, strings.Repeat("x", most+1))
	}
	err := listing.end()
	var wrong *ProtocolError
	require.ErrorAs(t, err, &wrong)
	assert.ErrorContains(t, err, "GP server pipe, sc a: byte ")
	assert.ErrorContains(t, err, "expected a length of at most 2097169 bytes of data, got 2097170")

	p.answer(watched, Done, cycleOf1)
	watching.next()
	watching.next()
	watching.next()
	require.NoError(t, watching.end(), "the connection stays open")
	stats := c.Stats()
	assert.Equal(t, uint64(1), stats.Dropped)
	assert.Equal(t, wrong, stats.LastDropped)
	assert.Equal(t, uint64(2), stats.Late)
	assert.Equal(t, uint64(6*answerHeader+2*len(cycleOf1)+most+3*(most+1)), stats.Bytes)
	assert.Zero(t, stats.Gaps)
	c.mu.Lock()
	defer c.mu.Unlock()
	assert.Empty(t, c.abandoned, "its last reply ended it")
}

func TestARequestStaysOpenAfterATooLongReplyThatIsNotTheLast(t *testing.T) {
	c, p, _ := serving(t, Config{MaxFrame: 100, MaxRequests: 1})
	watching := run(t.Context(), t, c, monitor(t))
	id := p.request(Monitor).SendID
	p.answer(id, Continued, strings.Repeat("x", 101))
	require.Error(t, watching.end())
	require.ErrorIs(t, c.Run(t.Context(), javamethods.VersionCommand{}, nil), ErrTooMany, "the server continues it")
}

func TestATooLongReplyIsNotBuffered(t *testing.T) {
	in := &input{from: io.LimitReader(zeros{}, 1<<30)}
	require.NoError(t, in.skip(1<<30))
	assert.Len(t, in.buf, usualBuffer)
	assert.Equal(t, int64(1<<30), in.offset())
	require.Equal(t, io.ErrUnexpectedEOF, in.skip(1))
}

// zeros is an endless stream of zeros.
type zeros struct{}

func (zeros) Read(to []byte) (int, error) { return len(to), nil }

func TestALongReplyWithoutARequestEndsTheConnection(t *testing.T) {
	c, p, served := serving(t, Config{MaxFrame: 100})
	watching := run(t.Context(), t, c, monitor(t))
	id := p.request(Monitor).SendID
	p.answer(id, Continued, strings.Repeat(" ", 98)+"{}")
	p.raw(string(AppendAnswer(nil, Answer{SendID: id + 1, Data: make([]byte, 101)}))[:answerHeader])
	require.ErrorContains(t, served(), "byte 128: expected a length of at most 100 bytes of data, got 101")
	require.Error(t, watching.end())
	assert.Zero(t, c.Stats().Dropped)
}

func TestTheEndOfAConnectionEndsAllRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		do      func(p *peer)
		is      error
		message string
	}{
		"closed between replies": {func(p *peer) {}, ErrClosed, "GP server pipe: byte 0: the connection was closed"},
		"closed inside a header": {func(p *peer) { p.raw("\x00\x00\x00\x01") }, ErrClosed, "byte 0, inside a reply"},
		"closed behind a header": {func(p *peer) { p.raw("\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x08") }, ErrClosed, "byte 16, inside a reply"},
		"closed inside data":     {func(p *peer) { p.raw("\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x08{") }, ErrClosed, "byte 16, inside a reply"},
		"an impossible length": {
			func(p *peer) { p.raw("\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff") },
			nil, "GP server pipe: byte 12: expected a length of at most 16777216 bytes of data, got 4294967295",
		},
		"the text console's prompt": {func(p *peer) { p.raw("\rga?>") }, ErrConsole, `this is the Greys text console, not GP: it begins with "\rga?>"`},
		"the end of its reply":      {func(p *peer) { p.raw("\x04") }, ErrConsole, ""},
		"a web server":              {func(p *peer) { p.raw("HTTP/1.1 400 Bad Request\r\n") }, greys.ErrHTTP, "HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			c, p, served := serving(t, Config{})
			watching := run(t.Context(), t, c, monitor(t))
			p.request(Monitor)
			tt.do(p)
			require.NoError(t, p.Close())
			for _, err := range []error{served(), watching.end()} {
				if tt.is != nil {
					require.ErrorIs(t, err, tt.is)
				}
				if tt.is == nil {
					var wrong *ProtocolError
					require.ErrorAs(t, err, &wrong)
				}
			}
			assert.ErrorContains(t, served(), tt.message)
			require.Error(t, c.Run(t.Context(), javamethods.VersionCommand{}, nil))
		})
	}
}

func TestRepliesBeforeTheEndAreDelivered(t *testing.T) {
	c, p, served := serving(t, Config{})
	goOn := make(chan struct{})
	given, over := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		over <- c.Run(t.Context(), monitor(t), func(javamethods.Reply) { given <- struct{}{}; <-goOn })
	}()
	id := p.request(Monitor).SendID
	for range 4 {
		p.answer(id, Continued, cycleOf1)
	}
	require.NoError(t, p.Close())
	require.ErrorIs(t, served(), ErrClosed)
	close(goOn)
	require.ErrorIs(t, receive(t, over), ErrClosed)
	assert.Len(t, given, 5)
}

func TestNothingIsDeliveredAfterTheContextEnded(t *testing.T) {
	c, p, _ := serving(t, Config{})
	ctx, end := context.WithCancel(t.Context())
	goOn, over := make(chan struct{}), make(chan error, 1)
	given := 0
	go func() {
		over <- c.Run(ctx, monitor(t), func(javamethods.Reply) {
			given++
			<-goOn
		})
	}()
	id := p.request(Monitor).SendID
	for range 10 {
		p.answer(id, Continued, cycleOf1)
	}
	asking := run(t.Context(), t, c, javamethods.VersionCommand{}) // all of that has arrived
	p.answer(p.request(Version).SendID, Done, versionIs)
	require.NoError(t, asking.end())
	end()
	close(goOn)
	require.Equal(t, context.Canceled, receive(t, over))
	assert.LessOrEqual(t, given, 2, "the rest of the waiting replies")
}

func TestNothingIsSentAfterTheContextEnded(t *testing.T) {
	c, p, _ := serving(t, Config{})
	ctx, end := context.WithCancel(t.Context())
	end()
	require.Equal(t, context.Canceled, c.Run(ctx, monitor(t), func(javamethods.Reply) {}))
	asking := run(t.Context(), t, c, javamethods.VersionCommand{})
	p.answer(p.request(Version).SendID, Done, versionIs) // the first received request
	require.NoError(t, asking.end())
}

func TestServeEndsWithItsContext(t *testing.T) {
	c, p := connected(t, Config{})
	ctx, end := context.WithCancelCause(t.Context())
	served := make(chan error, 1)
	go func() { served <- c.Serve(ctx) }()
	watching := run(t.Context(), t, c, monitor(t))
	p.request(Monitor)
	end(errors.New("why"))
	require.ErrorIs(t, receive(t, served), context.Canceled)
	require.ErrorIs(t, watching.end(), context.Canceled)
	_, err := p.Read(make([]byte, 1))
	require.Error(t, err, "the connection is closed")
}

func TestAServerThatDoesNotReadFailsTheConnection(t *testing.T) {
	c, _, served := serving(t, Config{WriteTimeout: time.Millisecond})
	err := c.Run(t.Context(), javamethods.VersionCommand{}, nil)
	require.ErrorContains(t, err, "GP server pipe, version: writing a request of type 0x0002")
	require.ErrorContains(t, served(), "writing a request of type 0x0002")
}
