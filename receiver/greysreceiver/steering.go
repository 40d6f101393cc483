// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// Names of commands that are none of the server's, and of arguments.
const (
	orderList  = "list"
	orderEnd   = "end"
	orderReset = "reset"

	argumentClass  = "class"
	argumentMethod = "method"
	argumentRegexp = "regexp"
	argumentCycle  = "cycle"
	argumentLimit  = "limit"
	argumentTask   = "task"
)

// startable are what somebody can have started, by the names of the commands.
var startable = map[string]askKind{
	askMonitor.String(): askMonitor, askTrace.String(): askTrace, askStack.String(): askStack, askRecords.String(): askRecords,
}

// What may hold the program up is in the arguments. Classes are changed while the program
// stands still, all that match at once; a regular expression is tried on the names of all that are
// loaded, and one that backtracks doesn't end, as wildcards do, of which the server tries each with
// all that is left; what is recorded stays in the program's memory, with all that it leads to,
// until there is none left.
var (
	allClasses = &agentcontrol.Condition{Text: "it has no letter or digit, or " + tooMany, Holds: func(class string) bool {
		return manyWildcards.Holds(class) ||
			!strings.ContainsFunc(class, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	}}
	manyWildcards = &agentcontrol.Condition{Text: "it has " + tooMany, Holds: func(pattern string) bool {
		between := strings.FieldsFunc("-"+pattern+"-", func(r rune) bool { return r == '*' })
		return len(between)-1 > fewWildcards
	}}
	tooMany     = fmt.Sprintf("more than %d asterisks that are apart", fewWildcards)
	expressions = &agentcontrol.Condition{Text: "it is true", Holds: func(regexp string) bool { return regexp == "true" }}
	manyRecords = &agentcontrol.Condition{Text: fmt.Sprintf("it is %d, or above %d", unlimited, fewRecords), Holds: func(limit string) bool {
		n, err := strconv.ParseInt(limit, 10, 64)
		return err != nil || n < 0 || n > fewRecords
	}}
)

// fewWildcards is how many runs of asterisks are tried in a moment, on whatever names: with 5 it
// took 68 million steps for a name of 61 characters, with 3 fewer than a million.
const fewWildcards = 3

// fewRecords is how many calls may be recorded at once without the program's memory being at
// stake, as far as that can be said of a number.
const fewRecords = 1000

// steering are the commands that servers can be told: what no pipeline takes can't be started.
func (e *environment) steering() (all []agentcontrol.Command) {
	target := []agentcontrol.Parameter{
		{Name: argumentClass, Summary: "Qualified names of classes: * is any text, ? a character.", Kind: agentcontrol.Text, Required: true, MaxBytes: greys.MaxPatternBytes, DisruptiveIf: allClasses},
		{Name: argumentMethod, Summary: "Names of methods, in the same way.", Kind: agentcontrol.Text, Required: true, MaxBytes: greys.MaxPatternBytes, DisruptiveIf: manyWildcards},
		{Name: argumentRegexp, Summary: "Both are Java's regular expressions.", Kind: agentcontrol.Boolean, DisruptiveIf: expressions},
	}
	add := func(kind askKind, summary string, more agentcontrol.Parameter) {
		if e.wants(kind) {
			all = append(all, agentcontrol.Command{Name: kind.String(), Summary: summary, Parameters: append(target[:3:3], more)})
		}
	}
	limit := agentcontrol.Parameter{Name: argumentLimit, Summary: "After how many it ends, 100 if it is not said; -1: no limit.", Kind: agentcontrol.Integer, Least: unlimited, Most: math.MaxInt32}
	add(askMonitor, "Count the calls of methods, until end or the end of the collector.", agentcontrol.Parameter{
		Name: argumentCycle, Summary: "How many seconds are counted together, 10 if it is not said.", Kind: agentcontrol.Integer, Least: 1, Most: int64(maxCycle / time.Second),
	})
	add(askTrace, "Tell of calls of methods with what they call. GP has none.", limit)
	add(askStack, "Tell from where methods are called.", limit)
	limit.DisruptiveIf = manyRecords
	add(askRecords, "Have calls recorded, with parameters and results in the program's memory. By GP: take those that are recorded, by whomever, and were in no list before.", limit)
	return append(all,
		agentcontrol.Command{Name: orderList, Summary: "What was started, or is configured, and how it goes."},
		agentcontrol.Command{Name: orderEnd, Summary: "End what was started, or is configured, until it is started again.", Parameters: []agentcontrol.Parameter{
			{Name: argumentTask, Summary: "Its number in the list.", Kind: agentcontrol.Integer, Required: true, Least: 1, Most: math.MaxInt32},
		}},
		agentcontrol.Command{Name: orderReset, Summary: "Take out of classes what commands have put there, whoever asked for them. Commands of the receiver are ended for it, and asked again.", Parameters: []agentcontrol.Parameter{
			{Name: argumentClass, Summary: "Of which classes by GP, all if it is not said. A console resets all.", Kind: agentcontrol.Text, MaxBytes: greys.MaxPatternBytes, DisruptiveIf: manyWildcards},
			{Name: argumentRegexp, Summary: "It is one of Java's regular expressions.", Kind: agentcontrol.Boolean, DisruptiveIf: expressions},
		}},
	)
}

// steered is a server as the extension agent_control has it: one that is configured,
// whatever process is there.
type steered struct {
	*server
	id       string
	commands []agentcontrol.Command
	// following ends with the receiver's shutdown.
	following context.Context
}

// ID is always the same of a server of a receiver.
func (s *steered) ID() string { return s.id }

// steer shows the servers, until the receiver is shut down.
func (r *greysReceiver) steer(following context.Context, agents agentcontrol.Directories) {
	if len(agents) == 0 {
		return
	}
	commands := r.env.steering()
	for _, s := range r.servers {
		s.orders = make(chan *order)
		r.unsteer = append(r.unsteer, agents.Register(&steered{
			server: s, id: agentcontrol.NewID(r.env.id, s.config.Endpoint), commands: commands, following: following,
		}))
	}
}

// Snapshot is what is known of the server and its process.
func (s *steered) Snapshot() agentcontrol.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := agentcontrol.Snapshot{
		Tracer: metadata.Type.String(), Receiver: s.env.id, Address: s.config.Endpoint,
		Service: agentcontrol.TextOf(s.origin().resource.Attributes(), attributeServiceName),
		State:   s.phase.String(), Commands: s.commands,
	}
	p := s.process
	if p == nil {
		return now
	}
	now.Process.PID = uint64(s.who.pid)
	now.Since = p.origin.begun
	p.mu.Lock()
	defer p.mu.Unlock()
	now.LastSeen = p.heard
	now.Counters = []agentcontrol.Counter{
		{Name: "commands running", Unit: "{command}", Value: s.running.Load()},
		{Name: "replies", Unit: "{reply}", Value: p.replies},
		{Name: "bad replies", Unit: "{reply}", Value: p.bad},
		{Name: "missing replies", Unit: "{reply}", Value: p.missing},
		{Name: "reconnects", Unit: "{connection}", Value: p.reconnects},
	}
	return now
}

// origin is that of the process, or of what is configured of one that was never reached. The
// lock is held.
func (s *steered) origin() *origin {
	if s.process != nil {
		return s.process.origin
	}
	return newOrigin(s.env, s.config, identity{}, s.env.now())
}

// Told hands on a log record of an order.
func (s *steered) Told(r agentcontrol.Record) {
	s.mu.Lock()
	of := s.origin()
	s.mu.Unlock()
	s.env.say(of, agentcontrol.EventName, r.Body(), r.Severity(), func(m pcommon.Map) {
		for _, a := range r.Attributes() {
			m.PutStr(a.Key, a.Value)
		}
	})
}

// Do has the server do something: whoever follows it does.
func (s *steered) Do(ctx context.Context, wanted agentcontrol.Order) (agentcontrol.Answer, error) {
	o, err := newOrder(ctx, wanted)
	if err != nil {
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.BadArgument, "%w", err)
	}
	switch {
	case s.following.Err() != nil:
		return agentcontrol.Answer{}, errNotToldAnyMore
	case ctx.Err() != nil:
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.NoAnswer, "nobody waits for the server any more; it was not told: %w", context.Cause(ctx))
	}
	select {
	case s.orders <- o:
	case <-s.following.Done():
		return agentcontrol.Answer{}, errNotToldAnyMore
	case <-ctx.Done():
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.NoAnswer, "the server is being connected to, or asked for something else; it was not told: %w", context.Cause(ctx))
	}
	select {
	case now := <-o.outcome:
		// What a shutdown cuts short is not asked again.
		if agentcontrol.ReasonOf(now.err) == agentcontrol.NoAnswer && s.following.Err() != nil {
			return agentcontrol.Answer{}, errNotToldAnyMore
		}
		return now.answer, now.err
	case <-s.following.Done():
		return agentcontrol.Answer{}, errNotToldAnyMore
	case <-ctx.Done():
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.NoAnswer, "the server was told, or will be; it has not said what came of it: %w", context.Cause(ctx))
	}
}

var errNotToldAnyMore = agentcontrol.Errorf(agentcontrol.Lost, "the server is being left: %w", errShutdown)
