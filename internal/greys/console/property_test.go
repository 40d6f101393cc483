// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// generator makes random answers.
type generator struct{ *rand.Rand }

// of returns one of the values.
func of[T any](g generator, all ...T) T { return all[g.IntN(len(all))] }

// many returns up to most values.
func many[T any](g generator, most int, one func() T) (all []T) {
	for range g.IntN(most + 1) {
		all = append(all, one())
	}
	return all
}

// word returns a Java name of characters of any width, without separators. It has no character of two UTF-16 units: the
// server may break a line between them, and lose the character.
func (g generator) word() string {
	var b strings.Builder
	for range 1 + g.IntN(12) {
		b.WriteString(of(g, "a", "b", "Z", "0", "_", "$", "é", "名", "-"))
	}
	return b.String()
}

func (g generator) class() string {
	return strings.Join(append(many(g, 5, g.word), g.word()), ".")
}

func (g generator) method() string {
	return of(g, g.word(), "<init>", g.word()+g.word()+g.word()+g.word())
}

// text returns lines of any length that contain the characters of drawn tables, trees and stacks. No line break falls
// on a space or exactly on the end of a line, where a reader could not see it.
func (g generator) text(width int) string {
	line := func() string {
		var b strings.Builder
		for range g.IntN(30) {
			b.WriteString(of(g, "a", "|", " | ", "+---+", "`---", "[1,1ms]", " ", "拒绝", "😀", "\x04", "  at ", ":", "'\""))
		}
		s := b.String()
		if g.IntN(3) == 0 {
			s += strings.Repeat(of(g, "x", "|", "名"), g.IntN(3*width))
		}
		s = strings.TrimRight(s, " ")
		if n := len(utf16Of(s)); n >= width {
			s = strings.NewReplacer(" ", "_", "😀", "名名").Replace(s)
			if n%width == 0 {
				s += "."
			}
		}
		return s
	}
	return strings.TrimRight(strings.Join(many(g, 4, line), "\n"), "\n")
}

func (g generator) ms(most int) time.Duration {
	return time.Duration(g.IntN(most+1)) * time.Millisecond
}

func (g generator) time() time.Time { return busySince.Add(time.Duration(g.IntN(1e8)) * time.Second) }

func (g generator) thread() javamethods.Thread {
	return javamethods.Thread{
		Name: of(g, "main", g.word(), "a\" thread_id=0x1;", "two\nlines", "|;is_daemon=true;"), ID: int64(g.IntN(1000)),
		Daemon: g.IntN(2) == 0, Priority: int32(g.IntN(11)),
	}
}

func (g generator) affected() javamethods.Reply {
	return &javamethods.Affected{Classes: int64(g.IntN(100)), Methods: int64(g.IntN(1000))}
}

func (g generator) statistics() javamethods.Reply {
	return &javamethods.Statistics{Methods: many(g, 5, func() javamethods.MethodStatistics {
		m := javamethods.MethodStatistics{Time: g.time(), Class: g.class(), Method: g.method()}
		if g.IntN(4) > 0 {
			m.Succeeded, m.Failed = int64(1+g.IntN(1e6)), int64(g.IntN(1e6))
			m.Calls = m.Succeeded + m.Failed
			m.Mean = time.Duration(g.IntN(1e9)) * 10 * time.Microsecond
			m.Min, m.Max = g.ms(1000), g.ms(1e6)
			m.HasMean, m.HasRange = true, true
		}
		return m
	})}
}

func (g generator) tree() javamethods.Reply {
	t := &javamethods.Tree{Thread: g.thread()}
	depth := int32(0)
	for range 1 + g.IntN(20) {
		n := javamethods.Node{Depth: depth, Start: g.ms(100), Class: g.class(), Method: g.method(), Line: int32(g.IntN(3) * g.IntN(1000))}
		n.End = n.Start + g.ms(100)
		if g.IntN(4) == 0 {
			n.Throws = g.class()
		}
		t.Nodes = append(t.Nodes, n)
		depth = int32(1 + g.IntN(int(depth)+1))
	}
	return t
}

func (g generator) callStack() javamethods.CallStack {
	frame := func() javamethods.Frame {
		return javamethods.Frame{Class: g.class(), Method: g.method(), File: of(g, "", "Shop.java", g.word()+".kt"), Line: int32(g.IntN(1000) - 2)}
	}
	return javamethods.CallStack{Thread: g.thread(), Frames: many(g, 8, frame)}
}

func (g generator) stack() javamethods.Reply { s := g.callStack(); return &s }

func (g generator) record() javamethods.Reply {
	r := &javamethods.Record{
		Index: int64(g.IntN(1e6)), Process: int64(g.IntN(1e6)), Time: g.time(), Cost: g.ms(1e6), Threw: g.IntN(2) == 0,
		Object: of(g, "", "0x6e0be858"), Class: g.word(), Method: g.method() + of(g, "", g.method()), IsSimple: true,
	}
	r.Returned = !r.Threw
	return r
}

func (g generator) detail() javamethods.Reply {
	d := &javamethods.RecordDetail{Record: *g.record().(*javamethods.Record)}
	const width = 150
	d.Class, d.IsSimple = g.class(), false
	d.Parameters = many(g, 4, func() string { return g.text(width) })
	if d.Threw {
		d.Exception = g.text(width) + "\n    at " + g.class() + ".m(F.java:1)"
	} else {
		d.Return = g.text(width)
	}
	if d.HasStack = g.IntN(2) == 0; d.HasStack {
		d.Stack = g.callStack()
	}
	return d
}

func (g generator) loaded() javamethods.Reply {
	c := &javamethods.Class{Name: g.class(), CodeSource: "/" + g.class(), Modifier: of(g, "", "public", "abstract,public"), Super: g.class()}
	for _, k := range classKinds {
		if g.IntN(3) == 0 {
			c.Kinds = append(c.Kinds, k.kind)
		}
	}
	c.Annotations, c.Interfaces = many(g, 3, g.class), many(g, 5, g.class)
	c.Loaders = many(g, 3, func() string { return g.class() + "@1b2c" })
	c.Fields = many(g, 4, func() javamethods.Field {
		f := javamethods.Field{Modifier: of(g, "", "private", "private,static"), Type: g.class(), Name: g.word()}
		if strings.Contains(f.Modifier, staticWord) {
			f.Value = g.text(classFieldWidth)
		}
		return f
	})
	return c
}

func (g generator) declared() javamethods.Reply {
	return &javamethods.Method{
		Class: g.class(), Name: g.method(), Modifier: of(g, "", "public,static"), Annotations: many(g, 3, g.class),
		Parameters: many(g, 4, g.class), Exceptions: many(g, 2, g.class), Return: g.class(),
	}
}

func (g generator) sessions() javamethods.Reply {
	return &javamethods.Sessions{ProcessID: int64(g.IntN(1e6)), Sessions: []javamethods.Session{{
		ID: int64(g.IntN(100)), Duration: g.ms(1e6), Charset: "UTF-8", From: "/127.0.0.1:34788", To: "/127.0.0.1:3658",
	}}}
}

func (g generator) version() javamethods.Reply {
	return &javamethods.Version{Text: of(g, "1.7.6.6", "2.0", "10.20.30.40")}
}

// generated returns a command with random answers.
func generated(g generator) (command javamethods.Command, replies []javamethods.Reply) {
	one := func(reply func() javamethods.Reply) []javamethods.Reply { return []javamethods.Reply{reply()} }
	switch g.IntN(10) {
	case 0:
		return javamethods.MonitorCommand{}, append(many(g, 1, g.affected), many(g, 3, g.statistics)...)
	case 1:
		return javamethods.TraceCommand{}, append(many(g, 1, g.affected), many(g, 4, g.tree)...)
	case 2:
		return javamethods.StackCommand{}, append(many(g, 1, g.affected), many(g, 4, g.stack)...)
	case 3:
		return javamethods.RecordCommand{}, append(many(g, 1, g.affected), many(g, 6, g.record)...)
	case 4:
		return javamethods.RecordsCommand{}, many(g, 6, g.record)
	case 5:
		return javamethods.RecordDetailCommand{}, one(g.detail)
	case 6:
		return javamethods.ClassesCommand{}, many(g, 3, g.loaded)
	case 7:
		return javamethods.MethodsCommand{}, append(one(g.declared), many(g, 4, g.declared)...)
	case 8:
		return javamethods.SessionsCommand{}, one(g.sessions)
	default:
		return javamethods.VersionCommand{}, one(g.version)
	}
}

// cut divides text into pieces of random length.
func (g generator) cut(text []byte) (pieces [][]byte) {
	for len(text) > 0 {
		n := min(len(text), 1+g.IntN(of(g, 3, 100, 10_000)))
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}

// TestWrittenAnswersAreReadBack writes answers, divides them into reads, and reads them.
func TestWrittenAnswersAreReadBack(t *testing.T) {
	for seed := range uint64(1000) {
		g := generator{rand.New(rand.NewPCG(seed, 7))}
		command, replies := generated(g)
		prompt := promptOf(g.IntN(2) == 0)
		text := append(append(written(replies), prompt...), EndOfReply)
		got, err := answers(command, prompt, Config{}, g.cut(text)...)
		require.NoError(t, err, "seed %d: %s", seed, text)
		require.Equal(t, replies, got, "seed %d: %s", seed, text)
	}
}
