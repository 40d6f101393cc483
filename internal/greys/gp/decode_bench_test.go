// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// BenchmarkDecodeGP reads replies in a server's format: a cycle of 500 methods, 500 recorded calls, and a stack. Events
// are methods, calls and frames.
func BenchmarkDecodeGP(b *testing.B) {
	target := javamethods.Target{Class: pattern(b, "com.example.*"), Method: pattern(b, "*")}
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	{
		var cycle javamethods.Statistics
		for i := range 500 {
			cycle.Methods = append(cycle.Methods, javamethods.MethodStatistics{
				Time: at, Class: fmt.Sprintf("com.example.shop.Service%d", i/10), Method: fmt.Sprintf("operation%d", i%10),
				Calls: int64(100 + i), Succeeded: int64(90 + i), Failed: 10, Mean: 1500 * time.Microsecond, HasMean: true,
			})
		}
		benchmarkDecodeGP(b, "monitor", javamethods.MonitorCommand{Target: target, Cycle: time.Second}, Writer{}.AppendMonitor(nil, nil, &cycle), 1, len(cycle.Methods))
	}
	{
		var records []javamethods.Record
		for i := range 500 {
			records = append(records, javamethods.Record{
				Index: int64(1000 + i), Time: at.Add(time.Duration(i/50) * time.Second), Cost: time.Duration(i%20) * time.Millisecond, Returned: true,
				Object: fmt.Sprintf("0x%08x", i*7919), Class: fmt.Sprintf("com.example.shop.Service%d", i%50), Method: fmt.Sprintf("operation%d", i%10),
			})
		}
		benchmarkDecodeGP(b, "records", javamethods.RecordsCommand{}, Writer{}.AppendRecords(nil, records), len(records), len(records))
	}
	{
		data, err := Writer{}.Append(nil, &documentedStack)
		if err != nil {
			b.Fatal(err)
		}
		benchmarkDecodeGP(b, "stack", javamethods.StackCommand{Target: target}, data, 1, len(documentedStack.Frames))
	}
}

// benchmarkDecodeGP decodes replies. As "…_valid" it only checks with the standard library whether they are JSON.
func benchmarkDecodeGP(b *testing.B, name string, command javamethods.Command, data []byte, replies, events int) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		d := newDecoder(time.UTC, DefaultMaxTolerated, new(sync.Mutex))
		given := 0
		cputime.Bytes(b, len(data), events, func() {
			given = 0
			if tolerated, err := d.decode(command, data, func(javamethods.Reply) { given++ }); err != nil || tolerated {
				b.Fatal(tolerated, err)
			}
		})
		if given != replies {
			b.Fatalf("expected %d replies, got %d", replies, given)
		}
	})
	b.Run(name+"_valid", func(b *testing.B) {
		cputime.Bytes(b, len(data), events, func() {
			if !json.Valid(data) {
				b.Fatal("expected JSON")
			}
		})
	})
}
