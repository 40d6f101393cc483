// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// childCollector names the variable that makes the test binary a guard, with the address of its collector. So the
// benchmark measures the processor time of the guard alone. With childCopies it only reads and writes.
const childCollector, childCopies = "CALLBRAID_GUARD_COLLECTOR", "CALLBRAID_GUARD_COPIES"

func TestMain(m *testing.M) {
	if address := os.Getenv(childCollector); address != "" {
		if os.Getenv(childCopies) != "" {
			copyTo(address)
			return
		}
		beGuard(address)
		return
	}
	goleak.VerifyTestMain(m)
}

// beGuard runs a guard until its input ends. It prints its address, and at the end the number of its allocations.
func beGuard(collector string) {
	o := DefaultOptions()
	o.Collectors = []string{collector}
	// The waits of a suspended agent cost only time.
	o.Retry = backoff.Config{InitialInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}
	g, err := New(o)
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = g.Shutdown(context.Background())
	}()
	if err := g.Serve(listener); err != nil {
		panic(err)
	}
	_ = g.Shutdown(context.Background()) // which is over when all has ended
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Println(m.Mallocs)
}

// copyTo copies the data of connections to connections of its own, both ways, until its input ends. This is the lowest
// cost of forwarding.
func copyTo(collector string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = listener.Close()
	}()
	var copying sync.WaitGroup
	defer copying.Wait()
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", collector)
		if err != nil {
			panic(err)
		}
		copying.Go(func() { copyBytes(to, from) })
		copying.Go(func() { copyBytes(from, to) })
	}
}

// copyBytes copies to the end, and closes both connections.
func copyBytes(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, chunkBytes)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// sink is a collector that reads all data and decodes nothing.
func sink(b *testing.B, connections int32) net.Listener {
	return serveSink(b, connections, func(conn net.Conn) {
		buffer := make([]byte, chunkBytes)
		for {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
		}
	})
}

// serveSink runs a collector whose data connections are read by a function.
func serveSink(b *testing.B, connections int32, read func(conn net.Conn)) net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go swallow(conn, connections, read)
		}
	}()
	return listener
}

func swallow(conn net.Conn, connections int32, read func(conn net.Conn)) {
	defer conn.Close()
	hello := make([]byte, 2)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return
	}
	switch bytefrog.MessageType(hello[0]) {
	case bytefrog.TypeHello:
		m, _ := bytefrog.AgentConfiguration{
			RunID: 1, HeartbeatInterval: time.Second, BufferMemoryBudget: mib, QueueRetryCount: 1, DataConnections: connections,
		}.Message(1)
		_, _ = conn.Write(bytefrog.Command{Of: bytefrog.TypeStart}.AppendTo(m.AppendTo(nil)))
		_, _ = io.Copy(io.Discard, conn)
	default:
		_, _ = conn.Write(bytefrog.DataHelloReply{}.AppendTo(nil))
		read(conn)
	}
}

// feeder is an agent that sends given bytes, and obeys suspend.
type feeder struct {
	control net.Conn
	data    []net.Conn
	// suspended is held for writing while it is.
	suspended sync.RWMutex
}

func feed(b *testing.B, address string, connections int) *feeder {
	f := &feeder{control: say(b, address, bytefrog.Hello{Version: 1})}
	in := newReader(f.control, maxConfiguration)
	for range 2 { // configuration, start
		if _, _, err := in.Next(fromCollector(1), time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
	for range connections {
		conn := say(b, address, bytefrog.DataHello{Run: 1})
		if _, _, err := newReader(conn, controlBytes).Next(fromCollector(1), time.Time{}); err != nil {
			b.Fatal(err)
		}
		f.data = append(f.data, conn)
	}
	go f.obey(in)
	return f
}

// obey carries out commands until the control connection ends.
func (f *feeder) obey(in *connreader.Reader) {
	isSuspended := false
	for {
		m, _, err := in.Next(fromCollector(1), time.Time{})
		if isSuspended && (err != nil || m == bytefrog.Command{Of: bytefrog.TypeUnsuspend}) {
			f.suspended.Unlock()
			isSuspended = false
		}
		if err != nil {
			return
		}
		if m == (bytefrog.Command{Of: bytefrog.TypeSuspend}) {
			f.suspended.Lock()
			isSuspended = true
			_, _ = f.control.Write(bytefrog.DataBreak{}.AppendTo(nil))
		}
	}
}

func say(b *testing.B, address string, m bytefrog.Message) net.Conn {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_, err = conn.Write(m.AppendTo(nil))
	}
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

// send sends each connection's bytes so many times, in buffers of an agent's size.
func (f *feeder) send(data [][]byte, times int) {
	const buffer = 8 * kib
	var sending sync.WaitGroup
	for i, conn := range f.data {
		sending.Go(func() {
			for range times {
				for rest := data[i]; len(rest) > 0; {
					f.suspended.RLock()
					n, err := conn.Write(rest[:min(buffer, len(rest))])
					f.suspended.RUnlock()
					if rest = rest[n:]; err != nil {
						return
					}
				}
			}
		})
	}
	sending.Wait()
}

// end closes all connections as an agent does.
func (f *feeder) end() {
	for _, conn := range f.data {
		_ = conn.Close()
	}
	_, _ = f.control.Write(bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown}.AppendTo(nil))
	_ = f.control.Close()
}

// BenchmarkPass measures the processor time of a guard for each forwarded event, in user and system mode, and its
// allocations. It also measures a process that only reads and writes. The runs are long enough that one-time costs are
// small.
func BenchmarkPass(b *testing.B) {
	const rounds = 80
	recorded, err := capture.Open("../../../testdata/bytefrog/maven.zip")
	if err != nil {
		b.Fatal(err)
	}
	var data [][]byte
	events := 0
	for _, connection := range recorded.Data {
		data = append(data, connection[2:])
		events += countEvents(b, connection[2:])
	}
	collector := sink(b, int32(len(data)))
	defer collector.Close()
	for _, child := range []struct{ name, variable string }{{"guard", ""}, {"copy", childCopies + "=yes"}} {
		b.Run(child.name, func(b *testing.B) {
			var used time.Duration
			allocated := 0
			for b.Loop() {
				took, allocations := passThroughChild(b, child.variable, collector.Addr().String(), data, rounds)
				used, allocated = used+took, allocated+allocations
			}
			passed := float64(events * rounds * b.N)
			b.ReportMetric(float64(used.Nanoseconds())/passed, "cpu-ns/event")
			b.ReportMetric(float64(allocated)/passed, "mallocs/event")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func countEvents(b *testing.B, data []byte) int {
	w, err := walk(data, 0, newNames(0, func() uint64 { return 0 }, func() {}))
	if err != nil {
		b.Fatal(err)
	}
	return w.events
}

// passThroughChild sends data through a guard in a child process. It returns its processor time, and its allocations if
// it prints them.
func passThroughChild(b *testing.B, variable, collector string, data [][]byte, rounds int) (used time.Duration, allocations int) {
	address, end := startChild(b, variable, collector)
	f := feed(b, address, len(data))
	f.send(data, rounds)
	f.end()
	state, last := end()
	if last != "" {
		var err error
		if allocations, err = strconv.Atoi(last); err != nil {
			b.Fatal(err)
		}
	}
	return state.UserTime() + state.SystemTime(), allocations
}

// startChild starts a process with a guard, and returns its address. end ends it, and returns its last output.
func startChild(b *testing.B, variable, collector string) (address string, end func() (state *os.ProcessState, last string)) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childCollector+"="+collector, variable)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	says := bufio.NewReader(out)
	address, err = says.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(address), func() (*os.ProcessState, string) {
		_ = in.Close()
		last, err := io.ReadAll(says)
		if err = errors.Join(err, c.Wait()); err != nil {
			b.Fatal(err)
		}
		return c.ProcessState, strings.TrimSpace(string(last))
	}
}

// BenchmarkLatency measures the median time of a message from an agent to a collector, with and without a guard,
// without other data.
func BenchmarkLatency(b *testing.B) {
	const messages = 2000
	arrived := make(chan time.Time, 1)
	collector := listenFor(b, arrived)
	defer collector.Close()
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			reportLatency(b, collector.Addr().String(), messages, arrived)
		}
	})
	b.Run("guard", func(b *testing.B) {
		for b.Loop() {
			address, end := startChild(b, "", collector.Addr().String())
			reportLatency(b, address, messages, arrived)
			end()
		}
	})
}

// listenFor runs a collector that reports the time of data on a data connection.
func listenFor(b *testing.B, arrived chan<- time.Time) net.Listener {
	return serveSink(b, 1, func(conn net.Conn) {
		buffer := make([]byte, chunkBytes)
		for {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
			select {
			case arrived <- time.Now():
			default: // heartbeats and the end do not count
			}
		}
	})
}

// reportLatency sends messages one after the other, each after the arrival of the previous one.
func reportLatency(b *testing.B, address string, messages int, arrived <-chan time.Time) {
	f := feed(b, address, 1)
	defer f.end()
	var took []time.Duration
	for i := range messages {
		message := bytefrog.AppendEvent(nil, bytefrog.Event{Type: bytefrog.TypeMethodEntry, Sequence: uint32(i)})
		sent := time.Now()
		if _, err := f.data[0].Write(message); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-arrived).Sub(sent))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[messages/2].Nanoseconds())/1000, "median-us")
	b.ReportMetric(float64(took[messages*99/100].Nanoseconds())/1000, "99th-percentile-us")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkWalk measures walk, for the first run of an agent and for a later one, and for comparison the sum of the
// bytes.
func BenchmarkWalk(b *testing.B) {
	recorded, err := capture.Open("../../../testdata/bytefrog/maven.zip")
	if err != nil {
		b.Fatal(err)
	}
	data := recorded.Data[0][2:]
	events := countEvents(b, data)
	n := newNames(16*mib, func() uint64 { return 0 }, func() {})
	b.Run("summed", func(b *testing.B) { cputime.Sum(b, events, data) })
	for name, t := range map[string]translation{"first": {}, "later": {needed: true}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			cputime.Events(b, events, func() {
				for rest := data; len(rest) > 0; {
					piece := rest[:min(len(rest), chunkBytes)]
					var w walked
					if t.needed {
						w, err = walkTranslated(piece, 0, n, t)
					} else {
						w, err = walk(piece, 0, n)
					}
					if err != nil {
						b.Fatal(err)
					}
					rest = rest[w.taken:]
				}
			})
		})
	}
}
