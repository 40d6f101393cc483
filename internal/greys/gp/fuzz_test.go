// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// FuzzJSON compares the scanner with encoding/json on any bytes. Differences are allowed only for deep nesting and for
// strings that are not UTF-8.
func FuzzJSON(f *testing.F) {
	for _, text := range someJSON {
		f.Add([]byte(text))
	}
	for _, d := range allOfTheDocument(f) {
		f.Add(sample(f, d.sample+".reply"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := scanned(data)
		checkError(t, data, err)
		valid := json.Valid(data)
		switch {
		case err == nil && !valid:
			t.Fatalf("%q is no JSON", data)
		case err != nil && valid && utf8.Valid(data) && depth(data) <= maxDepth:
			t.Fatalf("%q is JSON: %v", data, err)
		}
		if strict := tolerate(data); strict != nil && !json.Valid(strict) {
			t.Fatalf("%q was read as %q, which is no JSON", data, strict)
		}
	})
}

// depth returns an upper bound of the nesting of arrays and objects.
func depth(data []byte) (most int) {
	now := 0
	for _, b := range data {
		switch b {
		case '[', '{':
			now++
			most = max(most, now)
		case ']', '}':
			now--
		}
	}
	return most
}

// checkError checks that an error is nil or a *ProtocolError with an offset inside the data.
func checkError(t *testing.T, data []byte, err error) {
	t.Helper()
	var wrong *ProtocolError
	switch {
	case err == nil:
	case !errors.As(err, &wrong):
		t.Fatalf("expected a *ProtocolError, got %T: %v", err, err)
	case wrong.Offset < 0 || wrong.Offset > int64(len(data)):
		t.Fatalf("expected an offset in %d bytes, got: %v", len(data), err)
	case wrong.Expected == "" || wrong.Got == "" || len(err.Error()) > 2000:
		t.Fatalf("expected a short error, got: %v", err)
	}
}

// everyCommand returns all commands of GP.
func everyCommand(tb testing.TB) (commands []javamethods.Command) {
	for _, d := range allOfTheDocument(tb) {
		commands = append(commands, d.command)
	}
	return commands
}

// FuzzReplies reads any bytes as a reply to any command. It writes the answers and reads them again: they must be
// equal.
func FuzzReplies(f *testing.F) {
	commands := everyCommand(f)
	for i, d := range allOfTheDocument(f) {
		f.Add(uint8(i), sample(f, d.sample+".reply"))
	}
	r := anything{rand.New(rand.NewPCG(9, 0))}
	for _, s := range r.all(f, Writer{Style: Typed, Location: time.UTC}) {
		for i := range commands {
			f.Add(uint8(i), s.data)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		command := commands[int(which)%len(commands)]
		replies, tolerated, err := decoded(command, data)
		if err != nil {
			if !tolerated && len(replies) > 0 {
				t.Fatal("invalid data have answers")
			}
			var wrong *ProtocolError
			require.ErrorAs(t, err, &wrong)
			return
		}
		if tolerated && json.Valid(data) && depth(data) <= maxDepth && utf8.Valid(data) {
			t.Fatalf("%q is JSON", data)
		}
		for _, again := range rewritten(t, command, replies) {
			got, tolerated, err := decoded(command, again)
			require.NoError(t, err, "%s", again)
			require.False(t, tolerated)
			require.Equal(t, replies, got, "%s", again)
		}
	})
}

// rewritten returns the answers, written in the styles that are JSON.
func rewritten(t *testing.T, command javamethods.Command, replies []javamethods.Reply) (all [][]byte) {
	if len(replies) == 0 {
		return nil
	}
	for _, w := range []Writer{{Style: Documented}, {Style: Typed}} {
		data, err := w.appendAll(command, replies)
		require.NoError(t, err)
		if data != nil {
			all = append(all, data)
		}
	}
	return all
}

// appendAll adds the data of a reply with all these answers; nil means that there is no such reply.
func (w Writer) appendAll(command javamethods.Command, replies []javamethods.Reply) ([]byte, error) {
	affected, isAffected := replies[0].(*javamethods.Affected)
	switch command.(type) {
	case javamethods.MonitorCommand:
		var cycle *javamethods.Statistics
		if !isAffected || len(replies) > 1 {
			cycle = replies[len(replies)-1].(*javamethods.Statistics)
		}
		if isAffected && affected.Rows != 0 {
			return nil, nil
		}
		return w.AppendMonitor(nil, affected, cycle), nil
	case javamethods.RecordsCommand, javamethods.ClassesCommand, javamethods.MethodsCommand:
		if isAffected {
			return nil, nil
		}
		return w.appendList(replies), nil
	case javamethods.ResetCommand:
		if affected.Classes != 0 || affected.Methods != 0 {
			return nil, nil
		}
		return w.AppendReset(nil, affected.Rows), nil
	}
	if isAffected {
		return nil, nil
	}
	if d, is := replies[0].(*javamethods.RecordDetail); is && (!d.Returned && d.Return != "" || !d.Threw && d.Exception != "") {
		return nil, nil
	}
	return w.Append(nil, replies[0])
}

func (w Writer) appendList(replies []javamethods.Reply) []byte {
	var records []javamethods.Record
	var classes []javamethods.Class
	var methods []javamethods.Method
	for _, r := range replies {
		switch r := r.(type) {
		case *javamethods.Record:
			records = append(records, *r)
		case *javamethods.Class:
			if len(r.Kinds) > 0 { // their order and repetitions are not written
				return nil
			}
			classes = append(classes, *r)
		case *javamethods.Method:
			methods = append(methods, *r)
		}
	}
	switch {
	case records != nil:
		return w.AppendRecords(nil, records)
	case classes != nil:
		return w.AppendClasses(nil, classes)
	default:
		return w.AppendMethods(nil, methods)
	}
}

// FuzzRequests reads any bytes as a client's requests, as a server does.
func FuzzRequests(f *testing.F) {
	for _, d := range allOfTheDocument(f) {
		f.Add(AppendRequest(nil, Request{Version: 1, SendID: 1, Type: d.requestType, Data: sample(f, d.sample+".request")}))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		requests := NewRequests(bytes.NewReader(data), 1<<20)
		for {
			r, err := requests.Next()
			if err != nil {
				return
			}
			command, err := ParseCommand(r, UsualCodes())
			switch {
			case errors.Is(err, javamethods.ErrUnsupported):
				continue
			case err != nil:
				checkError(t, r.Data, err)
				continue
			}
			requestType, again, err := AppendCommand(nil, command, UsualCodes())
			require.NoError(t, err)
			require.Equal(t, r.Type, requestType)
			got, err := ParseCommand(Request{Type: requestType, Data: again}, UsualCodes())
			require.NoError(t, err)
			require.Equal(t, command, got)
		}
	})
}

// hostile is a server that waits for all requests, sends prepared bytes, and closes the connection.
type hostile struct {
	net.Conn
	*inPieces
	asked sync.WaitGroup
}

func (h *hostile) Write(b []byte) (int, error) {
	h.asked.Done()
	return len(b), nil
}

func (h *hostile) Read(to []byte) (int, error) {
	h.asked.Wait()
	return h.inPieces.Read(to)
}

func (h *hostile) Close() error                     { return nil }
func (h *hostile) SetWriteDeadline(time.Time) error { return nil }
func (h *hostile) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// FuzzClient sends any bytes, in any pieces, to a client with one open request for each command.
func FuzzClient(f *testing.F) {
	var all []byte
	for i, d := range allOfTheDocument(f) {
		all = AppendAnswer(all, Answer{SendID: int32(1 + i), RespID: int32(i), Code: Continued, Data: sample(f, d.sample+".reply")})
		f.Add(uint64(i), all)
		all = AppendAnswer(all, Answer{SendID: int32(1 + i), RespID: int32(i), Code: ReturnCode(i), Data: sample(f, d.sample+".reply")})
		f.Add(uint64(i), all)
	}
	f.Add(uint64(0), []byte("\rga?>\x04"))
	commands := everyCommand(f)
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		h := &hostile{inPieces: &inPieces{anything: anything{rand.New(rand.NewPCG(seed, 0))}, left: data}}
		h.asked.Add(len(commands))
		c := NewClient(h, Config{Codes: UsualCodes(), MaxFrame: 1 << 20, MaxWaiting: 1 << 10, MaxTolerated: 1 << 12})
		var running sync.WaitGroup
		for _, command := range commands {
			running.Go(func() { _ = c.Run(t.Context(), command, func(javamethods.Reply) {}) })
		}
		err := c.Serve(t.Context())
		require.Error(t, err)
		require.Less(t, len(err.Error()), 1000)
		running.Wait()
		require.Empty(t, c.running)
		stats := c.Stats()
		require.LessOrEqual(t, stats.Bytes, uint64(len(data)))
		require.LessOrEqual(t, stats.Dropped+stats.Tolerated+stats.Unasked+stats.Late, stats.Frames)
		require.LessOrEqual(t, stats.Gaps, stats.Frames)
	})
}
