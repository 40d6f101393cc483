// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/test/kit"
)

// TestAttack attacks the built distribution. CALLBRAID_ATTACK=full runs all attacks.
// CALLBRAID_ATTACK_ONLY is a regular expression of their names.
func TestAttack(t *testing.T) {
	kit.Binary(t)
	f := form{full: os.Getenv("CALLBRAID_ATTACK") == "full"}
	only, err := regexp.Compile(os.Getenv("CALLBRAID_ATTACK_ONLY"))
	require.NoError(t, err, "CALLBRAID_ATTACK_ONLY is a regular expression")
	var table strings.Builder
	table.WriteString(heading)
	began := time.Now()
	// The short form waits most of the time. So three attacks run at the same time, if their bounds hold beside others.
	together := make(chan struct{}, 3)
	for _, s := range scenarios() {
		if s.onlyFull && !f.full || !only.MatchString(s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			if !f.full && !s.alone {
				t.Parallel()
				together <- struct{}{}
				defer func() { <-together }()
			}
			r := measure(t, s, f)
			if f.full {
				table.WriteString(r.String())
			}
			fmt.Print(r)
			for _, broken := range r.broken() {
				t.Errorf("%s: %s", s.name, broken)
			}
		})
	}
	if f.full {
		fmt.Printf("\n%v:\n\n%s\n", time.Since(began).Round(time.Second), &table)
	}
}
