// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"regexp"
	"strings"
)

// kind is the kind of a step.
type kind string

const (
	run          kind = "run"
	terminal     kind = "terminal"
	file         kind = "file"
	shows        kind = "shows"
	showsTheLike kind = "shows the like"
	showsNothing kind = "shows nothing"
	says         kind = "says"
	saysOnlyInfo kind = "says only info"
	ends         kind = "ends"
	notRun       kind = "not run"
)

// named are the kinds that have a name, or a reason, behind a colon.
var named = map[kind]bool{
	run: false, terminal: true, file: true, shows: false, showsTheLike: false, showsNothing: false,
	says: true, saysOnlyInfo: true, ends: true, notRun: true,
}

// hasBlock reports whether a block follows.
func (k kind) hasBlock() bool { return k != showsNothing && k != saysOnlyInfo && k != ends }

// step is something that a page has its reader do, or see.
type step struct {
	kind kind
	// name is that of a terminal or a file.
	name string
	// text is the block, without its indentation.
	text string
	// line is that of the comment, counted from 1.
	line int
}

var (
	comment = regexp.MustCompile(`^\s*<!-- ([a-z ]+)(?:: (.+))? -->$`)
	fence   = regexp.MustCompile("^(\\s*)```([a-z]*)$")
)

// stepsOf are the steps of a page.
func stepsOf(text string) (all []step, err error) {
	lines := strings.Split(text, "\n")
	var next *step // the step whose block follows
	for i := 0; i < len(lines); i++ {
		if m := comment.FindStringSubmatch(lines[i]); m != nil {
			if next != nil {
				return nil, fmt.Errorf("line %d: expected a block for %q, got another comment", i+1, next.kind)
			}
			s := step{kind: kind(m[1]), name: m[2], line: i + 1}
			if withName, known := named[s.kind]; !known || withName != (s.name != "") {
				return nil, fmt.Errorf("line %d: expected a comment that is known, got %q", i+1, lines[i])
			}
			if s.kind.hasBlock() {
				next = &s
			} else {
				all = append(all, s)
			}
			continue
		}
		m := fence.FindStringSubmatch(lines[i])
		switch {
		case m == nil && next != nil && lines[i] != "":
			return nil, fmt.Errorf("line %d: expected a block for %q, got %q", i+1, next.kind, lines[i])
		case m == nil:
			continue
		case next == nil && m[2] == "sh":
			return nil, fmt.Errorf("line %d: expected a comment in front of commands, such as <!-- run -->", i+1)
		}
		begin := i + 1
		for i++; i < len(lines) && lines[i] != m[1]+"```"; i++ {
			lines[i] = strings.TrimPrefix(lines[i], m[1])
		}
		if i == len(lines) {
			return nil, fmt.Errorf("line %d: expected the end of the block", begin)
		}
		if next != nil {
			next.text = strings.Join(lines[begin:i], "\n") + "\n"
			all = append(all, *next)
			next = nil
		}
	}
	if next != nil {
		return nil, fmt.Errorf("line %d: expected a block for %q, got the end of the page", next.line, next.kind)
	}
	return all, nil
}
