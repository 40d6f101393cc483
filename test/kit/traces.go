// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// FileExporter configures a file exporter for ReadTraces. It writes to a file of that name in the
// collector's directory, across reloads.
func FileExporter(name string) string {
	return fmt.Sprintf("{path: \"${env:DIR}/%s\", format: proto, append: true}", name)
}

// ReadTraces calls f with each hand-over that a file exporter wrote to the file
// of that name in the collector's directory. The collector has to have stopped.
func (c *Collector) ReadTraces(t testing.TB, name string, f func(ptrace.Traces)) {
	t.Helper()
	select {
	case <-c.exited:
	default:
		t.Fatal("the file exporter writes its last when the collector stops: stop it first")
	}
	file, err := os.Open(c.Dir + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := eachTraces(bufio.NewReaderSize(file, 1<<20), f); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// eachTraces reads messages that are each preceded by a 32 bit length.
func eachTraces(r io.Reader, f func(ptrace.Traces)) error {
	var unmarshaler ptrace.ProtoUnmarshaler
	for n := 0; ; n++ {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("length of message %d: %w", n, err)
		}
		message := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(r, message); err != nil {
			return fmt.Errorf("message %d of %d bytes: %w", n, len(message), err)
		}
		traces, err := unmarshaler.UnmarshalTraces(message)
		if err != nil {
			return fmt.Errorf("message %d: %w", n, err)
		}
		f(traces)
	}
}
