// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"fmt"
	"strings"
	"time"
)

// at is a time as the server writes it: local and without a zone, or an instant before version 4.
func (srv *Server) at(t time.Time) any {
	if srv.settings.Instants {
		return t.UnixMilli()
	}
	return t.In(srv.settings.Zone).Format("2006-01-02 15:04:05.000000000")
}

// threadFields are the fields that describe the thread of a call.
func (srv *Server) threadFields(c Call) result {
	return result{
		"threadName": c.Thread, "threadId": c.ThreadID, "daemon": false, "priority": 5,
		"classloader": "jdk.internal.loader.ClassLoaders$AppClassLoader@30946e09",
	}
}

// trace is the result of one traced call.
func (srv *Server) trace(c Call, cost time.Duration, at time.Time, of target) result {
	root := srv.threadFields(c)
	body, nodes := c, 0
	body.Cost = cost
	node := of.body([]Call{body}, &nodes)
	root["type"], root["timestamp"], root["children"] = "thread", srv.at(at), []any{node}
	return result{"type": "trace", "nodeCount": nodes, "root": root}
}

// body is the node of the body of equal calls, with their callees. A callee that is traced too has its body below its
// call site.
func (t target) body(calls []Call, nodes *int) result {
	node := methodNode(calls, false)
	*nodes++
	if children := t.callees(calls, nodes); len(children) > 0 {
		node["children"] = children
	}
	return node
}

// callees merges equal callees of one line, and adds the exceptions that the calls throw.
func (t target) callees(callers []Call, nodes *int) (children []any) {
	type site struct {
		class, method string
		line          int
	}
	var order []site
	calls := map[site][]Call{}
	for _, c := range callers {
		for _, child := range c.Children {
			at := site{child.Class, child.Method, child.Line}
			if calls[at] == nil {
				order = append(order, at)
			}
			calls[at] = append(calls[at], child)
		}
	}
	for _, at := range order {
		node := methodNode(calls[at], true)
		*nodes++
		if t.matches(calls[at][0]) {
			node["children"] = []any{t.body(calls[at], nodes)}
		}
		children = append(children, node)
	}
	for _, c := range callers {
		if c.Throws != "" {
			children = append(children, result{"type": "throw", "exception": c.Throws, "message": c.Message, "lineNumber": 7})
		}
	}
	return children
}

// methodNode is the node of equal calls.
func methodNode(calls []Call, callSite bool) result {
	last := calls[len(calls)-1]
	shortest, longest, total := last.Cost, last.Cost, time.Duration(0)
	for _, c := range calls {
		shortest, longest, total = min(shortest, c.Cost), max(longest, c.Cost), total+c.Cost
	}
	node := result{
		"type": "method", "className": last.Class, "methodName": last.Method, "lineNumber": last.Line, "invoking": callSite, "times": len(calls),
		"cost": last.Cost.Nanoseconds(), "minCost": shortest.Nanoseconds(), "maxCost": longest.Nanoseconds(), "totalCost": total.Nanoseconds(),
	}
	if !callSite {
		node["lineNumber"] = -1
	}
	if last.Throws != "" {
		node["throw"], node["mark"] = true, "throws Exception"
	}
	return node
}

// stackTrace is the stack of a call: the method, its callers, the nearest first, and Java's own.
func stackTrace(c Call, callers []Call) (frames []any) {
	for _, of := range append([]Call{c}, callers...) {
		file := of.Class[strings.LastIndexByte(of.Class, '.')+1:] + ".java"
		frames = append(frames, result{"fileName": file, "lineNumber": of.Line, "className": of.Class, "methodName": of.Method})
	}
	return append(frames, result{"lineNumber": 840, "className": "java.lang.Thread", "methodName": "run"})
}

// noMaximum is the maximum of a pool without one.
const noMaximum int64 = -1 << 63

func memoryInfo() result {
	pool := func(kind, name string, used, total int, most int64) result {
		return result{"type": kind, "name": name, "used": used, "total": total, "max": most}
	}
	return result{
		"heap":        []any{pool("heap", "heap", 28032368, 41943040, 268435456), pool("heap", "g1_eden_space", 14680064, 18874368, -1), pool("heap", "g1_old_gen", 13352304, 23068672, 268435456)},
		"nonheap":     []any{pool("nonheap", "nonheap", 49000000, 52887552, -1)},
		"buffer_pool": []any{pool("buffer_pool", "direct", 33562632, 33562631, noMaximum)},
	}
}

func threadStats() []any {
	thread := func(id int, name string, cpu float64) result {
		return result{"id": id, "name": name, "group": "main", "state": "RUNNABLE", "daemon": false, "interrupted": false, "priority": 5, "cpu": cpu, "deltaTime": 1, "time": 529}
	}
	return []any{thread(12, "worker-1", 12.5), thread(13, "worker-2", 0.1)}
}

func (srv *Server) dashboard() result {
	now := srv.settings.now()
	return result{
		"type": "dashboard", "threads": threadStats(), "memoryInfo": memoryInfo(),
		"gcInfos": []any{result{"name": "g1_young_generation", "collectionCount": 8, "collectionTime": 107}},
		"runtimeInfo": result{
			"javaHome": "/usr/lib/jvm/java-17-openjdk-amd64", "javaVersion": "17.0.15", "osName": "Linux", "osVersion": "6.1", "processors": 2,
			"systemLoadAverage": 0.5, "timestamp": now.UnixMilli(), "uptime": int64(now.Sub(srv.program.begun).Seconds()),
		},
	}
}

// makeAnswers returns the commands that have always the same result.
func (srv *Server) makeAnswers() map[string]func() result {
	return map[string]func() result{
		"memory": func() result { return result{"type": "memory", "memoryInfo": memoryInfo()} },
		"thread": func() result {
			return result{
				"type": "thread", "all": true, "threadStats": threadStats(),
				"threadStateCount": result{"NEW": 0, "RUNNABLE": 2, "BLOCKED": 0, "WAITING": 0, "TIMED_WAITING": 0, "TERMINATED": 0},
			}
		},
		"jvm": func() result {
			return result{"type": "jvm", "jvmInfo": result{
				"RUNTIME": []any{
					result{"name": "MACHINE-NAME", "value": fmt.Sprintf("%d@simulated", srv.settings.ProcessID)},
					result{"name": "JVM-START-TIME", "value": srv.program.begun.In(srv.settings.Zone).Format(time.DateTime)},
				},
				"CLASS-LOADING": []any{
					result{"name": "LOADED-CLASS-COUNT", "value": 5575}, result{"name": "TOTAL-LOADED-CLASS-COUNT", "value": 5580},
					result{"name": "UNLOADED-CLASS-COUNT", "value": 5}, result{"name": "IS-VERBOSE", "value": false},
				},
				"COMPILATION": []any{result{"name": "TOTAL-COMPILE-TIME", "desc": "time (ms)", "value": 1382}},
			}}
		},
		"stop": func() result { return result{"type": "message", "message": "stopped"} },
	}
}
