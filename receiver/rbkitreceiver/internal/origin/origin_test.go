// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/rbkit"
)

var recorded = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// reply is the reply of a released server.
var reply = rbkit.HandshakeReply{
	Dialect: rbkit.Released, ServerVersion: "0.1.10", ProtocolVersion: "2.1", ProcessName: "prog.rb", WorkingDirectory: "/nowhere", PID: 4711,
}

// ofServer returns the settings of a server without configured attributes.
func ofServer(publish, host string) *Settings {
	return &Settings{Resource: pcommon.NewResource, Publish: publish, Host: host}
}

func TestServersOfTwoMachinesAreTwoInstances(t *testing.T) {
	for _, c := range []struct{ publish, host, want string }{
		{"localhost:5555", "web-1", "web-1:5555"},
		{"127.0.0.1:5555", "web-1", "web-1:5555"},
		{"127.9.9.9:5555", "web-1", "web-1:5555"},
		{"[::1]:5555", "web-1", "web-1:5555"},
		{"0.0.0.0:5555", "web-1", "web-1:5555"},
		{":5555", "web-1", "web-1:5555"},
		{"localhost:5555", "", "localhost:5555"},
		{"shop.example:5555", "web-1", "shop.example:5555"},
		{"192.0.2.1:5555", "web-1", "192.0.2.1:5555"},
	} {
		of := New(ofServer(c.publish, c.host), Identity{}, recorded, 1)
		id, _ := of.Resource.Attributes().Get(attributeServiceInstanceID)
		assert.Equal(t, c.want, id.Str(), "%s on %q", c.publish, c.host)
	}
}

func TestAServiceHasTheNameOfItsProgram(t *testing.T) {
	for zero, want := range map[string]string{
		"rb1.rb":                                  "rb1.rb",
		"../rb1.rb":                               "rb1.rb",
		"/srv/app/bin/rails":                      "rails",
		"bin/":                                    "bin",
		"puma 6.4 (tcp://0.0.0.0:3000) [app]":     "puma",
		"puma: cluster worker 0: 4711 [app]":      "puma",
		"sidekiq 6.5.1 app [3 of 5 busy]":         "sidekiq",
		"/usr/bin/unicorn worker[0] -c /etc/x.rb": "unicorn",
		"-e":  unknownService,
		"-":   unknownService,
		".":   unknownService,
		"../": unknownService,
		"":    unknownService,
		" ":   unknownService,
	} {
		hello := rbkit.HandshakeReply{ProcessName: zero}
		of := New(ofServer("localhost:5555", ""), Identity{State: &hello}, recorded, 1)
		name, _ := of.Resource.Attributes().Get(AttributeServiceName)
		assert.Equal(t, want, name.Str(), "%q", zero)
		process, _ := of.Resource.Attributes().Get(attributeProcessName)
		assert.Equal(t, zero, process.Str(), "the attribute has the whole name")
	}
}

func TestConfiguredAttributesWin(t *testing.T) {
	settings := ofServer("localhost:5555", "here")
	settings.ServiceName = "shop"
	name, _ := New(settings, Identity{State: &reply}, recorded, 1).Resource.Attributes().Get(AttributeServiceName)
	assert.Equal(t, "shop", name.Str(), "and not the name of the process")
	want := map[string]any{
		AttributeServiceName: "set", attributeServiceInstanceID: "1", attributeProcessID: int64(5), attributeWorkingDirectory: "/set",
		attributeRuntimeName: "truffleruby", attributeHostName: "there", attributeProcessName: "p", attributeServerVersion: "v",
		attributeProtocolVersion: "v2", "deployment.environment.name": "test",
	}
	settings.Resource = func() pcommon.Resource {
		r := pcommon.NewResource()
		assert.NoError(t, r.Attributes().FromRaw(want))
		return r
	}
	of := New(settings, Identity{State: &reply, Local: &LocalProcess{Host: "local", Started: recorded}}, recorded, 1)
	assert.Equal(t, want, of.Resource.Attributes().AsRaw())
}

func TestTheResourceHasTheReplyOfTheServer(t *testing.T) {
	hello := reply
	hello.ProcessName, hello.WorkingDirectory = "prog\xff.rb", "/caf\xe9"
	started := recorded.Add(-time.Hour)
	of := New(ofServer("shop.example:5555", "here"), Identity{State: &hello, Local: &LocalProcess{Host: "local", Started: started}}, recorded, 1)
	assert.Equal(t, map[string]any{
		AttributeServiceName: "prog\uFFFD.rb", attributeServiceInstanceID: "shop.example:5555", attributeProcessID: int64(4711),
		attributeWorkingDirectory: "/caf\uFFFD", attributeRuntimeName: "ruby", attributeHostName: "local",
		attributeProcessName: "prog\uFFFD.rb", attributeServerVersion: "0.1.10", attributeProtocolVersion: "2.1",
	}, of.Resource.Attributes().AsRaw())
	assert.Equal(t, started, of.Started)
	assert.Equal(t, recorded, of.Begun)
	remote := New(ofServer("shop.example:5555", "here"), Identity{State: &rbkit.HandshakeReply{}}, recorded, 1)
	assert.Equal(t, recorded, remote.Started)
	assert.Equal(t, map[string]any{
		AttributeServiceName: unknownService, attributeServiceInstanceID: "shop.example:5555", attributeRuntimeName: "ruby",
	}, remote.Resource.Attributes().AsRaw())
	assert.NotEqual(t, of.ProfileID("samples", 1), New(ofServer("shop.example:5555", "here"), Identity{State: &hello}, recorded, 2).ProfileID("samples", 1))
}

func TestTextsOfAHandshakeAreValid(t *testing.T) {
	hello := reply
	hello.ProcessName, hello.WorkingDirectory, hello.ServerVersion, hello.ProtocolVersion = "p\xff", "d\xff", "s\xff", "v\xff"
	of := New(ofServer("localhost:5555", ""), Identity{State: &hello}, recorded, 0)
	attributes := of.Resource.Attributes().AsRaw()
	for key, want := range map[string]string{
		AttributeServiceName: "p\uFFFD", attributeProcessName: "p\uFFFD", attributeWorkingDirectory: "d\uFFFD",
		attributeServerVersion: "s\uFFFD", attributeProtocolVersion: "v\uFFFD",
	} {
		assert.Equal(t, want, attributes[key], key)
	}
}

func TestAnImpossibleProcessIDIsLeftOut(t *testing.T) {
	for pid, want := range map[uint64]bool{0: false, 1: true, math.MaxInt32: true, math.MaxInt32 + 1: false, math.MaxUint64: false} {
		of := New(ofServer("localhost:5555", ""), Identity{State: &rbkit.HandshakeReply{PID: pid}}, recorded, 0)
		_, got := of.Resource.Attributes().Get(attributeProcessID)
		assert.Equal(t, want, got, pid)
	}
}
