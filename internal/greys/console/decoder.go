// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// decoder turns the lines of the server's answer to one command into replies.
type decoder struct {
	output
	block
	// limit is the maximum length of an answer; begun is the offset of the open answer.
	limit, begun int64
	// memory counts the bytes of the open answer.
	memory greys.Reservation
	// affected means that the server has reported the counts of matched classes and methods.
	affected bool
	lines    int
	// first is the beginning of the first line of the connection.
	first []byte
	// failed is the reason why the server did not carry out the command; words are the server's text.
	failed error
	words  []byte
}

// readLine reads a line, without its line break, at an offset of the connection.
func (d *decoder) readLine(text []byte, offset int64) error {
	return withOffset(offset, d.decodeLine(text, offset))
}

// maxFirstLine is the maximum length of the first line in an error.
const maxFirstLine = 80

// listAnswer is the expected part for a command that first looks at all classes.
const listAnswer = "an answer"

// transferError is the error for a failed transfer while something was expected.
func (d *decoder) transferError(received int64, expected string, err error) error {
	failed := &TransferError{Offset: received, Expected: expected, Err: err}
	switch {
	case received == 0 && err == ErrTimeout && expected != listAnswer:
		failed.Err = ErrSilent
	case d.replies == 0:
		failed.FirstLine = javamethods.ValidText(d.first)
	}
	return failed
}

// withOffset adds the line's offset to an error.
func withOffset(offset int64, err error) error {
	if err == nil {
		return nil // the common case allocates nothing
	}
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		syntax.Offset = offset
	}
	return err
}

func (d *decoder) decodeLine(text []byte, offset int64) error {
	d.lines++
	if offset == 0 {
		if greys.IsHTTP(text) {
			return fmt.Errorf("%w: it begins with %q", greys.ErrHTTP, text[:min(len(text), maxFirstLine)])
		}
		d.first = append(d.first[:0], text[:min(len(text), maxFirstLine)]...)
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
		return unexpected(fmt.Sprintf("an answer of at most %d bytes", d.limit), text)
	}
	if err := d.reserve(offset + int64(len(text)) - d.begun); err != nil {
		return err
	}
	before := d.replies
	err := d.block.line(text)
	if d.replies > before {
		d.begun = offset // the next lines of the same table are another answer
	}
	return err
}

const (
	// decodedPerByte is the maximum memory for each byte of an answer until it is delivered. reserveStep is the step in
	// bytes in which the memory is reserved.
	decodedPerByte = 5
	reserveStep    = 64 << 10
)

// reserve reserves memory for an answer that has so many bytes so far.
func (d *decoder) reserve(bytes int64) error {
	return d.memory.Resize(decodedPerByte * int(bytes/reserveStep*reserveStep))
}

// finish handles the end of the answers at an offset of the connection.
func (d *decoder) finish(offset int64) error {
	if d.failed != nil {
		return fmt.Errorf("%w: %s", d.failed, javamethods.ValidText(d.words))
	}
	return withOffset(offset, d.end())
}

// endsAlone reports whether a byte 0x04 alone on a line certainly ends the answer. Lines of tables and trees never
// begin with it. A thread's name in the title of a stack can contain such a line, and so can the text of a refusal.
func (d *decoder) endsAlone() bool {
	stack, is := d.block.(*stackBlock)
	return d.failed == nil && !(is && stack.isOpen)
}

// quiet handles a pause without new bytes.
func (d *decoder) quiet(offset int64) error { return withOffset(offset, d.pause()) }

// Notices of the server beside answers.
const (
	abortNotice    = "Press Ctrl+D to abort."
	dumpNotice     = "[dump: "
	affectNotice   = "Affect"
	commandNotice  = `Command "`
	failureNotice  = "Command execution failed."
	timedOutNotice = "Session timed out."
	noFragment     = "Time fragment["
)

// notice reads a line between answers and reports whether it was a notice. Lines of tables, trees and stacks begin
// differently.
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
		d.fail(javamethods.ErrSessionTimedOut, text)
	case is(failureNotice), is(noFragment):
		d.fail(javamethods.ErrRefused, text)
	case is(commandNotice):
		d.fail(reason(text), text)
	default:
		return false
	}
	return true
}

// reason returns the reason for a refusal, by the server's line.
func reason(text []byte) error {
	if bytes.HasSuffix(text, []byte(" not found.")) || bytes.Contains(text, []byte("is not a recognized option")) {
		return javamethods.ErrUnsupported
	}
	return javamethods.ErrRefused
}

func (d *decoder) fail(why error, text []byte) {
	d.failed, d.words = why, d.words[:0]
	d.addWords(text)
}

// maxWords is the maximum stored length of a refusal, which can have many lines.
const maxWords = 1 << 10

func (d *decoder) addWords(text []byte) {
	text = bytes.TrimSpace(text)
	if len(d.words) > 0 && len(text) > 0 {
		d.words = append(d.words, ' ')
	}
	d.words = append(d.words, text[:min(len(text), max(0, maxWords-len(d.words)))]...)
	d.words = d.words[:min(len(d.words), maxWords)]
}

// affects reads the counts of matched classes and methods:
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
	var affected javamethods.Affected
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
