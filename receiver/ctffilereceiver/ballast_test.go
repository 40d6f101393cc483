// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

func TestOnlyALargeMemoryBudgetHasABallast(t *testing.T) {
	assert.Len(t, newBallast(budget.New(ballastPart*ballastBytes).Group("files")), ballastBytes)
	assert.Nil(t, newBallast(budget.New(ballastPart*ballastBytes-1).Group("files")))
}
