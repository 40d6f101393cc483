// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// busy are answers of a busy server, some hundred kilobytes each, with their commands.
var busy = []struct {
	name    string
	command javamethods.Command
	text    func() []byte
}{
	{"tables", javamethods.MonitorCommand{}, busyTables},
	{"trees", javamethods.TraceCommand{}, busyTrees},
	{"stacks", javamethods.StackCommand{}, busyStacks},
	{"records", javamethods.RecordCommand{}, busyRecords},
	{"methods", javamethods.MethodsCommand{}, busyMethods},
}

var busySince = time.Date(2026, 11, 20, 9, 12, 20, 0, time.UTC)

func busyTables() (b []byte) {
	for cycle := range 5 {
		var s javamethods.Statistics
		for i := range 500 {
			n := int64(i * 7 % 5000)
			s.Methods = append(s.Methods, javamethods.MethodStatistics{
				Time: busySince.Add(time.Duration(cycle) * time.Second), Class: fmt.Sprintf("com.example.shop.orders.Service%d", i/10),
				Method: fmt.Sprintf("handleRequest%d", i%10), Calls: n, Succeeded: n - n/10, Failed: n / 10,
				Mean: time.Duration(n) * 10 * time.Microsecond, Max: time.Duration(n) * time.Millisecond, HasMean: n > 0, HasRange: n > 0,
			})
		}
		b = AppendStatistics(b, &s)
	}
	return b
}

func busyTrees() (b []byte) {
	for i := range 500 {
		t := javamethods.Tree{Thread: javamethods.Thread{Name: fmt.Sprintf("http-nio-8080-exec-%d", i%50), ID: int64(i % 50), Daemon: true, Priority: 5}}
		t.Nodes = append(t.Nodes, javamethods.Node{End: 25 * time.Millisecond, Class: "com.example.shop.Shop", Method: "checkout"})
		for k := range 20 {
			t.Nodes = append(t.Nodes, javamethods.Node{
				Depth: 1, Start: time.Duration(k) * time.Millisecond, End: time.Duration(k+1) * time.Millisecond,
				Class: fmt.Sprintf("com.example.shop.Part%d", k), Method: fmt.Sprintf("call%d", (i+k)%40), Line: int32(10 + k),
			})
		}
		b = AppendTree(b, &t)
	}
	return b
}

func busyStacks() (b []byte) {
	for i := range 300 {
		s := javamethods.CallStack{Thread: javamethods.Thread{Name: fmt.Sprintf("worker-%d", i%20), ID: int64(i % 20), Priority: 5}}
		for k := range 30 {
			s.Frames = append(s.Frames, javamethods.Frame{
				Class: fmt.Sprintf("com.example.shop.layer%d.Handler", k), Method: fmt.Sprintf("handle%d", i%8), File: "Handler.java", Line: int32(k),
			})
		}
		b = AppendCallStack(b, &s)
	}
	return b
}

func busyRecords() (b []byte) {
	for i := range 2000 {
		r := javamethods.Record{
			Index: int64(1000 + i), Process: int64(1000 + i), Time: busySince.Add(time.Duration(i/50) * time.Second), Cost: 12 * time.Millisecond,
			Returned: true, Object: fmt.Sprintf("0x%08x", i%64*0x1357), Class: "OrderService", Method: fmt.Sprintf("placeOrder%d", i%9),
		}
		b = AppendRecord(b, &r, i == 0, i == 1999)
	}
	return b
}

func busyMethods() []byte {
	var all []javamethods.Method
	for i := range 300 {
		all = append(all, javamethods.Method{
			Class: fmt.Sprintf("com.example.shop.Service%d", i/10), Name: fmt.Sprintf("handleRequest%d", i%10), Modifier: "public",
			Parameters: []string{"java.lang.String", "int"}, Exceptions: []string{"java.io.IOException"}, Return: "java.util.List",
		})
	}
	return AppendMethods(nil, all)
}

// BenchmarkDecodeConsole decodes answers of a busy server and measures the bytes per second.
func BenchmarkDecodeConsole(b *testing.B) {
	for _, c := range busy {
		b.Run(c.name, func(b *testing.B) {
			text := append(AppendPrompt(c.text()), EndOfReply)
			lines := bytes.Count(text, []byte("\n"))
			r := bytes.NewReader(nil)
			conn := newConnection(&streamed{r: r}, Config{}.withDefaults())
			conn.prompt = AppendPrompt(nil)
			talk := &conversation{connection: conn, running: true}
			replies := 0
			b.ReportAllocs()
			cputime.Bytes(b, len(text), lines, func() {
				r.Reset(text)
				d, err := talk.ask([]byte("?"), c.command, func(javamethods.Reply) {})
				if err != nil {
					b.Fatal(err)
				}
				replies += d.replies
			})
			if replies == 0 {
				b.Fatal("expected answers, got none")
			}
		})
		b.Run(c.name+"_summed", func(b *testing.B) {
			text := append(AppendPrompt(c.text()), EndOfReply)
			cputime.Sum(b, bytes.Count(text, []byte("\n")), text)
		})
	}
}

// streamed is a connection whose reads never wait.
type streamed struct {
	pieces
	r *bytes.Reader
}

func (s *streamed) Read(into []byte) (int, error) { return s.r.Read(into) }
