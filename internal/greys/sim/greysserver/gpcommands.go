// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"errors"
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// runCommand runs the command of a request until it ends.
func (c *gpConn) runCommand(sendID int32, command javamethods.Command) {
	w := gp.Writer{Style: c.options.Style, Location: c.options.Location}
	var err error
	switch command := command.(type) {
	case javamethods.MonitorCommand:
		err = c.monitor(sendID, command, w)
	case javamethods.StackCommand:
		err = c.stack(sendID, command, w)
	default:
		var data []byte
		if data, err = c.answer(command, w); err == nil {
			c.reply(sendID, gp.Done, data)
		}
	}
	if err != nil {
		c.fail(sendID, err)
	}
}

// answer returns the data of a command with one reply.
func (c *gpConn) answer(command javamethods.Command, w gp.Writer) ([]byte, error) {
	switch command := command.(type) {
	case javamethods.VersionCommand:
		return w.Append(nil, &javamethods.Version{Text: c.options.Version})
	case javamethods.SessionsCommand:
		return w.Append(nil, c.sessionsOf(c.life))
	case javamethods.ResetCommand:
		rows, err := c.life.resetAll(command)
		return w.AppendReset(nil, rows), err
	case javamethods.ClassesCommand:
		classes, err := c.life.classes(command)
		return w.AppendClasses(nil, classes), err
	case javamethods.MethodsCommand:
		methods, err := c.life.methods(command)
		return w.AppendMethods(nil, methods), err
	case javamethods.RecordsCommand:
		return w.AppendRecords(nil, recordsOf(c.life.recorded(-1))), nil
	case javamethods.RecordDetailCommand:
		detail, err := c.life.detail(command.Index)
		if err != nil {
			return nil, err
		}
		return w.Append(nil, detail)
	default:
		return nil, errors.ErrUnsupported // ParseCommand returns no other command
	}
}

// monitor sends the statistics of each cycle, without end. It sends the first one immediately, without methods.
func (c *gpConn) monitor(sendID int32, command javamethods.MonitorCommand, writer gp.Writer) error {
	w := &watch{cycle: newCycle()}
	if err := c.life.watch(command.Target, w); err != nil {
		return err
	}
	defer c.life.unwatch(w)
	ticker := time.NewTicker(c.options.cycle(command.Cycle))
	defer ticker.Stop()
	for cycle := (cycleOf{}); ; {
		switch c.reply(sendID, gp.Continued, writer.AppendMonitor(nil, &w.affected, &cycle.Statistics)) {
		case ended:
			return nil
		case sent:
			c.life.countCycle(cycle)
		}
		select {
		case <-c.over.Done():
			return nil
		case at := <-ticker.C:
			cycle = c.life.takeCycle(w, at)
		}
	}
}

// cycle returns the real duration of a cycle.
func (o Options) cycle(of time.Duration) time.Duration {
	return max(time.Millisecond, time.Duration(float64(of)/o.Speed))
}

// stack reports stacks of calls until the limit.
func (c *gpConn) stack(sendID int32, command javamethods.StackCommand, writer gp.Writer) error {
	w := newEvents(command.Limit)
	if err := c.life.watch(command.Target, w); err != nil {
		return err
	}
	defer c.life.unwatch(w)
	for {
		select {
		case <-c.over.Done():
			return nil
		case e, more := <-w.events:
			if !more {
				c.reply(sendID, gp.Done, []byte("{}"))
				return nil
			}
			data, err := writer.Append(nil, c.life.stackOf(e))
			if err != nil {
				return err
			}
			switch c.reply(sendID, gp.Continued, data) {
			case ended:
				return nil
			case sent:
				c.life.update(func(t *Truth) { t.Stacks++ })
			}
		}
	}
}

func recordsOf(records []record) (of []javamethods.Record) {
	for _, r := range records {
		of = append(of, r.Record)
	}
	return of
}

// noRecord is the server's error for an unknown index.
type noRecord int64

func (n noRecord) Error() string { return fmt.Sprintf("Time fragment[%d] does not exist.", int64(n)) }

// detail returns the details of a recorded call.
func (l *life) detail(index int64) (*javamethods.RecordDetail, error) {
	records := l.recorded(index)
	if index < 0 || len(records) == 0 {
		return nil, noRecord(index)
	}
	r := records[0]
	d := &javamethods.RecordDetail{Record: r.Record, Parameters: []string{`{"sku":"A-17","count":2}`, "null"}}
	if r.throws != "" {
		d.Exception = fmt.Sprintf(`{"detailMessage":%q,"stackTrace":[],"suppressedExceptions":[]}`, r.throws)
	} else {
		d.Return = `{"total":17.5}`
	}
	return d, nil
}
