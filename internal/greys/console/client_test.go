// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// fakeServer is a server that a test plays on one connection. Its methods return false after the client has
// disconnected, without failing the test.
type fakeServer struct {
	net.Conn
	lines *bufio.Reader
	// got are the received lines.
	got []string
}

// line reads a line.
func (p *fakeServer) line() bool {
	line, err := p.lines.ReadString('\n')
	if err == nil {
		p.got = append(p.got, strings.TrimSuffix(line, "\n"))
	}
	return err == nil
}

func (p *fakeServer) send(text string) bool { _, err := p.Write([]byte(text)); return err == nil }

// answerLoud answers the command that turns silence off.
func (p *fakeServer) answerLoud() bool {
	s := javamethods.Sessions{ProcessID: 4711, Sessions: []javamethods.Session{{Charset: "UTF-8"}}}
	return p.line() && p.send(string(AppendSession(nil, &s, true))+end)
}

// byte reads one byte.
func (p *fakeServer) byte() byte { b, _ := p.lines.ReadByte(); return b }

// waitForClose waits until the client closes the connection.
func (p *fakeServer) waitForClose() {
	for {
		if _, err := p.lines.ReadByte(); err != nil {
			return
		}
	}
}

// end is the end of an answer in a loud session. matches is the notice of a loud session about matched classes.
const (
	end     = "\r" + DefaultPrompt + "\x04"
	matches = abortNotice + "\nAffect(class-cnt:1 , method-cnt:1) cost in 1 ms.\n"
)

// outcome is the result of a client's run.
type outcome struct {
	replies []javamethods.Reply
	err     error
	stats   Stats
	took    time.Duration
	lines   [][]string // by connection
}

// ask runs a command against servers that the test plays, with a simulated clock.
func ask(t *testing.T, config Config, command javamethods.Command, cancelAfter time.Duration, servers ...func(*fakeServer)) (o outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		o.lines = make([][]string, len(servers))
		dialed := 0
		c := &Client{Config: config, Dial: func(ctx context.Context) (net.Conn, error) {
			if dialed == len(servers) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			ours, theirs := net.Pipe()
			i := dialed
			dialed++
			all.Go(func() {
				p := &fakeServer{Conn: theirs, lines: bufio.NewReader(theirs)}
				servers[i](p)
				theirs.Close()
				o.lines[i] = p.got
			})
			return ours, nil
		}}
		ctx := t.Context()
		if cancelAfter > 0 {
			var cancel func()
			ctx, cancel = context.WithTimeout(ctx, cancelAfter)
			defer cancel()
		}
		began := time.Now()
		o.err = c.Run(ctx, command, func(r javamethods.Reply) { o.replies = append(o.replies, clone(r)) })
		o.took, o.stats = time.Since(began), c.Stats()
		all.Wait()
		assert.Equal(t, len(servers), dialed, "connections")
	})
	return o
}

func traceAll(t *testing.T, limit javamethods.Limit) javamethods.Command {
	return javamethods.TraceCommand{Target: target(t, "demo.*", "*", false), Limit: limit}
}

var aTree = string(AppendTree(nil, &javamethods.Tree{Thread: javamethods.Thread{Name: "main", ID: 1}, Nodes: []javamethods.Node{{Class: "demo.Shop", Method: "checkout"}}}))

func TestACommandThatMatchesIsLoudAndEndsByItself(t *testing.T) {
	o := ask(t, Config{}, traceAll(t, 2), 0, func(p *fakeServer) {
		_ = p.answerLoud() && p.line() && p.send(matches+aTree+aTree+end)
		p.waitForClose()
	})
	require.NoError(t, o.err)
	require.Len(t, o.replies, 3)
	assert.Equal(t, &javamethods.Affected{Classes: 1, Methods: 1}, o.replies[0])
	assert.Equal(t, [][]string{{"session -s false", "trace -n 2 demo.* *"}}, o.lines)
	assert.Zero(t, o.stats)
}

func TestOtherCommandsAreTheOnlyLine(t *testing.T) {
	o := ask(t, Config{}, javamethods.VersionCommand{}, 0, func(p *fakeServer) {
		_ = p.line() && p.send(string(AppendVersion(nil, &javamethods.Version{Text: "1.7.6.6"}))+"\x04")
		p.waitForClose()
	})
	require.NoError(t, o.err)
	assert.Equal(t, []javamethods.Reply{&javamethods.Version{Text: "1.7.6.6"}}, o.replies)
	assert.Equal(t, [][]string{{"version"}}, o.lines)
	assert.Zero(t, o.took)
}

func TestTheSecondCommandWaitsUntilTheFirstHasSettled(t *testing.T) {
	o := ask(t, Config{SettleTime: time.Second}, traceAll(t, 1), 0, func(p *fakeServer) {
		_ = p.answerLoud() && p.line() && p.send(matches+aTree+end)
	})
	require.NoError(t, o.err)
	assert.Equal(t, time.Second, o.took)
}

func TestAServerWithoutSilentModeReceivesTheCommand(t *testing.T) {
	o := ask(t, Config{}, traceAll(t, 1), 0, func(p *fakeServer) {
		_ = p.line() && p.send("Command \"session\" preprocessor failed : s is not a recognized option.\n\x04")
		_ = p.line() && p.send(aTree+"\x04")
		p.waitForClose()
	})
	require.NoError(t, o.err)
	assert.Len(t, o.replies, 1)
}

func TestAnAnswerIsDeliveredAsSoonAsItIsComplete(t *testing.T) {
	full := &javamethods.Record{Index: 1, Time: busySince, Class: "S", Method: strings.Repeat("m", 30), IsSimple: true}
	texts := map[string]struct {
		command javamethods.Command
		text    string
		within  time.Duration
	}{
		"a tree":    {traceAll(t, 0), aTree, 0},
		"a stack":   {javamethods.StackCommand{Target: target(t, "*", "*", false)}, string(AppendCallStack(nil, &javamethods.CallStack{})), 0},
		"a monitor": {javamethods.MonitorCommand{Target: target(t, "*", "*", false), Cycle: time.Hour}, string(AppendStatistics(nil, &javamethods.Statistics{})), 0},
		"a record":  {javamethods.RecordCommand{Target: target(t, "*", "*", false)}, string(AppendRecord(nil, &javamethods.Record{Time: busySince}, true, false)), 0},
		// The row may continue in the next line.
		"a record that fills its cell": {javamethods.RecordCommand{Target: target(t, "*", "*", false)}, string(AppendRecord(nil, full, true, false)), time.Second},
	}
	for name, tt := range texts {
		t.Run(name, func(t *testing.T) {
			o := ask(t, Config{QuietTime: time.Second}, tt.command, 2*time.Minute, func(p *fakeServer) {
				_ = p.answerLoud() && p.line() && p.send(matches+tt.text)
				time.Sleep(tt.within + time.Millisecond) // in the simulated clock
				assert.Equal(t, byte(EndOfReply), p.byte())
				p.send(end)
			})
			require.ErrorIs(t, o.err, context.DeadlineExceeded)
			assert.Len(t, o.replies, 2)
		})
	}
}

func TestACancelledCommandIsAborted(t *testing.T) {
	for name, answer := range map[string]string{"with a prompt": end, "in the middle of a tree": aTree[:40] + end} {
		t.Run(name, func(t *testing.T) {
			o := ask(t, Config{}, traceAll(t, 0), time.Minute, func(p *fakeServer) {
				_ = p.answerLoud() && p.line() && p.send(matches+aTree)
				assert.Equal(t, byte(EndOfReply), p.byte())
				time.Sleep(200 * time.Millisecond)
				p.send(answer)
				p.waitForClose()
			})
			assert.Equal(t, context.DeadlineExceeded, o.err)
			assert.Len(t, o.replies, 2)
			assert.Zero(t, o.stats)
			assert.Equal(t, time.Minute+200*time.Millisecond, o.took)
		})
	}
}

func TestAnswersOfAnAbortedCommandAreDelivered(t *testing.T) {
	// One of the replies is the notice of the matched classes.
	for name, then := range map[string]struct {
		answers string
		replies int
	}{
		"whole answers":                         {aTree + aTree, 4},
		"the rest of an answer":                 {aTree[40:], 2},
		"an answer after unreadable bytes":      {"\x00\n" + aTree, 2},
		"an answer and the beginning of a next": {aTree + aTree[:40], 3},
	} {
		t.Run(name, func(t *testing.T) {
			before := aTree
			if name == "the rest of an answer" {
				before = aTree[:40]
			}
			o := ask(t, Config{}, traceAll(t, 0), time.Second, func(p *fakeServer) {
				_ = p.answerLoud() && p.line() && p.send(matches+before)
				assert.Equal(t, byte(EndOfReply), p.byte())
				p.send(then.answers + end)
				p.waitForClose()
			})
			assert.Equal(t, context.DeadlineExceeded, o.err)
			assert.Len(t, o.replies, then.replies)
			assert.Zero(t, o.stats)
		})
	}
}

func TestACommandOfASilentSessionIsAborted(t *testing.T) {
	o := ask(t, Config{QuietTime: time.Second}, traceAll(t, 0), time.Minute, func(p *fakeServer) {
		_ = p.line() && p.send("Command \"session\" not found.\n\x04")
		_ = p.line() && p.send(aTree)
		assert.Equal(t, byte(EndOfReply), p.byte())
		p.send("\x04")
		p.waitForClose()
	})
	assert.Equal(t, context.DeadlineExceeded, o.err)
	assert.Zero(t, o.stats)
}

func TestAnUnansweredAbortEndsAfterItsTimeout(t *testing.T) {
	for name, server := range map[string]func(*fakeServer){
		"the server sends nothing": func(p *fakeServer) { p.waitForClose() },
		"the server floods the client": func(p *fakeServer) {
			for p.send(strings.Repeat(aTree, 100)) {
				time.Sleep(10 * time.Millisecond)
			}
		},
		"the server sends one byte a second": func(p *fakeServer) {
			for p.send("x") {
				time.Sleep(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := ask(t, Config{AbortTimeout: 7 * time.Second}, traceAll(t, 0), time.Minute, func(p *fakeServer) {
				_ = p.answerLoud() && p.line() && p.send(matches)
				p.byte()
				server(p)
			})
			assert.Equal(t, context.DeadlineExceeded, o.err)
			assert.Equal(t, Stats{Unanswered: 1}, o.stats)
			assert.Equal(t, time.Minute+7*time.Second, o.took)
		})
	}
}

func TestTheContextEndsAFlood(t *testing.T) {
	o := ask(t, Config{}, traceAll(t, 0), time.Minute, func(p *fakeServer) {
		_ = p.answerLoud() && p.line() && p.send(matches)
		go p.waitForClose()
		for p.send(aTree) {
			time.Sleep(10 * time.Millisecond)
		}
	})
	assert.Equal(t, context.DeadlineExceeded, o.err)
	assert.Greater(t, len(o.replies), 1000)
}

func TestTheContextEndsBeforeACommandWasSent(t *testing.T) {
	o := ask(t, Config{}, traceAll(t, 0), time.Second, func(p *fakeServer) {
		p.line()
		p.waitForClose()
	})
	require.ErrorIs(t, o.err, context.DeadlineExceeded)
	assert.False(t, wasSent(t, o))
	assert.Equal(t, [][]string{{"session -s false"}}, o.lines)
	assert.Equal(t, time.Second, o.took)
	assert.Zero(t, o.stats)

	o = ask(t, Config{}, traceAll(t, 0), time.Second)
	require.ErrorIs(t, o.err, context.DeadlineExceeded)
	assert.False(t, wasSent(t, o))
}

// wasSent returns the error's Sent field.
func wasSent(t *testing.T, o outcome) bool {
	t.Helper()
	failed := (*Error)(nil)
	require.ErrorAs(t, o.err, &failed)
	return failed.Sent
}

// The caller needs this: a command that was not sent has not instrumented any class.
func TestAnErrorReportsWhetherTheCommandWasSent(t *testing.T) {
	closed := func(p *fakeServer) { _ = p.answerLoud() && p.line() && p.send(matches+aTree) }
	refused := func(p *fakeServer) { _ = p.answerLoud() && p.line() && p.send("Command execution failed.\n"+end) }
	lost := func(p *fakeServer) { _ = p.answerLoud() && p.line() && p.send(end) }
	unasked := func(p *fakeServer) { p.line() }
	for _, tt := range []struct {
		name    string
		servers []func(*fakeServer)
		want    bool
	}{
		{"the server does not accept connections", nil, false},
		{"the connection closes before the command", []func(*fakeServer){unasked}, false},
		{"the connection closes after the command", []func(*fakeServer){closed}, true},
		{"the server refuses the command", []func(*fakeServer){refused}, true},
		{"the server loses the command and then does not accept connections", []func(*fakeServer){lost}, true},
		{"the server loses the command and closes the next connection before it", []func(*fakeServer){lost, unasked}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, wasSent(t, ask(t, Config{}, traceAll(t, 0), 0, tt.servers...)))
		})
	}
}

func TestALostCommandIsSentAgain(t *testing.T) {
	lose := func(p *fakeServer) {
		_ = p.answerLoud() && p.line() && p.send(end)
		p.waitForClose()
	}
	o := ask(t, Config{SettleTime: time.Second}, traceAll(t, 1), 0, lose, lose, func(p *fakeServer) {
		_ = p.answerLoud() && p.line() && p.send(matches+aTree+end)
		p.waitForClose()
	})
	require.NoError(t, o.err)
	assert.Len(t, o.replies, 2)
	assert.Equal(t, Stats{Lost: 2}, o.stats)
	assert.Equal(t, 7*time.Second, o.took, "each retry waits longer")

	o = ask(t, Config{}, javamethods.MonitorCommand{Target: target(t, "*", "*", false), Cycle: time.Second}, 0, lose, lose, lose)
	require.ErrorIs(t, o.err, ErrLost)
	require.EqualError(t, o.err, `Greys console pipe, command "monitor -c 1 * *": the server lost the command`)
	assert.Equal(t, Stats{Lost: 3}, o.stats)
}

func TestALostCommandIsNotSentAgainAfterAnAnswer(t *testing.T) {
	o := ask(t, Config{}, traceAll(t, 0), 0, func(p *fakeServer) {
		_ = p.answerLoud() && p.line() && p.send(matches+aTree+end)
		p.waitForClose()
	})
	require.ErrorIs(t, o.err, ErrLost)
	assert.Len(t, o.replies, 2)
}

func TestRefusalsHaveTheServersWords(t *testing.T) {
	for text, want := range map[string]error{
		"Command \"trace\" not found.\n": javamethods.ErrUnsupported,
		"Command \"trace\" preprocessor failed : class-pattern argument was missing..\n": javamethods.ErrRefused,
		"Command \"trace\" failed to initiate.\n":                                        javamethods.ErrRefused,
		"Command execution failed. cause : Unclosed group near index 1\n(\n":             javamethods.ErrRefused,
		"Command execution failed.\n":                                                    javamethods.ErrRefused,
		"Session timed out.\n":                                                           javamethods.ErrSessionTimedOut,
	} {
		o := ask(t, Config{}, traceAll(t, 1), 0, func(p *fakeServer) {
			_ = p.answerLoud() && p.line() && p.send(text+end)
			p.waitForClose()
		})
		require.ErrorIs(t, o.err, want, text)
		var e *Error
		require.ErrorAs(t, o.err, &e)
		assert.Equal(t, "trace -n 1 demo.* *", e.Command)
		assert.ErrorContains(t, o.err, strings.TrimSpace(strings.ReplaceAll(text, "\n", " ")))
	}
}

func TestASessionThatTimesOutIsClosed(t *testing.T) {
	o := ask(t, Config{}, traceAll(t, 0), 0, func(p *fakeServer) {
		_ = p.answerLoud() && p.line() && p.send(matches+SessionTimedOut+"\n")
	})
	require.ErrorIs(t, o.err, javamethods.ErrSessionTimedOut)
}

func TestServersThatCloseOrStallFailTheCommand(t *testing.T) {
	monitor := javamethods.MonitorCommand{Target: target(t, "*", "*", false), Cycle: 10 * time.Second}
	for name, tt := range map[string]struct {
		command javamethods.Command
		server  func(*fakeServer)
		err     string
		took    time.Duration
	}{
		"the server sends nothing": {traceAll(t, 0), func(p *fakeServer) { p.waitForClose() },
			`first command "session -s false": byte 0: expected the next answer, or the end, got: the server accepts connections and sends nothing: time ran out`, 30 * time.Second},
		"another service": {javamethods.VersionCommand{}, func(p *fakeServer) { _ = p.line() && p.send("-ERR unknown command 'version'\n") },
			`expected the rest of an answer, got: the connection was closed (the server sent "-ERR unknown command 'version'": another service may listen at the port)`, 0},
		"a list without any answer": {javamethods.MethodsCommand{Target: target(t, "*", "*", false)}, func(p *fakeServer) { p.waitForClose() },
			`byte 0: expected an answer, got: time ran out`, 5 * time.Minute},
		"the connection closes immediately": {traceAll(t, 0), func(p *fakeServer) {},
			`first command "session -s false": byte 0: expected the server to accept a command, got: the connection was closed`, 0},
		"the connection closes after a tree": {traceAll(t, 0), func(p *fakeServer) { _ = p.answerLoud() && p.line() && p.send(matches+aTree) },
			`byte 586: expected an answer, got: the connection was closed`, 0},
		"the connection closes inside a tree": {traceAll(t, 0), func(p *fakeServer) { _ = p.answerLoud() && p.line() && p.send(matches+aTree[:60]) },
			`byte 529: expected the rest of an answer, got: the connection was closed`, 0},
		"no counts of matched classes": {traceAll(t, 0), func(p *fakeServer) { _ = p.answerLoud() && p.line(); p.waitForClose() },
			`byte 397: expected the counts of matched classes and methods, got: time ran out`, 30 * time.Second},
		"half a table, then silence": {monitor, func(p *fakeServer) {
			_ = p.answerLoud() && p.line() && p.send(matches+string(busyTables()[:5000]))
			p.waitForClose()
		}, `byte 5469: expected the rest of an answer, got: time ran out`, 30 * time.Second},
		"half a line, one byte at a time": {monitor, func(p *fakeServer) {
			_ = p.answerLoud() && p.line() && p.send(matches)
			for p.send("+") {
				time.Sleep(700 * time.Millisecond)
			}
		}, `expected the rest of an answer, got: time ran out`, 30 * time.Second},
		"a monitor without tables": {monitor, func(p *fakeServer) { _ = p.answerLoud() && p.line() && p.send(matches); p.waitForClose() },
			`byte 469: expected the table of a cycle, got: time ran out`, 40 * time.Second},
		"a list that never ends": {javamethods.ClassesCommand{Class: pattern(t, "*")}, func(p *fakeServer) {
			p.line()
			for p.send(string(AppendClass(nil, &javamethods.Class{Name: "demo.Shop"}))) {
				time.Sleep(time.Second)
			}
		}, `expected the next answer, or the end, got: time ran out`, 5 * time.Minute},
		"a refusal that never ends": {traceAll(t, 0), func(p *fakeServer) {
			_ = p.answerLoud() && p.line() && p.send(matches+"Command execution failed.\n")
			for p.send("more\n") {
				time.Sleep(time.Second)
			}
		}, `expected the end of the refusal, got: time ran out`, 30 * time.Second},
		"the server does not read": {javamethods.VersionCommand{}, func(p *fakeServer) { time.Sleep(time.Hour) },
			`byte 0: expected the server to accept a command, got: time ran out`, 10 * time.Second},
		"a byte after the end": {traceAll(t, 0), func(p *fakeServer) { _ = p.answerLoud() && p.send("more"); p.waitForClose() },
			`first command "session -s false": line at byte 397: expected nothing behind the end of an answer, got "more"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := ask(t, Config{SettleTime: time.Nanosecond}, tt.command, 0, tt.server)
			require.ErrorContains(t, o.err, tt.err)
			assert.InDelta(t, tt.took.Seconds(), o.took.Seconds(), 1.5)
		})
	}
}

func TestAnswersAndLinesHaveAMaximumLength(t *testing.T) {
	long := strings.Repeat("x", 1000) + "\n"
	for name, tt := range map[string]struct {
		command javamethods.Command
		first   string
		more    string
		err     string
	}{
		"a picture without a version": {javamethods.VersionCommand{}, "", long, "expected an answer of at most 100000 bytes"},
		"a line without end":          {javamethods.VersionCommand{}, "", long[:1000], "expected a line of at most 50000 bytes"},
		"a table without end":         {javamethods.MethodsCommand{Target: target(t, "*", "*", false)}, "+---+---+\n", "| a | b |\n", "expected an answer of at most 100000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			o := ask(t, Config{MaxReplyBytes: 100_000, MaxLineBytes: 50_000}, tt.command, 0, func(p *fakeServer) {
				p.line()
				for p.send(tt.first); p.send(tt.more); {
				}
			})
			require.ErrorContains(t, o.err, tt.err)
			assert.Equal(t, Stats{Malformed: 1}, o.stats)
		})
	}
}

func TestTheMaximumLengthCountsEachAnswerAlone(t *testing.T) {
	_, err := answers(traceAll(t, 0), end[:len(end)-1], Config{MaxReplyBytes: len(aTree)}, []byte(strings.Repeat(matches+aTree, 100)+end))
	require.NoError(t, err)
	_, err = answers(javamethods.MethodsCommand{}, "", Config{MaxReplyBytes: 3000}, append(busyMethods(), EndOfReply))
	require.NoError(t, err)
	_, err = answers(traceAll(t, 0), end[:len(end)-1], Config{MaxReplyBytes: 100}, []byte(aTree+end))
	require.ErrorContains(t, err, "expected an answer of at most 100 bytes")
}

func TestRepetitionsAreCounted(t *testing.T) {
	text := string(captures(t)["recursion_i.raw"])
	o := ask(t, Config{}, traceAll(t, 9), 0, func(p *fakeServer) {
		_ = p.answerLoud() && p.line() && p.send(text)
		p.waitForClose()
	})
	require.NoError(t, o.err)
	assert.Len(t, o.replies, 4)
	assert.Equal(t, Stats{Repeated: 6}, o.stats)
}

func TestAByte4InsideATextIsNotTheEnd(t *testing.T) {
	detail := &javamethods.RecordDetail{Record: javamethods.Record{Index: 1, Time: busySince, Class: "C", Method: "m"}, Return: "one\x04", Parameters: []string{"\x04", "\x04two\n\x04"}}
	text := string(AppendRecordDetail(nil, detail))
	o := ask(t, Config{QuietTime: time.Second}, javamethods.RecordDetailCommand{Index: 1}, 0, func(p *fakeServer) {
		p.line()
		for part := range strings.SplitAfterSeq(text, "\x04") {
			p.send(part)
			time.Sleep(900 * time.Millisecond) // less than the quiet time
		}
		p.send("\x04")
		p.waitForClose()
	})
	require.NoError(t, o.err)
	assert.Equal(t, []javamethods.Reply{detail}, o.replies)

	name := "na\x04\n\x04\nme"
	stack := &javamethods.CallStack{Thread: javamethods.Thread{Name: name}}
	for _, prompt := range []string{"", end[:len(end)-1]} {
		replies, err := answers(javamethods.StackCommand{}, prompt, Config{}, cutAt(string(AppendCallStack(nil, stack))+prompt+"\x04", "\x04")...)
		require.NoError(t, err)
		assert.Equal(t, []javamethods.Reply{stack}, replies)
	}
}

// cutAt splits text after each separator.
func cutAt(text, separator string) (pieces [][]byte) {
	for part := range strings.SplitAfterSeq(text, separator) {
		pieces = append(pieces, []byte(part))
	}
	return pieces
}

func TestConnectingEndsAfterItsTimeout(t *testing.T) {
	o := ask(t, Config{}, javamethods.VersionCommand{}, 0)
	require.ErrorIs(t, o.err, ErrTimeout)
	require.EqualError(t, o.err, `Greys console, command "version": connect: time ran out`)
	assert.Equal(t, 10*time.Second, o.took)
}

func TestACommandWithoutALineIsAnErrorBeforeConnecting(t *testing.T) {
	err := (&Client{Dial: func(context.Context) (net.Conn, error) { return nil, errors.New("dialed") }}).Run(t.Context(), javamethods.TraceCommand{}, nil)
	require.EqualError(t, err, `Greys console, command "trace": a pattern is missing`)
}

func TestACommandThatEndsTooEarlyIsLost(t *testing.T) {
	limited, unlimited := traceAll(t, 2), traceAll(t, 0)
	for _, tt := range []struct {
		name    string
		command javamethods.Command
		d       decoder
		loud    bool
		lost    bool
	}{
		{"a limit, after an answer", limited, decoder{output: output{replies: 2}, affected: true}, true, false},
		{"a limit, after repetitions only", limited, decoder{output: output{replies: 1, repeated: 2}, affected: true}, true, false},
		{"a limit, without an answer", limited, decoder{output: output{replies: 1}, affected: true}, true, true},
		{"a limit, without the counts of matches", limited, decoder{output: output{replies: 2}}, true, true},
		{"a limit in a silent session", limited, decoder{output: output{replies: 2}}, false, false},
		{"a limit in a silent session, without an answer", limited, decoder{}, false, true},
		{"no limit", unlimited, decoder{output: output{replies: 9}, affected: true}, true, true},
		{"stacks without a limit", javamethods.StackCommand{}, decoder{output: output{replies: 9}, affected: true}, true, true},
		{"records without a limit", javamethods.RecordCommand{}, decoder{output: output{replies: 9}, affected: true}, true, true},
		{"a monitor", javamethods.MonitorCommand{}, decoder{output: output{replies: 9}, affected: true}, true, true},
		{"a list of nothing", javamethods.ClassesCommand{}, decoder{}, false, false},
	} {
		assert.Equal(t, tt.lost, isLost(tt.command, &tt.d, tt.loud), tt.name)
	}
}
