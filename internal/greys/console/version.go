// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"strings"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// versionBlock reads the server's banner with the version. The last line of text is
//
//	|v|e|r|s|i|o|n|:|1|.|7|.|6|.|6|
//
// with one part of the version in each cell, on the right side of the banner.
type versionBlock struct {
	*output
	definite
	found bool
	begun bool
}

const versionBegin = "|v|e|r|s|i|o|n|:|"

func (b *versionBlock) line(text []byte) error {
	b.begun = true
	cells, ok := bytes.CutPrefix(bytes.TrimLeft(text, " "), []byte(versionBegin))
	if !ok || b.found {
		return nil
	}
	b.found = true
	version := strings.ReplaceAll(javamethods.ValidText(cells), "|", "")
	b.reply(&javamethods.Version{Text: strings.TrimRight(version, ". ")})
	return nil
}

func (b *versionBlock) open() bool { return b.begun }

func (b *versionBlock) end() error {
	if !b.found {
		return unexpected("a drawing with the line "+versionBegin+"...", nil)
	}
	return nil
}

// versionWidth is the width of the banner. AppendVersion does not draw the picture above the version.
const versionWidth = 77

// AppendVersion adds the version, each part of it in a cell.
func AppendVersion(b []byte, v *javamethods.Version) []byte {
	cells := []string{"v", "e", "r", "s", "i", "o", "n", ":"}
	for i, part := range strings.Split(v.Text, ".") {
		if i > 0 {
			cells = append(cells, ".")
		}
		cells = append(cells, part)
	}
	drawn := string(appendTable(nil, tableStyle{columns: make([]column, len(cells)), bottom: true}, [][]string{cells}))
	for line := range strings.Lines(drawn) {
		b = append(b, strings.Repeat(" ", max(0, versionWidth-len(line)+1))...)
		b = append(b, line...)
	}
	return b
}
