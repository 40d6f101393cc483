// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package capture reads recordings of Rbkit servers: their published messages and their
// replies, as files in a zip file. It knows no events.
package capture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/testkit/capturefile"
)

// Capture has the published messages and the replies of a server.
type Capture struct {
	// Messages and Replies are in the order of their arrival; without an index, in the order of
	// their names.
	Messages, Replies []Message
}

// Message is a message of a server.
type Message struct {
	// Name is that of its file, without .bin.
	Name string
	// At is its time since the begin of the recording; 0 without an index.
	At time.Duration
	// Command is the command that a reply answers; empty without an index.
	Command string
	// Events is how many events a message has by the numbers of their types; nil without
	// an index.
	Events map[uint64]int
	Data   []byte
	// Decoded is the message as JSON, as a reference decoded it; nil: there is none.
	Decoded []byte
}

// limits are far above the sizes of recordings.
var limits = capturefile.Limits{File: 64 << 20, All: 512 << 20}

const (
	indexName     = "index.jsonl"
	dataSuffix    = ".bin"
	decodedSuffix = ".json"
	replyInfix    = "rep"
)

// Open reads the capture in the zip file of that name.
func Open(name string) (*Capture, error) { return capturefile.Open(name, Read) }

// Read reads a capture.
func Read(r io.ReaderAt, size int64) (*Capture, error) {
	files, err := capturefile.Unpack(r, size, limits, func(name string) bool {
		return name == indexName || strings.HasSuffix(name, dataSuffix) || strings.HasSuffix(name, decodedSuffix)
	})
	if err != nil {
		return nil, err
	}
	rows, err := readIndex(files[indexName])
	if err != nil {
		return nil, err
	}
	c := &Capture{}
	for name, data := range files {
		if stem, ok := strings.CutSuffix(name, dataSuffix); ok {
			c.add(Message{Name: stem, Data: data, Decoded: files[stem+decodedSuffix]}, rows)
		}
	}
	if len(c.Messages) == 0 {
		return nil, errors.New("expected messages that were published, found none")
	}
	for _, m := range [][]Message{c.Messages, c.Replies} {
		slices.SortFunc(m, func(a, b Message) int { return strings.Compare(a.Name, b.Name) })
	}
	return c, nil
}

func (c *Capture) add(m Message, rows map[string]row) {
	row, indexed := rows[m.Name]
	m.At, m.Command, m.Events = time.Duration(row.Seconds*float64(time.Second)), row.Command, row.Events
	if row.Kind == "rep" || !indexed && strings.Contains(m.Name, replyInfix) {
		c.Replies = append(c.Replies, m)
	} else {
		c.Messages = append(c.Messages, m)
	}
}

// row is a line of the index.
type row struct {
	Kind    string         `json:"kind"`
	N       int            `json:"n"`
	Seconds float64        `json:"t"`
	Command string         `json:"cmd"`
	Events  map[uint64]int `json:"events"`
}

// readIndex returns the rows by the names of their files.
func readIndex(text []byte) (map[string]row, error) {
	rows := map[string]row{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for n := 1; lines.Scan(); n++ {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", indexName, n, err)
		}
		rows[fmt.Sprintf("%s-%05d", r.Kind, r.N)] = r
	}
	return rows, lines.Err()
}
