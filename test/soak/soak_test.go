// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/test/kit"
)

func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("CALLBRAID_SOAK"))
	if err != nil {
		t.Skip("make soak runs it, for any time")
	}
	load, err := strconv.ParseFloat(os.Getenv("CALLBRAID_SOAK_LOAD"), 64)
	require.NoError(t, err, "CALLBRAID_SOAK_LOAD is a multiple of the usual load")

	p, d := newPlaces(t), newDisk(t)
	b, endpoint := serve(t)
	run := &soak{t: t, backend: b, disk: d, collector: kit.Start(t, configuration(p, d.folder, endpoint)), mortal: newMortal(t, endpoint, load)}
	if os.Getenv("CALLBRAID_SOAK_ATTACK") != "0" {
		run.attackers = attackers(p)
	}
	ctx, end := context.WithTimeout(t.Context(), length)
	defer end()
	run.begin(ctx, p, load, length)
	run.all.Wait()
	run.settle()
	run.report(length, load)
}
