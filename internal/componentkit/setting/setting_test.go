// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestErrorsNameTheFieldAndItsBounds(t *testing.T) {
	for _, value := range []int{2, 3, 4} {
		assert.NoError(t, Between("limits.max_agents", value, 2, 4))
		assert.NoError(t, Within("list_interval", time.Duration(value)*time.Second, 2*time.Second, 4*time.Second))
	}
	for _, value := range []int{1, 5} {
		assert.ErrorContains(t, Between("limits.max_agents", value, 2, 4), "limits.max_agents is ")
		assert.ErrorContains(t, Within("list_interval", time.Duration(value)*time.Second, 2*time.Second, 4*time.Second), ": set it to 2s to 4s")
	}
	assert.EqualError(t, Between("limits.max_agents", 5, 2, 4), "limits.max_agents is 5: set it to 2 to 4")
	assert.EqualError(t, Within("list_interval", 0, 2*time.Second, 4*time.Second), "list_interval is 0s: set it to 2s to 4s")
}

func TestAddressesToListenOnAndToDial(t *testing.T) {
	const noAddress, noPort = "set it to host:port", "set its port to 1 to 65535"
	for address, want := range map[string]struct{ listen, dial string }{
		"localhost:1":     {},
		"[::1]:65535":     {},
		"localhost:0":     {dial: noPort},
		":5555":           {dial: noAddress},
		"localhost":       {listen: noAddress, dial: noAddress},
		"":                {listen: noAddress, dial: noAddress},
		"localhost:":      {listen: noPort, dial: noPort},
		"localhost:65536": {listen: noPort, dial: noPort},
		"localhost:http":  {listen: noPort, dial: noPort},
	} {
		for _, got := range []struct {
			err  error
			want string
		}{
			{ListenAddress("endpoint", address, "localhost:1"), want.listen},
			{DialAddress("endpoint", address, "a server", "localhost:1"), want.dial},
		} {
			if got.want == "" {
				assert.NoError(t, got.err, address)
			} else {
				assert.ErrorContains(t, got.err, fmt.Sprintf("endpoint is %q: %s", address, got.want))
			}
		}
	}
	assert.EqualError(t, ListenAddress("endpoint", "", "localhost:1"), `endpoint is "": set it to host:port, such as localhost:1`)
	assert.EqualError(t, DialAddress("publish", "", "a server", "localhost:1"), `publish is "": set it to host:port of a server, such as localhost:1`)
}

func TestFieldsThatSeveralComponentsHave(t *testing.T) {
	assert.NoError(t, Timeout("timeout", time.Millisecond))
	assert.EqualError(t, Timeout("timeout", 0), "timeout is 0s: set it to 1ms to 10m0s")
	assert.NoError(t, CollectionInterval(time.Minute))
	assert.EqualError(t, CollectionInterval(time.Millisecond), "collection_interval is 1ms: set it to 100ms to 24h0m0s")
	assert.NoError(t, ResourceAttributes(map[string]any{"a": "b", "c": []any{1, true}}))
	assert.ErrorContains(t, ResourceAttributes(map[string]any{"a": struct{}{}}), "resource_attributes: ")
}
