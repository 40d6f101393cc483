// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

func TestReadersShareABallastUntilTheLastOneEnds(t *testing.T) {
	memory := budget.New(ballastPart * ballastBytes).Group("files")
	b := new(ballast)
	first := b.hold(memory)
	bytes := &b.bytes[0]
	second := b.hold(memory)
	assert.Same(t, bytes, &b.bytes[0])
	first()
	assert.NotNil(t, b.bytes)
	second()
	assert.Nil(t, b.bytes)
}

func TestOnlyALargeMemoryBudgetHasABallast(t *testing.T) {
	assert.Len(t, newBallast(budget.New(ballastPart*ballastBytes).Group("files")), ballastBytes)
	assert.Nil(t, newBallast(budget.New(ballastPart*ballastBytes-1).Group("files")))
}
