// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// refusedLines is the number of log lines of refused commands in each logline.Pause.
const refusedLines = 5

// refused are the reasons for which the extension refuses commands without sending them. A client
// can send any number of such commands.
var refused = []agentcontrol.Reason{agentcontrol.UnknownCommand, agentcontrol.BadArgument, agentcontrol.NotAllowed, agentcontrol.Busy, agentcontrol.NotNow}

// refusals are lines of commands that were refused, by their reasons.
type refusals map[agentcontrol.Reason]*logline.Seldom

func newRefusals() refusals {
	all := refusals{}
	for _, reason := range refused {
		all[reason] = &logline.Seldom{Most: refusedLines}
	}
	return all
}

// log writes a line of a command. If many lines have one message, the Collector drops most of them.
// So each command has messages of its own, as many as agents have commands, and lines of refused
// commands are limited.
func (x *agentControl) log(r agentcontrol.Record, disruptive bool) {
	message := "A command for an agent was refused: " + r.Outcome()
	level := zapcore.InfoLevel
	counted := zap.Skip()
	if seldom := x.refusals[agentcontrol.Reason(r.Outcome())]; seldom != nil {
		since, due := seldom.Count(time.Now())
		if !due {
			return
		}
		counted = zap.Int("since_last_line", since)
	} else {
		message = "A command was sent to an agent: " + r.Order.Command + ": " + r.Outcome()
		if disruptive {
			level = zapcore.WarnLevel
		}
	}
	x.logger.Log(level, message, zap.String("command", r.Order.Command), zap.String("arguments", r.Written),
		zap.String("agent", r.Agent), zap.String("by", r.Order.By), zap.String("result", r.Outcome()), zap.Duration("took", r.Took),
		counted, zap.Error(r.Err))
}
