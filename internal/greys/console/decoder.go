// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/callbraid/callbraid/internal/greys"
)

// block reads the lines of what a command's answers consist of. What is wrong with a line
// is a [SyntaxError] without a place.
type block interface {
	// line reads a line. It is given no notice: see [decoder.notice].
	line(text []byte) error
	// open reports whether an answer has begun and is not complete.
	open() bool
	// mayBeComplete reports whether what is open is complete if nothing comes for now, of
	// which pause is told.
	mayBeComplete() bool
	pause() error
	// end is told that nothing comes any more.
	end() error
}

// output is where a block's answers go, with what all of them are made of.
type output struct {
	each func(greys.Reply)
	// replies is how many were given, repeated how many were left out as repetitions.
	replies, repeated int
	names             names
	clock             clock
}

func (o *output) reply(r greys.Reply) {
	o.replies++
	o.each(r)
}

// maxReused is of how many elements a slice is kept for the next answer.
const maxReused = 16 << 10

// reused is a slice of a former answer, for the next one.
func reused[T any](s []T) []T {
	if cap(s) > maxReused {
		return nil
	}
	return s[:0]
}

// decoder makes answers of the lines that a server says to one command.
type decoder struct {
	output
	block
	// limit is how many bytes an answer may have; begun is where the one that is open began.
	limit, begun int64
	// room is that of the answer that is open.
	room greys.Room
	// affected says that the server has said what the command's patterns match.
	affected bool
	// lines is how many came.
	lines int
	// first is the beginning of the first line of the connection.
	first []byte
	// failed is why the server says that it does not do it, in words.
	failed error
	words  []byte
}

// take reads a line, without its end, that stands at a place of the connection.
func (d *decoder) take(text []byte, offset int64) error {
	return at(offset, d.read(text, offset))
}

// maxSaid is how much of the first line an error says.
const maxSaid = 80

// transfer says that bytes did not get through while something was expected.
func (d *decoder) transfer(received int64, what string, err error) error {
	failed := &TransferError{Offset: received, What: what, Err: err}
	switch {
	case received == 0 && err == ErrTimeout && what != listAnswer:
		failed.Err = ErrSilent
	case d.replies == 0:
		failed.Said = validText(d.first)
	}
	return failed
}

// at is an error with the place of the line.
func at(offset int64, err error) error {
	if err == nil {
		return nil // nothing is allocated for a line
	}
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		syntax.Offset = offset
	}
	return err
}

func (d *decoder) read(text []byte, offset int64) error {
	d.lines++
	if offset == 0 {
		if greys.IsHTTP(text) {
			return fmt.Errorf("%w: it begins with %q", greys.ErrHTTP, text[:min(len(text), maxSaid)])
		}
		d.first = append(d.first[:0], text[:min(len(text), maxSaid)]...)
	}
	if d.failed != nil {
		d.addWords(text)
		return nil
	}
	if !d.open() {
		if d.begun = offset; d.notice(text) {
			return nil
		}
	}
	if offset+int64(len(text))-d.begun > d.limit {
		return wrong(fmt.Sprintf("an answer of at most %d bytes", d.limit), text)
	}
	if err := d.makeRoom(offset + int64(len(text)) - d.begun); err != nil {
		return err
	}
	before := d.replies
	err := d.block.line(text)
	if d.replies > before {
		d.begun = offset // what follows in the same table is another answer
	}
	return err
}

const (
	// decodedPerByte is how many bytes a byte of an answer takes at most until it is handed
	// on, and roomStep after how many bytes of one it is asked whether there is room.
	decodedPerByte = 5
	roomStep       = 64 << 10
)

// makeRoom makes room for an answer that has so many bytes by now.
func (d *decoder) makeRoom(bytes int64) error {
	return d.room.Hold(decodedPerByte * int(bytes/roomStep*roomStep))
}

// finish reads the end, which stands at a place of the connection.
func (d *decoder) finish(offset int64) error {
	if d.failed != nil {
		return fmt.Errorf("%w: %s", d.failed, validText(d.words))
	}
	return at(offset, d.end())
}

// endsAlone reports whether a byte 0x04 that is all that stands in a line ends the answer
// for sure: lines of tables and trees begin otherwise, whatever they hold. A thread's name in
// the title of a stack may have such a line, and so may the words for what went wrong.
func (d *decoder) endsAlone() bool {
	stack, is := d.block.(*stackBlock)
	return d.failed == nil && !(is && stack.isOpen)
}

// quiet is told that nothing comes for now.
func (d *decoder) quiet(offset int64) error { return at(offset, d.pause()) }

// What the server says beside answers.
const (
	abortNotice    = "Press Ctrl+D to abort."
	dumpNotice     = "[dump: "
	affectNotice   = "Affect"
	commandNotice  = `Command "`
	failureNotice  = "Command execution failed."
	timedOutNotice = "Session timed out."
	noFragment     = "Time fragment["
)

// notice reads a line that stands between answers, if it is no part of one. Tables, trees
// and stacks begin otherwise.
func (d *decoder) notice(text []byte) bool {
	if len(text) == 0 {
		return true
	}
	switch text[0] {
	case '+', '|', ' ', '`', 't':
		return false
	}
	is := func(beginning string) bool { return bytes.HasPrefix(text, []byte(beginning)) }
	switch {
	case is(abortNotice), is(dumpNotice):
	case is(affectNotice):
		return d.affects(text)
	case is(timedOutNotice):
		d.fail(greys.ErrSessionTimedOut, text)
	case is(failureNotice), is(noFragment):
		d.fail(greys.ErrRefused, text)
	case is(commandNotice):
		d.fail(reason(text), text)
	default:
		return false
	}
	return true
}

// reason is why a command is not done, by the line that says so.
func reason(text []byte) error {
	if bytes.HasSuffix(text, []byte(" not found.")) || bytes.Contains(text, []byte("is not a recognized option")) {
		return greys.ErrUnsupported
	}
	return greys.ErrRefused
}

func (d *decoder) fail(why error, text []byte) {
	d.failed, d.words = why, d.words[:0]
	d.addWords(text)
}

// maxWords is how much is kept of why the server does not do a command, which may go on for
// lines.
const maxWords = 1 << 10

func (d *decoder) addWords(text []byte) {
	text = bytes.TrimSpace(text)
	if len(d.words) > 0 && len(text) > 0 {
		d.words = append(d.words, ' ')
	}
	d.words = append(d.words, text[:min(len(text), max(0, maxWords-len(d.words)))]...)
	d.words = d.words[:min(len(d.words), maxWords)]
}

// affects reads what a command's patterns match:
//
//	Affect(class-cnt:1 , method-cnt:4) cost in 21 ms.
//	Affect(row-cnt:1) cost in 2 ms.
//	Affect cost in 2 ms.
func (d *decoder) affects(text []byte) bool {
	text = text[len(affectNotice):]
	counts, _, ok := bytes.Cut(text, []byte(" cost in "))
	if !ok {
		return false
	}
	if len(counts) == 0 {
		return true
	}
	counts, ok = bytes.CutPrefix(counts, []byte("("))
	if !ok || !bytes.HasSuffix(counts, []byte(")")) {
		return false
	}
	var affected greys.Affected
	for part := range bytes.SplitSeq(counts[:len(counts)-1], []byte(",")) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(part), []byte(":"))
		n, ok := count(value)
		if !ok {
			return false
		}
		switch string(name) {
		case "class-cnt":
			affected.Classes = n
		case "method-cnt":
			affected.Methods = n
		case "row-cnt":
			affected.Rows = n
		default:
			return false
		}
	}
	d.affected = true
	d.reply(&affected)
	return true
}

// newBlock is what reads the answers to a command.
func newBlock(command greys.Command, o *output) block {
	switch c := command.(type) {
	case greys.VersionCommand:
		return &versionBlock{output: o}
	case greys.SessionsCommand:
		return &sessionBlock{output: o}
	case greys.MonitorCommand:
		return &monitorBlock{output: o}
	case greys.TraceCommand:
		return &treeBlock{output: o}
	case greys.StackCommand:
		return &stackBlock{output: o}
	case greys.RecordCommand, greys.RecordsCommand:
		return &recordsBlock{output: o}
	case greys.RecordDetailCommand:
		return &detailBlock{output: o}
	case greys.ClassesCommand:
		return &classBlock{output: o}
	case greys.MethodsCommand:
		return &methodsBlock{output: o}
	case greys.ResetCommand:
		return noBlock{}
	default:
		panic(fmt.Sprintf("greys: unknown command %T", c))
	}
}

// noBlock is of a command that has no answers but notices.
type noBlock struct{ definite }

func (noBlock) line(text []byte) error { return wrong("nothing but the end of the answer", text) }
func (noBlock) open() bool             { return false }
func (noBlock) end() error             { return nil }

// definite is part of a block whose last line says that it is the last.
type definite struct{}

func (definite) mayBeComplete() bool { return false }
func (definite) pause() error        { return nil }
