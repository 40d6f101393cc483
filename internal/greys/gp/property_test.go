// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// anything makes random values of a server.
type anything struct{ *rand.Rand }

var words = []string{
	"com.example.Shop", "<init>", "lambda$0", "a\"b\"c", `{"k":'v'}`, "back\\slash", "tab\tline\nfeed", "拒绝", "😀", "it's", "\x7f", "null", "true", "7", "# no comment", "{", "a: b", " ",
}

func (r anything) word() string { return words[r.IntN(len(words))] }

func (r anything) words() (some []string) {
	for range r.IntN(3) {
		some = append(some, r.word())
	}
	return some
}

func (r anything) number() int64 { return r.Int64N(1 << r.IntN(53)) }

func (r anything) millis() time.Duration {
	return time.Duration(r.Int64N(1<<r.IntN(40))) * time.Microsecond
}

func (r anything) second() time.Time { return time.Unix(r.Int64N(9_000_000_000), 0) }

func (r anything) record(place *time.Location) javamethods.Record {
	// A local time can exist twice when clocks are set back. The text does not show which one it is.
	at, err := time.ParseInLocation(localLayout, r.second().In(place).Format(localLayout), place)
	if err != nil {
		panic(err)
	}
	return javamethods.Record{
		Index: r.number(), Time: at, Cost: r.millis(), Returned: r.IntN(2) == 0, Threw: r.IntN(2) == 0,
		Object: r.word(), Class: r.word(), Method: r.word(),
	}
}

func (r anything) statistics() *javamethods.Statistics {
	s := &javamethods.Statistics{Methods: []javamethods.MethodStatistics{}}
	for range r.IntN(4) {
		m := javamethods.MethodStatistics{
			Time: time.UnixMilli(r.Int64N(maxMillis)).UTC(), Class: r.word(), Method: r.word(), Calls: r.number(),
		}
		m.Succeeded = r.Int64N(m.Calls + 1)
		m.Failed = r.Int64N(m.Calls - m.Succeeded + 1)
		if m.Calls > 0 && r.IntN(2) == 0 {
			m.Mean, m.HasMean = r.millis(), true
		}
		s.Methods = append(s.Methods, m)
	}
	return s
}

func (r anything) sessions() *javamethods.Sessions {
	s := &javamethods.Sessions{ProcessID: 1 + r.number(), Sessions: []javamethods.Session{}}
	for range r.IntN(3) {
		s.Sessions = append(s.Sessions, javamethods.Session{ID: -r.number(), Duration: r.millis(), Charset: r.word(), From: r.word(), To: r.word()})
	}
	return s
}

func (r anything) stack() *javamethods.CallStack {
	s := &javamethods.CallStack{
		Thread: javamethods.Thread{Name: r.word(), ID: r.number(), Daemon: r.IntN(2) == 0, Priority: int32(r.IntN(10)) - 1},
		Frames: []javamethods.Frame{},
	}
	for range r.IntN(4) {
		s.Frames = append(s.Frames, javamethods.Frame{Class: r.word(), Method: r.word(), File: []string{"", r.word()}[r.IntN(2)], Line: int32(r.IntN(100)) - 2})
	}
	return s
}

func (r anything) class() javamethods.Class {
	c := javamethods.Class{
		Name: r.word(), CodeSource: r.word(), Modifier: r.word(), Annotations: r.words(), Interfaces: r.words(), Super: r.word(), Loaders: r.words(),
	}
	for _, kind := range kinds {
		if r.IntN(3) == 0 {
			c.Kinds = append(c.Kinds, kind)
		}
	}
	for range r.IntN(3) {
		c.Fields = append(c.Fields, javamethods.Field{Modifier: r.word(), Type: r.word(), Name: r.word(), Value: r.word()})
	}
	return c
}

func (r anything) method() javamethods.Method {
	return javamethods.Method{
		Class: r.word(), Name: r.word(), Modifier: r.word(), Annotations: r.words(), Parameters: r.words(), Exceptions: r.words(), Return: r.word(),
	}
}

// encodedReply is the data of a reply and their meaning.
type encodedReply struct {
	command javamethods.Command
	data    []byte
	replies []javamethods.Reply
}

// all returns random replies to every command.
func (r anything) all(t testing.TB, w Writer) (all []encodedReply) {
	one := func(command javamethods.Command, reply javamethods.Reply) {
		data, err := w.Append(nil, reply)
		require.NoError(t, err)
		all = append(all, encodedReply{command, data, []javamethods.Reply{reply}})
	}
	one(javamethods.VersionCommand{}, &javamethods.Version{Text: r.word()})
	one(javamethods.SessionsCommand{}, r.sessions())
	one(javamethods.StackCommand{}, r.stack())
	detail := &javamethods.RecordDetail{Record: r.record(w.Location), Parameters: r.words()}
	if detail.Returned {
		detail.Return = r.word()
	}
	if detail.Threw {
		detail.Exception = r.word()
	}
	one(javamethods.RecordDetailCommand{}, detail)
	affected, statistics := &javamethods.Affected{Classes: r.number(), Methods: r.number()}, r.statistics()
	reset := &javamethods.Affected{Rows: r.number()}
	all = append(all,
		encodedReply{javamethods.MonitorCommand{}, w.AppendMonitor(nil, affected, statistics), []javamethods.Reply{affected, statistics}},
		encodedReply{javamethods.MonitorCommand{}, w.AppendMonitor(nil, affected, nil), []javamethods.Reply{affected}},
		encodedReply{javamethods.MonitorCommand{}, w.AppendMonitor(nil, nil, statistics), []javamethods.Reply{statistics}},
		encodedReply{javamethods.ResetCommand{}, w.AppendReset(nil, reset.Rows), []javamethods.Reply{reset}},
	)
	records, classes, methods := []javamethods.Record{}, []javamethods.Class{}, []javamethods.Method{}
	lists := []encodedReply{{command: javamethods.RecordsCommand{}}, {command: javamethods.ClassesCommand{}}, {command: javamethods.MethodsCommand{}}}
	for range r.IntN(4) {
		records, classes, methods = append(records, r.record(w.Location)), append(classes, r.class()), append(methods, r.method())
		for i, reply := range []javamethods.Reply{ptr(records[len(records)-1]), ptr(classes[len(classes)-1]), ptr(methods[len(methods)-1])} {
			lists[i].replies = append(lists[i].replies, reply)
		}
	}
	lists[0].data, lists[1].data, lists[2].data = w.AppendRecords(nil, records), w.AppendClasses(nil, classes), w.AppendMethods(nil, methods)
	return append(all, lists...)
}

func TestWrittenRepliesAreReadBack(t *testing.T) {
	place, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	r := anything{rand.New(rand.NewPCG(7, 0))}
	decoders := map[string]*decoder{}
	for range 100 {
		w := Writer{Style: Style(r.IntN(3)), Location: place}
		for _, s := range r.all(t, w) {
			d := decoders[fmt.Sprintf("%T", s.command)]
			if d == nil { // a reused decoder must not keep values of earlier replies
				d = newDecoder(place, DefaultMaxTolerated, new(sync.Mutex))
				decoders[fmt.Sprintf("%T", s.command)] = d
			}
			d.affectedDelivered = false
			var got []javamethods.Reply
			_, err := d.decode(s.command, s.data, func(reply javamethods.Reply) { got = append(got, kept(reply)) })
			require.NoError(t, err, "%s", s.data)
			require.Equal(t, s.replies, got, "%s", s.data)
		}
	}
}

func TestFramesAreReadInPiecesOfAnyLength(t *testing.T) {
	r := anything{rand.New(rand.NewPCG(8, 0))}
	var sent []Request
	var answers []Answer
	var requests, replies []byte
	for range 200 {
		data := slices.Repeat([]byte("x"), r.IntN(1<<r.IntN(18)))
		q := Request{Version: uint16(r.Uint32()), SendID: int32(r.Uint32()), Type: RequestType(r.Uint32()), Data: data}
		a := Answer{SendID: int32(r.Uint32()), RespID: int32(r.Uint32()), Code: ReturnCode(r.Uint32()), Data: data}
		sent, answers = append(sent, q), append(answers, a)
		requests, replies = AppendRequest(requests, q), AppendAnswer(replies, a)
	}
	read := NewRequests(&inPieces{anything: r, left: requests}, 1<<20)
	for _, want := range sent {
		got, err := read.Next()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := read.Next()
	require.Equal(t, io.EOF, err)
	in := &input{from: &inPieces{anything: r, left: replies}}
	for _, want := range answers {
		got, err := in.nextAnswer(1 << 20)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.LessOrEqual(t, len(in.buf), 2<<17, "no frame is longer than 128 KiB")
	}
	_, err = in.nextAnswer(1 << 20)
	require.Equal(t, io.EOF, err)
}

// inPieces returns bytes in pieces of any length, and sometimes an empty piece.
type inPieces struct {
	anything
	left []byte
}

func (p *inPieces) Read(to []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(to[:min(len(to), p.IntN(1<<p.IntN(16)))], p.left)
	p.left = p.left[n:]
	return n, nil
}

func TestABufferGrowsWithReceivedBytesOnly(t *testing.T) {
	header := AppendAnswer(nil, Answer{})
	copy(header[12:], []byte{0x3f, 0xff, 0xff, 0xff})
	in := &input{from: io.MultiReader(bytes.NewReader(header), bytes.NewReader(make([]byte, 100_000)))}
	_, err := in.nextAnswer(MaxMaxFrame)
	require.Equal(t, io.ErrUnexpectedEOF, err)
	require.LessOrEqual(t, len(in.buf), 256<<10, "1 GiB was announced")

	long := AppendAnswer(nil, Answer{Data: make([]byte, 3*keptBuffer)})
	in = &input{from: bytes.NewReader(append(long, AppendAnswer(nil, Answer{})...))}
	for range 2 {
		_, err = in.nextAnswer(MaxMaxFrame)
		require.NoError(t, err)
	}
	_, err = in.nextAnswer(MaxMaxFrame)
	require.Equal(t, io.EOF, err)
	require.LessOrEqual(t, len(in.buf), keptBuffer, "the memory of a long frame is released")
}
