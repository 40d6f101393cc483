// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"math"
	"time"
)

// The results of commands about the JVM.

func (r *reader) memory() *Memory {
	var m Memory
	for key := range r.object("memory") {
		if string(key) == "memoryInfo" {
			m.Pools = r.pools()
		} else {
			r.common(key)
		}
	}
	return &m
}

// pools reads the pools of all kinds.
func (r *reader) pools() (pools []MemoryPool) {
	for key := range r.object("kinds of memory") {
		kind := r.names.Intern(key)
		for range r.array("a list of pools") {
			pools = append(pools, r.pool(kind))
		}
	}
	return pools
}

func (r *reader) pool(kind string) MemoryPool {
	p := MemoryPool{Kind: kind}
	for key := range r.object("a pool of memory") {
		switch string(key) {
		case "name":
			p.Name = r.name("the name of a pool")
		case "used":
			p.Used = r.count("a number of bytes")
		case "total":
			p.Committed = r.count("a number of bytes")
		case "max":
			p.Max = r.integer("a number of bytes")
			p.HasMax = p.Max >= 0
		case "type":
			r.skip()
		default:
			r.ignore()
		}
	}
	if !p.HasMax {
		p.Max = 0
	}
	return p
}

func (r *reader) dashboard() *Dashboard {
	var d Dashboard
	for key := range r.object("a dashboard") {
		switch string(key) {
		case "threads":
			d.Threads = r.threadStates(d.Threads)
		case "memoryInfo":
			d.Pools = r.pools()
		case "gcInfos":
			for range r.array("a list of collectors") {
				d.Collectors = append(d.Collectors, r.collector())
			}
		case "runtimeInfo":
			d.Runtime = r.runtime()
		case "tomcatInfo":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &d
}

func (r *reader) collector() (c GarbageCollector) {
	for key := range r.object("a collector") {
		switch string(key) {
		case "name":
			c.Name = r.name("the name of a collector")
		case "collectionCount":
			c.Collections = max(0, r.integer("a number of collections"))
		case "collectionTime":
			c.Time = r.wholeMillis("a duration in milliseconds").Duration
		default:
			r.ignore()
		}
	}
	return c
}

func (r *reader) runtime() (run Runtime) {
	for key := range r.object("a runtime") {
		switch string(key) {
		case "osName":
			run.OSName = r.name("the name of an operating system")
		case "osVersion":
			run.OSVersion = r.name("the version of an operating system")
		case "javaVersion":
			run.JavaVersion = r.name("a version")
		case "javaHome":
			run.JavaHome = r.name("a folder")
		case "processors":
			run.Processors = r.count("a number of processors")
		case "systemLoadAverage":
			load, is := r.decimal("a load")
			if run.HasLoadAverage = is && load >= 0; run.HasLoadAverage {
				run.LoadAverage = load
			}
		case "uptime":
			run.Uptime = r.wholeSeconds("a duration in seconds")
		case "timestamp":
			run.Time = r.milliseconds("an instant in milliseconds")
		default:
			r.ignore()
		}
	}
	return run
}

func (r *reader) wholeSeconds(expected string) time.Duration {
	r.next()
	begin := r.at
	seconds := r.count(expected)
	if seconds > math.MaxInt64/int64(time.Second) {
		r.fail(begin, expected, r.excerpt(begin))
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func (r *reader) threads() *Threads {
	var t Threads
	for key := range r.object("threads") {
		switch string(key) {
		case "threadStats", "busyThreads":
			t.Threads = r.threadStates(t.Threads)
		case "threadStateCount":
			t.States = make(map[string]int64)
			for state := range r.object("numbers of threads") {
				t.States[r.names.Intern(state)] = r.count("a number of threads")
			}
		case "threadInfo", "blockingLockInfo", "all":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &t
}

func (r *reader) threadStates(states []ThreadState) []ThreadState {
	for range r.array("a list of threads") {
		states = append(states, r.threadState())
	}
	return states
}

func (r *reader) threadState() (t ThreadState) {
	for key := range r.object("a thread") {
		switch string(key) {
		case "id":
			t.ID = r.integer("the ID of a thread")
		case "name":
			t.Name = r.name("the name of a thread")
		case "group":
			t.Group = r.name("the group of a thread")
		case "state":
			t.State = r.name("the state of a thread")
		case "daemon":
			t.Daemon = r.boolean("true or false")
		case "priority":
			t.Priority = r.small("a priority")
		case "cpu":
			cpu, _ := r.decimal("a number of percent")
			t.CPU = max(0, cpu)
		case "time":
			t.CPUTime = r.wholeMillis("a duration in milliseconds")
		case "stackTrace":
			t.Frames = r.frames()
		default:
			// A busy thread has a dozen more fields, which no one asks for.
			r.skip()
		}
	}
	return t
}

func (r *reader) jvm() *JVM {
	var j JVM
	for key := range r.object("a JVM") {
		if string(key) != "jvmInfo" {
			r.common(key)
			continue
		}
		for key := range r.object("groups of properties") {
			group := r.names.Intern(key)
			for range r.array("a list of properties") {
				j.Properties = append(j.Properties, r.property(group))
			}
		}
	}
	return &j
}

func (r *reader) property(group string) Property {
	p := Property{Group: group}
	for key := range r.object("a property") {
		switch string(key) {
		case "name":
			p.Name = r.name("the name of a property")
		case "desc":
			p.Description = r.name("a description")
		case "value":
			p.JSON = r.raw()
		default:
			r.ignore()
		}
	}
	return p
}

func (r *reader) profiler() *Profiler {
	var p Profiler
	for key := range r.object("an answer of the profiler") {
		switch string(key) {
		case "action":
			p.Action = r.name("an action")
		case "executeResult":
			p.Text = r.wholeText("an answer")
		case "outputFile":
			p.File = r.text("the name of a file")
		case "format":
			p.Format = r.name("a format")
		case "actionArg", "supportedActions", "duration":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &p
}
