// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import "github.com/callbraid/callbraid/internal/javamethods"

// block reads the lines of one command's answers. Its errors are a [SyntaxError] without an offset.
type block interface {
	// line reads a line. It never receives a notice: see [decoder.notice].
	line(text []byte) error
	// open reports whether an answer has begun and is not complete.
	open() bool
	// mayBeComplete reports whether the open answer is complete if no more bytes arrive. The decoder then calls pause.
	mayBeComplete() bool
	pause() error
	// end handles the end of all answers.
	end() error
}

// output delivers a block's answers. It also has the parsers that all blocks use.
type output struct {
	each func(javamethods.Reply)
	// replies is the number of delivered answers; repeated is the number of ignored repetitions.
	replies, repeated int
	names             names
	clock             clock
}

func (o *output) reply(r javamethods.Reply) {
	o.replies++
	o.each(r)
}

// maxReused is the largest capacity of a slice that is reused for the next answer.
const maxReused = 16 << 10

// reused returns an emptied slice of a former answer for the next one.
func reused[T any](s []T) []T {
	if cap(s) > maxReused {
		return nil
	}
	return s[:0]
}

// noBlock reads the answers to a command that has only notices.
type noBlock struct{ definite }

func (noBlock) line(text []byte) error { return unexpected("nothing but the end of the answer", text) }
func (noBlock) open() bool             { return false }
func (noBlock) end() error             { return nil }

// definite is embedded in blocks whose last line shows that it is the last.
type definite struct{}

func (definite) mayBeComplete() bool { return false }
func (definite) pause() error        { return nil }
