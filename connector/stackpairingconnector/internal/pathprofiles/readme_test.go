// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pathprofiles

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheReadmeHasEachProfileAttributeAndSpecialFrame(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for _, want := range []string{
		row(textCalls, textCount), row(textErrors, textCount), row(textWall, textNanoseconds),
		fmt.Sprintf("\n| `%s` | profile | ", fixedTexts[textCallPaths]),
		fmt.Sprintf("\n| `%s` | sample | ", fixedTexts[textTruncated]),
		fmt.Sprintf("\n| `%s`, `%s` | sample | ", fixedTexts[textThreadID], fixedTexts[textThreadName]),
		fmt.Sprintf("`%s` has the sums of all calls below the %dth frame", deeperCalls, maxFrames),
		"`" + furtherPaths + "`",
	} {
		assert.Contains(t, string(readme), want)
	}
}

// row is the beginning of the row of a profile.
func row(kind, unit uint32) string {
	return fmt.Sprintf("\n| `%s` | `%s` | ", fixedTexts[kind], fixedTexts[unit])
}
