// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// lines are those of the log that anybody can cause who can connect, as often as he likes, and
// those that a slow collector causes again and again.
type lines struct{ accepting, refused, turnedAway, badData, failed, stalled, goesOn, forgotten *logline.Seldom }

// mostLines is how many lines of a sort are written in each logline.Pause.
const mostLines = 10

func newLines() lines {
	seldom := func() *logline.Seldom { return &logline.Seldom{Most: mostLines} }
	return lines{seldom(), seldom(), seldom(), seldom(), seldom(), seldom(), seldom(), seldom()}
}

// warn writes a line of a sort, unless there were too many of them.
func (g *Guard) warn(of *logline.Seldom, logger *zap.Logger, text string, fields ...zap.Field) {
	since, say := of.Say(time.Now())
	if !say {
		return
	}
	if since > 1 {
		fields = append(fields, zap.Int("since_last_line", since))
	}
	logger.Warn(text, fields...)
}
