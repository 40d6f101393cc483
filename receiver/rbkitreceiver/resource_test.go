// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/rbkit"
)

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
		of := newOrigin(createDefaultConfig(), &ServerConfig{Publish: c.publish}, c.host, nil, nil, recorded, 1)
		id, _ := of.resource.Attributes().Get(attributeServiceInstanceID)
		assert.Equal(t, c.want, id.Str(), "%s on %q", c.publish, c.host)
	}
}

func TestProcessesAreCalledAsTheySay(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		name      string
		want      bool
	}{
		{[]string{"ruby", "prog.rb"}, "prog.rb", true},
		{[]string{"/usr/bin/ruby3.1", "-Ilib", "/app/bin/rails", "server"}, "bin/rails", true},
		{[]string{"puma 6.4 (tcp://0.0.0.0:3000) [app]"}, "puma 6.4 (tcp://0.0.0.0:3000)", true},
		{[]string{"puma 6.4 (tcp://0.0.0.0:3000) [app]", "", ""}, "puma 6.4 (tcp://0.0.0.0:3000) [app]", true},
		{[]string{"sleep", "20"}, "puma 6.4", false},
		{[]string{"ruby", "other.rb"}, "prog.rb", false},
		{[]string{"ruby", "other.rb"}, "", false},
		{nil, "prog.rb", false},
	} {
		assert.Equal(t, c.want, isCalled(c.arguments, c.name), "%v is %q", c.arguments, c.name)
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
		of := newOrigin(createDefaultConfig(), &ServerConfig{Publish: "localhost:5555"}, "", &hello, nil, recorded, 1)
		name, _ := of.resource.Attributes().Get(attributeServiceName)
		assert.Equal(t, want, name.Str(), "%q", zero)
		process, _ := of.resource.Attributes().Get(attributeProcessName)
		assert.Equal(t, zero, process.Str(), "what the server says stays as it is")
	}
}

func TestConfiguredAttributesWin(t *testing.T) {
	config, server := createDefaultConfig(), ServerConfig{Publish: "localhost:5555"}
	name := func() string {
		of := newOrigin(config, &server, "", &released, nil, recorded, 1)
		v, _ := of.resource.Attributes().Get(attributeServiceName)
		return v.Str()
	}
	assert.Equal(t, released.ProcessName, name())
	config.ServiceName = "all"
	assert.Equal(t, "all", name())
	server.ServiceName = "shop"
	assert.Equal(t, "shop", name())
	config.ResourceAttributes = map[string]any{
		attributeServiceName: "set", attributeServiceInstanceID: "1", attributeProcessID: 5, attributeWorkingDirectory: "/set",
		attributeRuntimeName: "truffleruby", attributeHostName: "there", attributeProcessName: "p", attributeServerVersion: "v",
		attributeProtocolVersion: "v2", "deployment.environment.name": "test",
	}
	of := newOrigin(config, &server, "here", &released, &localProcess{host: "local", started: recorded}, recorded, 1)
	want := map[string]any{}
	for key, value := range config.ResourceAttributes {
		want[key] = value
	}
	want[attributeProcessID] = int64(5)
	assert.Equal(t, want, of.resource.Attributes().AsRaw())
}

func TestTheResourceHasTheReplyOfTheServer(t *testing.T) {
	hello := released
	hello.ProcessName, hello.WorkingDirectory = "prog\xff.rb", "/caf\xe9"
	started := recorded.Add(-time.Hour)
	of := newOrigin(createDefaultConfig(), &ServerConfig{Publish: "shop.example:5555"}, "here", &hello, &localProcess{host: "local", started: started}, recorded, 1)
	assert.Equal(t, map[string]any{
		attributeServiceName: "prog\uFFFD.rb", attributeServiceInstanceID: "shop.example:5555", attributeProcessID: int64(4711),
		attributeWorkingDirectory: "/caf\uFFFD", attributeRuntimeName: "ruby", attributeHostName: "local",
		attributeProcessName: "prog\uFFFD.rb", attributeServerVersion: "0.1.10", attributeProtocolVersion: "2.1",
	}, of.resource.Attributes().AsRaw())
	assert.Equal(t, started, of.started)
	assert.Equal(t, recorded, of.begun)
	remote := newOrigin(createDefaultConfig(), &ServerConfig{Publish: "shop.example:5555"}, "here", &rbkit.HandshakeReply{}, nil, recorded, 1)
	assert.Equal(t, recorded, remote.started)
	assert.Equal(t, map[string]any{
		attributeServiceName: unknownService, attributeServiceInstanceID: "shop.example:5555", attributeRuntimeName: "ruby",
	}, remote.resource.Attributes().AsRaw())
	assert.NotEqual(t, of.seed, newOrigin(createDefaultConfig(), &ServerConfig{Publish: "shop.example:5555"}, "here", &hello, nil, recorded, 2).seed)
}
