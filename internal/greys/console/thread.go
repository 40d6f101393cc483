// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/callbraid/callbraid/internal/javamethods"
)

const (
	threadBegin    = `thread_name="`
	threadID       = `" thread_id=0x`
	threadDaemon   = ";is_daemon="
	threadPriority = ";priority="
)

// thread reads a thread from the text of a title:
//
//	thread_name="main" thread_id=0x1;is_daemon=false;priority=5;
//
// It ignores text behind that, such as process=1005;. The name can hold anything.
func (n *names) thread(text []byte) (t javamethods.Thread, ok bool) {
	text, ok = bytes.CutPrefix(text, []byte(threadBegin))
	id := bytes.LastIndex(text, []byte(threadID))
	if !ok || id < 0 {
		return t, false
	}
	name, text := text[:id], text[id+len(threadID):]
	idText, text, hasDaemon := bytes.Cut(text, []byte(threadDaemon))
	daemonText, text, hasPriority := bytes.Cut(text, []byte(threadPriority))
	priorityText, _, isClosed := bytes.Cut(text, []byte(";"))
	if !hasDaemon || !hasPriority || !isClosed {
		return t, false
	}
	var isBoolean bool
	t.Daemon, isBoolean = boolean(daemonText)
	priority, isNumber := integer(priorityText)
	number, err := strconv.ParseUint(string(idText), 16, 64)
	if !isBoolean || !isNumber || priority < math.MinInt32 || priority > math.MaxInt32 || err != nil {
		return t, false
	}
	t.Name, t.ID, t.Priority = n.Intern(name), int64(number), int32(priority)
	return t, true
}

// title is the title of a tree or a stack, with its thread. A thread's name can contain line breaks.
type title struct {
	text     []byte
	lines    int
	complete bool
}

// maxTitleLines is the maximum number of lines of a title.
const maxTitleLines = 16

func (t *title) reset() { *t = title{text: t.text[:0]} }

// line reads one line of the title.
func (t *title) line(text []byte, names *names, into *javamethods.Thread) error {
	if t.lines++; t.lines > 1 {
		t.text = append(t.text, '\n')
	}
	t.text = append(t.text, text...)
	*into, t.complete = names.thread(t.text)
	if !bytes.HasPrefix(t.text, []byte(threadBegin)) || t.lines >= maxTitleLines && !t.complete {
		return unexpected(`a title: thread_name="..." thread_id=0x...;is_daemon=...;priority=...;`, text)
	}
	return nil
}

func appendThread(b []byte, t *javamethods.Thread) []byte {
	return fmt.Appendf(b, "%s%s%s%x%s%t%s%d;", threadBegin, t.Name, threadID, uint64(t.ID), threadDaemon, t.Daemon, threadPriority, t.Priority)
}
