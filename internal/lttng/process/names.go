// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callstream"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
	"github.com/callbraid/callbraid/internal/mutf8"
)

const (
	// maxFunctions and maxLanes bound the names of a process. limits.max_names_bytes bounds those of all processes of
	// a group. At a bound the names are deleted, and read again.
	maxFunctions = 1 << 16
	maxLanes     = 1 << 16
	// nameBytes is the approximate size in memory of a function or a lane without its names.
	nameBytes = 140
)

// nameTable has the functions and lanes of a process, so that batches have each of them once.
type nameTable struct {
	shared *shared
	// forgetAll packs the calls that wait, and forgets the names of the process.
	forgetAll func()

	functions map[string]*callstream.Function
	lanes     map[uint64]*lane
	lastLane  *lane
	// byAddress are the functions at addresses, and addressBytes their approximate size.
	byAddress    map[uint64]*callstream.Function
	addressBytes int
	lastFunction *callstream.Function
	lastAddress  uint64
	// hasSizes is set if the code of a function has a known size. Without one, call sites show nothing.
	hasSizes bool
	// sites are the functions around call sites. It is nil before the first of them.
	sites *siteTable
	// bytes is the approximate size of all names.
	bytes int
	// scratch is a buffer to write names in.
	scratch []byte
}

// lane is a lane of batches with the open calls of its thread. Lanes of one thread with different names share these.
type lane struct {
	callstream.Lane
	own openCalls
	// open are the lane's own or those of an earlier lane of the thread.
	open *openCalls
}

// open prepares the table for the first call event.
func (t *nameTable) open() {
	t.functions, t.lanes = map[string]*callstream.Function{}, map[uint64]*lane{}
}

// lane returns the lane of an ID, with its current name. Without a name, the last name stays. inUse is set if waiting
// calls may refer to the lane by its last name.
func (t *nameTable) lane(id uint64, name []byte, inUse bool) *lane {
	l := t.lastLane
	if l == nil || l.ID != id {
		l = t.lanes[id]
	}
	if l == nil {
		l = t.newLane(id, callevent.Name(name), nil)
	} else if len(name) > 0 && string(name) != l.Name {
		if valid := callevent.Name(name); valid != l.Name {
			if !inUse {
				t.hold(-nameBytes - len(l.Name))
			}
			l = t.newLane(id, valid, l.open)
		}
	}
	t.lastLane = l
	return l
}

func (t *nameTable) newLane(id uint64, name string, open *openCalls) *lane {
	if len(t.lanes) >= maxLanes {
		t.forgetAll()
	}
	t.hold(nameBytes + len(name))
	l := &lane{Lane: callstream.Lane{Lane: callevent.Lane{ID: id, Name: name}}, open: open}
	if open == nil {
		l.open = &l.own
	}
	t.lanes[id] = l
	return l
}

// method returns the function of a class and a method, as Java names them.
func (t *nameTable) method(class, method []byte) *callstream.Function {
	class, method = usedPrefix(class), usedPrefix(method)
	t.scratch = append(t.scratch[:0], class...)
	if len(class) > 0 {
		t.scratch = append(t.scratch, '.')
	}
	t.scratch = append(t.scratch, method...)
	if f := t.functions[string(t.scratch)]; f != nil {
		return f
	}
	// The display name is the last part of the class, unless that is empty, and the method.
	simple := bytes.LastIndexByte(class, '.') + 1
	if simple > 0 && simple == len(class) {
		simple++
	}
	return t.newFunction(t.scratch, mutf8.DecodeBytes(t.scratch), mutf8.DecodeBytes(t.scratch[simple:]))
}

// named returns the function of a name.
func (t *nameTable) named(name []byte) *callstream.Function {
	name = usedPrefix(name)
	if f := t.functions[string(name)]; f != nil {
		return f
	}
	return t.newFunction(name, name, name)
}

// usedPrefix returns the part of a name that callevent.Name reads.
func usedPrefix(name []byte) []byte { return mapping.Prefix(name, callevent.MaxNameBytes+1) }

// newFunction returns a function that events call key.
func (t *nameTable) newFunction(key, qualified, display []byte) *callstream.Function {
	f := &callstream.Function{Function: callevent.Function{Qualified: callevent.Name(qualified), Display: callevent.Name(display)}}
	f.Text = f.Qualified
	own, bytes := f.Qualified, nameBytes+len(f.Qualified)+len(f.Display)
	if own != string(key) {
		own = string(key)
		bytes += len(own)
	}
	if len(t.functions) >= maxFunctions {
		t.forgetAll()
	}
	t.hold(bytes)
	t.functions[own] = f
	return f
}

// at returns the function at an address in the objects of the process.
func (t *nameTable) at(address uint64, objects *symbols.Objects) *callstream.Function {
	if t.lastFunction != nil && t.lastAddress == address {
		return t.lastFunction
	}
	f := t.byAddress[address]
	if f == nil {
		f = t.lookUp(address, objects)
		if len(t.byAddress) >= maxFunctions {
			t.forgetAddresses()
		}
		bytes := nameBytes + len(f.Qualified) + len(f.Display) + len(f.Text) + len(f.File)
		t.hold(bytes)
		if t.byAddress == nil {
			t.byAddress = map[uint64]*callstream.Function{}
		}
		t.byAddress[address] = f
		t.addressBytes += bytes
	}
	t.lastFunction, t.lastAddress = f, address
	return f
}

func (t *nameTable) lookUp(address uint64, objects *symbols.Objects) *callstream.Function {
	named := objects.Name(address)
	t.forgetSites()
	t.hasSizes = t.hasSizes || named.Size > 0
	if !named.Named {
		t.shared.Telemetry.NameUnknown()
	}
	if named.NoLine != "" {
		t.shared.Telemetry.LineUnknown(named.NoLine)
	}
	if named.Object == "" && objects.Len() > 0 {
		t.shared.logNoObject(named.Qualified)
	}
	return &callstream.Function{
		Function: callevent.Function{
			Qualified: named.Qualified, Display: named.Display, Text: named.Text, File: named.File, Line: named.Line,
		},
		Size: named.Size,
	}
}

// siteTable has the start of the function around a call site, or 0 if it is not known, for the last site of each hash
// value.
type siteTable [256]struct{ site, start uint64 }

const siteTableBytes = 256 * 16

// around returns the address of the function that contains a call site, or 0 if it is not known.
func (t *nameTable) around(site uint64, objects *symbols.Objects) uint64 {
	if t.sites == nil {
		t.hold(siteTableBytes)
		t.sites = &siteTable{}
	}
	known := &t.sites[site*0x9E3779B97F4A7C15>>56]
	if known.site != site {
		// A return address can lie behind its function, if the callee never returns.
		known.site, known.start = site, objects.Start(site-1)
	}
	return known.start
}

// forgetSites forgets the functions around call sites: another object may lie there, or its functions are known now.
func (t *nameTable) forgetSites() {
	if t.sites != nil {
		*t.sites = siteTable{}
	}
}

// forgetAddresses forgets the functions at addresses: another object may lie there.
func (t *nameTable) forgetAddresses() {
	clear(t.byAddress)
	t.lastFunction = nil
	t.forgetSites()
	t.hold(-t.addressBytes)
	t.addressBytes = 0
}

// hold counts bytes of names.
func (t *nameTable) hold(bytes int) {
	t.shared.holdNames(bytes)
	t.bytes += bytes
}

// len returns the number of names.
func (t *nameTable) len() int { return len(t.functions) + len(t.lanes) + len(t.byAddress) }

// clear deletes all names. Waiting calls keep theirs.
func (t *nameTable) clear() {
	clear(t.functions)
	clear(t.lanes)
	t.lastLane, t.sites = nil, nil
	t.forgetAddresses()
	t.hold(-t.bytes)
}
