// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// modelSplit is a simple model of split: a line is a list of UTF-16 units, with bars below the crosses of the border.
// The second unit of a character is empty.
func modelSplit(border, line string) (cells []string, ok bool) {
	var units []string
	for len(line) > 0 {
		r, size := utf8.DecodeRuneInString(line)
		units = append(units, line[:size])
		if r >= beyondBMP {
			units = append(units, "")
		}
		line = line[size:]
	}
	if len(units) != len(border) {
		return nil, false
	}
	begin := 0
	for i, c := range border {
		if c != '+' {
			continue
		}
		if units[i] != "|" {
			return nil, false
		}
		if i > 0 {
			if units[begin+1] != " " || units[i-1] != " " {
				return nil, false
			}
			cells = append(cells, strings.Join(units[begin+2:i-1], ""))
		}
		begin = i
	}
	return cells, true
}

// modelBorder is a simple model of a border: crosses around lines of at least three characters.
func modelBorder(line string) bool {
	parts := strings.Split(line, "+")
	if len(parts) < 3 || len(parts) > maxColumns+2 || parts[0] != "" || parts[len(parts)-1] != "" {
		return false
	}
	for _, p := range parts[1 : len(parts)-1] {
		if len(p) < frame || strings.Trim(p, "-") != "" {
			return false
		}
	}
	return true
}

// FuzzTable compares tables with the models.
func FuzzTable(f *testing.F) {
	for _, content := range captures(f) {
		lines := strings.Split(string(content), "\n")
		for i := 0; i+1 < len(lines); i++ {
			if strings.HasPrefix(lines[i], "+-") {
				f.Add(lines[i], lines[i+1])
			}
		}
	}
	f.Add("+---+----+", "| 😀 | é |")
	f.Fuzz(func(t *testing.T, border, line string) {
		var table table
		err := table.learn([]byte(border))
		require.Equal(t, modelBorder(border), err == nil, "%v", err)
		if err != nil {
			return
		}
		want, ok := modelSplit(border, line)
		err = table.split([]byte(line))
		require.Equal(t, ok, err == nil, "%v", err)
		if err != nil {
			return
		}
		for i := range table.cells {
			require.Equal(t, want[i], string(table.cells[i]))
			require.LessOrEqual(t, units(table.cells[i]), table.width(i))
		}
		require.Len(t, table.cells, len(want))
	})
}

// FuzzTree reads any bytes as trees. It writes the replies and reads them again: they must be equal.
func FuzzTree(f *testing.F) { fuzzText(f, javamethods.TraceCommand{}) }

// FuzzStack is FuzzTree for stacks.
func FuzzStack(f *testing.F) { fuzzText(f, javamethods.StackCommand{}) }

func fuzzText(f *testing.F, command javamethods.Command) {
	all := captures(f)
	for _, c := range captured {
		if reflect.TypeOf(c.command) == reflect.TypeOf(command) {
			f.Add(bytes.TrimSuffix(all[c.name+".raw"], []byte(promptOf(c.loud)+"\x04")))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		// Only the last byte 0x04 is an end.
		replies, err := answers(command, "\rprompt", Config{}, append(bytes.Clone(text), "\rprompt\x04"...))
		checkAnswers(t, text, replies, err)
		if err != nil {
			return
		}
		again, err := answers(command, "\rprompt", Config{}, append(written(replies), "\rprompt\x04"...))
		require.NoError(t, err)
		require.Equal(t, replies, again)
	})
}

// FuzzStream reads any bytes as the answer to any command. The division into reads must not change the result.
func FuzzStream(f *testing.F) {
	all := captures(f)
	for _, c := range captured {
		if content := all[c.name+".raw"]; len(content) < 12_000 {
			f.Add(commandIndex(c.command), c.loud, uint16(100), endedAs(c.name, content))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, loud bool, size uint16, text []byte) {
		command := streamCommands[int(which)%len(streamCommands)]
		config := Config{MaxReplyBytes: 64 << 10, MaxLineBytes: 16 << 10}
		replies, err := answers(command, promptOf(loud), config, text)
		checkAnswers(t, text, replies, err)
		if bytes.IndexByte(text, EndOfReply) < len(text)-1 {
			return // where a read ends after the first possible end
		}
		got, gotErr := answers(command, promptOf(loud), config, slices.Collect(slices.Chunk(text, int(size)+1))...)
		require.Equal(t, replies, got)
		if !errors.As(err, new(*TransferError)) {
			require.Equal(t, err, gotErr)
		}
	})
}

var streamCommands = []javamethods.Command{
	javamethods.VersionCommand{}, javamethods.SessionsCommand{}, javamethods.MonitorCommand{}, javamethods.TraceCommand{}, javamethods.StackCommand{}, javamethods.RecordCommand{},
	javamethods.RecordsCommand{}, javamethods.RecordDetailCommand{}, javamethods.ClassesCommand{}, javamethods.MethodsCommand{}, javamethods.ResetCommand{},
}

func commandIndex(c javamethods.Command) uint8 {
	return uint8(slices.IndexFunc(streamCommands, func(s javamethods.Command) bool { return reflect.TypeOf(s) == reflect.TypeOf(c) }))
}

// checkAnswers checks the invariants of all answers and errors.
func checkAnswers(t *testing.T, text []byte, replies []javamethods.Reply, err error) {
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		require.GreaterOrEqual(t, syntax.Offset, int64(0))
		require.LessOrEqual(t, syntax.Offset, int64(len(text)+len("\rprompt\x04")))
		require.NotEmpty(t, syntax.Expected)
	} else if err != nil && !errors.As(err, new(*TransferError)) {
		known := errors.Is(err, javamethods.ErrUnsupported) || errors.Is(err, javamethods.ErrRefused) || errors.Is(err, javamethods.ErrSessionTimedOut)
		require.True(t, known, "%v", err)
	}
	require.LessOrEqual(t, len(replies), len(text))
	for _, r := range replies {
		eachText(reflect.ValueOf(r).Elem(), func(s string) { require.True(t, utf8.ValidString(s), "%q", s) })
		switch r := r.(type) {
		case *javamethods.Tree:
			checkTree(t, r)
		case *javamethods.Statistics:
			for _, m := range r.Methods {
				require.True(t, m.Calls >= 0 && m.Succeeded >= 0 && m.Failed >= 0 && m.Mean >= 0 && m.Min >= 0 && m.Max >= 0, "%+v", m)
			}
		case *javamethods.Record:
			require.GreaterOrEqual(t, r.Cost, time0)
		}
	}
}

const time0 = 0 * defaultQuietTime

func checkTree(t *testing.T, tree *javamethods.Tree) {
	require.NotEmpty(t, tree.Nodes)
	for i, n := range tree.Nodes {
		require.True(t, 0 <= n.Start && n.Start <= n.End, "%+v", n)
		require.Equal(t, i == 0, n.Depth == 0)
		if i > 0 {
			require.LessOrEqual(t, n.Depth, tree.Nodes[i-1].Depth+1)
		}
	}
}

// eachText calls do with each string in a value.
func eachText(v reflect.Value, do func(string)) {
	switch v.Kind() {
	case reflect.String:
		do(v.String())
	case reflect.Slice:
		for i := range v.Len() {
			eachText(v.Index(i), do)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachText(v.Field(i), do)
			}
		}
	}
}
