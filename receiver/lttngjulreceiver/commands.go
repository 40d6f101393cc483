// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// result is what became of a command.
type result uint8

const (
	resultSuccess result = iota
	resultInvalid
	resultUnknownName
	resultOtherCode
	// resultUnsupported: the agent doesn't have the command, and wasn't told.
	resultUnsupported
	// resultNoAnswer: the agent was told, and nothing that could be read came back.
	resultNoAnswer
	// resultTooLarge: the agent has more loggers than the limits allow.
	resultTooLarge
	resultCount
)

func resultOf(code lttngagent.Code) result {
	switch code {
	case lttngagent.Success:
		return resultSuccess
	case lttngagent.Invalid:
		return resultInvalid
	case lttngagent.UnknownName:
		return resultUnknownName
	default:
		return resultOtherCode
	}
}

// carryOut tells the agent a command and sees what becomes of it. The error is that of
// a connection that can be used no more.
func (a *agent) carryOut(command lttngagent.Command) error {
	switch command.(type) {
	case lttngagent.List:
		return a.list()
	case lttngagent.RegistrationDone:
		err := a.registrationDone()
		// Nobody waits for the agent any more.
		a.introduce()
		// It cannot be found out any more once the agent has closed its connection.
		a.lookUp(a.env.stopping)
		a.show()
		return err
	}
	code, err := a.conversation.order(command, a.env.config.CommandTimeout)
	if failed := a.outcome(command, code, err); failed != nil {
		if undo := undoOf(command); undo != nil && a.conversation.told {
			// It may have been done.
			a.undo = append(a.undo, undo)
		}
		return failed
	}
	a.note(command, err == nil && code == lttngagent.Success)
	a.pace.changed()
	return nil
}

// registrationDone lets the application go on.
func (a *agent) registrationDone() error {
	command := lttngagent.RegistrationDone{}
	a.released = true
	return a.outcome(command, lttngagent.Success, a.conversation.tell(command, a.env.config.CommandTimeout))
}

// list asks for the agent's loggers.
func (a *agent) list() error {
	reply, err := a.conversation.list(a.env.config.Limits.ofList(), a.env.config.CommandTimeout)
	var large *lttngagent.TooLargeError
	if errors.As(err, &large) {
		return a.keepUnlisted(large)
	}
	if err = a.outcome(lttngagent.List{}, reply.Code, err); err != nil {
		return err
	}
	return a.take(reply)
}

// keepUnlisted goes on with an agent that has more loggers than are listed. It is not
// closed: it would come back in seconds, as large as before. What was listed last stays.
func (a *agent) keepUnlisted(large *lttngagent.TooLargeError) error {
	a.env.counts.command(a.who.Domain, lttngagent.CommandList, resultTooLarge)
	a.env.telemetry.command(lttngagent.CommandList, resultTooLarge)
	a.last = answer{result: resultTooLarge, err: large}
	if since, say := a.env.lines.unlisted.Say(a.env.now()); say {
		a.env.logger.Warn("The loggers of an LTTng agent are not listed: there are more than limits.max_loggers or limits.max_list_bytes",
			a.fields(zap.Error(large), zap.Int("since_last_line", since))...)
	}
	a.pace.listed(time.Now(), false)
	return a.conversation.purse.settle(a.inventory.bytes)
}

// take takes the loggers of a list.
func (a *agent) take(reply lttngagent.ListReply) error {
	var appeared, disappeared []string
	if reply.Code == lttngagent.Success {
		appeared, disappeared = a.inventory.replace(reply.Loggers)
	}
	if err := a.conversation.purse.settle(a.inventory.bytes); err != nil {
		return err
	}
	a.loggers.Store(int64(len(a.inventory.names)))
	if len(appeared)+len(disappeared) > 0 {
		a.sayLoggers(appeared, disappeared)
	}
	a.pace.listed(time.Now(), len(appeared)+len(disappeared) > 0)
	return nil
}

// outcome counts what became of a command, and says it where the agent refused. The error
// is that of a connection that can be used no more.
func (a *agent) outcome(command lttngagent.Command, code lttngagent.Code, err error) error {
	result := resultOf(code)
	var unsupported *lttngagent.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		result = resultUnsupported
	case err != nil:
		result = resultNoAnswer
	}
	a.env.counts.command(a.who.Domain, command.Type(), result)
	a.env.telemetry.command(command.Type(), result)
	a.last = answer{result: result, code: code, err: err}
	if result != resultNoAnswer {
		a.heard.Store(a.env.now().UnixNano())
	}
	switch result {
	case resultSuccess:
		return nil
	case resultNoAnswer:
		return err
	case resultUnsupported:
		a.sayRefused(command, result, err.Error(), code)
	default:
		a.sayRefused(command, result, code.String(), code)
	}
	return nil
}

// note remembers what takes back a command that succeeded, or that it was taken back.
func (a *agent) note(command lttngagent.Command, succeeded bool) {
	if !succeeded {
		return
	}
	if undo := undoOf(command); undo != nil {
		a.undo = append(a.undo, undo)
		return
	}
	for i := len(a.undo) - 1; i >= 0; i-- {
		if a.undo[i] == command {
			a.undo = slices.Delete(a.undo, i, i+1)
			return
		}
	}
}

// undoOf is what takes back a command; nil: nothing has to.
func undoOf(command lttngagent.Command) lttngagent.Command {
	switch c := command.(type) {
	case lttngagent.Enable:
		return lttngagent.Disable{Logger: c.Logger}
	case lttngagent.EnableContext:
		return lttngagent.DisableContext(c)
	default:
		return nil
	}
}

// ofList is what the reply to a list may have.
func (c *LimitsConfig) ofList() lttngagent.Limits {
	return lttngagent.Limits{Names: c.MaxLoggers, NameBytes: c.MaxListBytes}
}
