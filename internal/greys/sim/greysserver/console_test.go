// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"bufio"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys/console"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// short is a short delay.
const short = 5 * time.Millisecond

// terminal is a client that sends lines to the console and reads its text.
type terminal struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func (p *played) terminal() *terminal {
	conn := p.dial()
	return &terminal{p.t, conn, bufio.NewReader(conn)}
}

// send sends bytes.
func (c *terminal) send(text string) {
	c.t.Helper()
	_, err := c.Write([]byte(text))
	require.NoError(c.t, err)
}

// until reads until a text has arrived, and returns all bytes.
func (c *terminal) until(what string) string {
	c.t.Helper()
	var all strings.Builder
	for !strings.HasSuffix(all.String(), what) {
		b, err := c.in.ReadByte()
		require.NoError(c.t, err, "after %q", &all)
		all.WriteByte(b)
	}
	return all.String()
}

const eot = "\x04"

func TestASessionOfTheConsole(t *testing.T) {
	p := play(t, Options{Protocol: Console, EndDelay: short, Program: ProgramOptions{Rate: 1000}, Speed: 100})
	c := p.terminal()
	c.send("\n")
	assert.Equal(t, eot, c.until(eot), "a session is silent at first")
	c.send("bogus\n")
	assert.Equal(t, "Command \"bogus\" not found.\n"+eot, c.until(eot))
	c.send("monitor\r\n")
	assert.Equal(t, "Command \"monitor\" preprocessor failed : class-pattern argument was missing..\n"+eot, c.until(eot))
	c.send("session -s false\n")
	assert.Contains(t, c.until("\rga?>"+eot), "SILENT | true ")
	c.send("monitor -c 1 *.Service1 *\n")
	begin := c.until("MAX-RT(ms) |\n")
	assert.Contains(t, begin, "Press Ctrl+D to abort.\nAffect(class-cnt:1 , method-cnt:10) cost in 20 ms.\n+-----------+-------+")
	c.send("version\n") // it is lost, because a command runs
	c.until("| com.example.shop.Service1 |")
	c.send(eot)
	assert.NotContains(t, c.until("\rga?>"+eot), "|v|e|r|")
	assert.Equal(t, int64(1), p.truth().LostLines)
	c.send("version\n")
	assert.Contains(t, c.until("\rga?>"+eot), "|v|e|r|s|i|o|n|:|1|.|7|.|6|.|6|")
	c.send(eot + "reset\n") // no command runs
	assert.Equal(t, "\rga?>"+eot, c.until(eot))
	assert.Equal(t, int64(1), p.truth().Resets)
}

func TestOneOfSeveralSimultaneousLinesRuns(t *testing.T) {
	p := play(t, Options{Protocol: Console, EndDelay: short})
	c := p.terminal()
	c.send("bogus1\nbogus2\n")
	first := c.until(eot)
	assert.Regexp(t, "bogus[12]", first)
	assert.Equal(t, int64(1), p.truth().LostLines)
}

func TestAnIdleSessionTimesOut(t *testing.T) {
	p := play(t, Options{Protocol: Console, SessionTimeout: 50 * time.Millisecond, EndDelay: short, Program: ProgramOptions{Rate: 1}, Speed: 10})
	c := p.terminal()
	c.send("monitor -c 1 * *\n")
	for range 5 { // a running command prevents the timeout
		c.until("MAX-RT(ms) |\n")
	}
	c.send(eot)
	c.until(eot)
	assert.Equal(t, "Session timed out.\n", c.until("\n"))
	_, err := c.in.Read(make([]byte, 1))
	require.Error(t, err)
}

// consoleClient returns a client of the console.
func (p *played) consoleClient() *console.Client {
	return &console.Client{
		Dial:   func(context.Context) (net.Conn, error) { return net.Dial("tcp", p.address) },
		Config: console.Config{QuietTime: 50 * time.Millisecond},
	}
}

func TestTheConsoleReportsEveryCall(t *testing.T) {
	p := play(t, Options{Program: ProgramOptions{Rate: 5000, Calls: 5000, Failures: 0.1, Seed: 3}, Speed: 50, EndDelay: short})
	ctx, end := context.WithCancel(t.Context())
	h := &monitored{counts: Counts{}}
	over := make(chan error, 1)
	go func() {
		over <- p.consoleClient().Run(ctx, javamethods.MonitorCommand{Target: target(t, "*", "*"), Cycle: time.Second}, h.reply)
	}()
	eventually(t, func() bool { return p.truth().Rests }, "the program has made all calls")
	rested := h.count()
	eventually(t, func() bool { return h.count() > rested+1 }, "a cycle that began after the calls")
	end()
	require.ErrorIs(t, <-over, context.Canceled)
	assert.Equal(t, calls(p.truth().Reported), h.all())
	assert.Greater(t, h.all().Sum().Calls, int64(2000))
	assert.Equal(t, javamethods.Affected{Classes: 10, Methods: 100}, h.affected)
}

func TestEveryCommandOfTheConsoleIsAnswered(t *testing.T) {
	p := play(t, Options{Program: ProgramOptions{Rate: 2000, RecordEvery: 10, Failures: 0.5}, ProcessID: 79321, EndDelay: short})
	c := p.consoleClient()
	ask := func(command javamethods.Command) (replies []javamethods.Reply) {
		require.NoError(t, c.Run(t.Context(), command, func(r javamethods.Reply) { replies = append(replies, r) }), "%T", command)
		return replies
	}
	all := target(t, "*", "*")
	assert.Equal(t, []javamethods.Reply{&javamethods.Version{Text: "1.7.6.6"}}, ask(javamethods.VersionCommand{}))
	sessions := ask(javamethods.SessionsCommand{})[0].(*javamethods.Sessions)
	assert.Equal(t, int64(79321), sessions.ProcessID)
	assert.Len(t, ask(javamethods.ClassesCommand{Class: pattern(t, ".*.Service[1-3]"), Regexp: true}), 3)
	assert.Len(t, ask(javamethods.MethodsCommand{Target: target(t, "*Service1", "*")}), 10)
	assert.Len(t, ask(javamethods.TraceCommand{Target: all, Limit: 20}), 21)
	assert.Len(t, ask(javamethods.StackCommand{Target: all, Limit: 5}), 6)
	assert.Len(t, ask(javamethods.RecordCommand{Target: all, Limit: 7}), 8)
	eventually(t, func() bool { return len(ask(javamethods.RecordsCommand{})) > 7 }, "calls are recorded")
	detail := ask(javamethods.RecordDetailCommand{Index: firstRecord})[0].(*javamethods.RecordDetail)
	assert.Equal(t, int64(firstRecord), detail.Index)
	require.ErrorIs(t, c.Run(t.Context(), javamethods.RecordDetailCommand{Index: 1}, nil), javamethods.ErrRefused)
	truth := p.truth()
	assert.Equal(t, []int64{20, 5, 7}, []int64{truth.Trees, truth.Stacks, truth.Records})
	assert.Equal(t, int64(10), truth.Enhanced)
	ask(javamethods.ResetCommand{})
	assert.Zero(t, p.truth().Enhanced)
}

func TestTreesMatchTheProgramsCalls(t *testing.T) {
	p := play(t, Options{Program: ProgramOptions{Rate: 2000, Failures: 0.3}, EndDelay: short})
	trees, throws, callees := 0, 0, 0
	err := p.consoleClient().Run(t.Context(), javamethods.TraceCommand{Target: target(t, "*", "*"), Limit: 100}, func(r javamethods.Reply) {
		tree, is := r.(*javamethods.Tree)
		if !is {
			return
		}
		trees++
		callees += len(tree.Nodes) - 1
		for _, n := range tree.Nodes {
			assert.LessOrEqual(t, n.End, tree.Nodes[0].End)
			if n.Throws != "" {
				assert.Equal(t, exception, n.Throws)
				throws++
			}
		}
	})
	require.NoError(t, err)
	assert.Equal(t, 100, trees)
	assert.NotZero(t, throws)
	assert.NotZero(t, callees)
}

func TestEachFaultOfTheConsoleHasItsEffect(t *testing.T) {
	header := "| TIMESTAMP | CLASS | METHOD |"
	for fault, check := range map[Fault]func(t *testing.T, c *terminal){
		Lost: func(t *testing.T, c *terminal) {
			assert.NotContains(t, c.until("|\n"), eot)
			c.until(eot)
		},
		Failure:   func(t *testing.T, c *terminal) { assert.Contains(t, c.until(eot), "Command execution failed.\n"+eot) },
		EndInData: func(t *testing.T, c *terminal) { assert.Contains(t, c.until(eot), header); c.until("+\n") },
		Half:      func(_ *testing.T, c *terminal) { c.until("+\n\n+--") },
		LongLine:  func(_ *testing.T, c *terminal) { c.until(strings.Repeat("x", 1<<20) + "\n") },
		Close:     func(t *testing.T, c *terminal) { assertEnds(t, c) },
		Cut:       func(t *testing.T, c *terminal) { assertEnds(t, c) },
		Restart:   func(t *testing.T, c *terminal) { assertEnds(t, c) },
	} {
		t.Run(string(fault), func(t *testing.T) {
			p := play(t, Options{Protocol: Console, Speed: 100, EndDelay: short, Faults: []Fault{fault}, FaultEvery: 2})
			c := p.terminal()
			c.send("monitor -c 1 nothing *\n")
			check(t, c)
		})
	}
}

// assertEnds checks that the connection ends.
func assertEnds(t *testing.T, c *terminal) {
	t.Helper()
	buffer := make([]byte, 1<<10)
	for {
		if _, err := c.in.Read(buffer); err != nil {
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			assert.NotContains(t, err.Error(), "timeout")
			return
		}
	}
}

func TestAConsoleWithTheFaultSilenceSendsNothing(t *testing.T) {
	p := play(t, Options{Protocol: Console, EndDelay: short, Faults: []Fault{Silence}, FaultEvery: 1})
	c := p.terminal()
	c.send("version\n")
	require.NoError(t, c.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	n, err := c.in.Read(make([]byte, 1))
	assert.Zero(t, n)
	require.ErrorContains(t, err, "timeout")
}

// The truth counts only replies that were written.
func TestAFailedWriteIsNotCounted(t *testing.T) {
	near, far := net.Pipe()
	require.NoError(t, near.Close())
	over, end := context.WithCancel(t.Context())
	c := &consoleConn{Server: &Server{options: Options{WriteTimeout: patience}}, conn: far, over: over, end: end}
	assert.Equal(t, ended, c.send([]byte("a tree")))
	assert.Error(t, over.Err(), "the connection is over")
}

func TestALocaleChangesTheDigitsThatTheReleasedServerLocalizes(t *testing.T) {
	const text = "Affect(class-cnt:1 , method-cnt:25) cost in 35 ms.\n" +
		"| 2026-11-23 01:31:24 | com.example.Shop | checkout | 24    | 21      | 3    | 12.50%    | 45.04      | 35         | 57         |\n" +
		"Time fragment[1000] does not exist.\n"
	for locale, want := range map[Locale]string{
		"": text,
		Arabic: "Affect(class-cnt:١ , method-cnt:٢٥) cost in 35 ms.\n" +
			"| ٢٠٢٦-١١-٢٣ ٠١:٣١:٢٤ | com.example.Shop | checkout | 24    | 21      | 3    | ١٢٫٥٠%    | ٤٥٫٠٤      | 35         | 57         |\n" +
			"Time fragment[١٠٠٠] does not exist.\n",
		Thai: strings.Replace(text, "2026", "2569", 1),
	} {
		assert.Equal(t, want, string(locale.text([]byte(text))), locale)
	}
	_, err := New(Options{Locale: "tlh"})
	assert.ErrorContains(t, err, `locale "tlh": expected one of`)
}
