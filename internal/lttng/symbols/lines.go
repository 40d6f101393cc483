// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"errors"

	"github.com/callbraid/callbraid/internal/lttng/symbols/dwarfline"
)

// Reasons for a function with a name and without a source line.
const (
	// NoDebugInfo: no file of the object has debug information.
	NoDebugInfo = "no_debug_info"
	// Unreadable: a part of the debug information is damaged, or beyond Settings.MaxLineBytes.
	Unreadable = "unreadable"
	// NoRow: the debug information has no line for the function.
	NoRow = "no_line"
	// Ambiguous: the linker folded identical functions, and the debug information has a line for each.
	Ambiguous = "ambiguous"
)

// ErrNoDebugInfo means that a file has no section .debug_line.
var ErrNoDebugInfo = errors.New("expected debug information with line tables (.debug_line), got none")

// sourceLines are the source lines of a table's functions.
type sourceLines struct {
	dwarfline.Places
	// err is the reason why some are missing. Both are empty if Settings.SourceLines is not set.
	err   error
	bytes int64
}

// at returns the place of a function, or the reason why it has none.
func (l *sourceLines) at(i int) (file string, line uint32, reason string) {
	switch {
	case i < len(l.Of) && l.Of[i].Line > 0:
		p := l.Of[i]
		return l.Files[p.File-1], p.Line, ""
	case i < len(l.Of) && l.Of[i].IsAmbiguous():
		return "", 0, Ambiguous
	case errors.Is(l.err, ErrNoDebugInfo):
		return "", 0, NoDebugInfo
	case l.err != nil:
		return "", 0, Unreadable
	case l.Of != nil:
		return "", 0, NoRow
	}
	return "", 0, ""
}
