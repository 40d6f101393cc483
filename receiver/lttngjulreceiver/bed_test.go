// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/metadata"
)

// patience bounds the wait for a condition.
const patience = time.Minute

// bed is the bed of a receiver of agents.
type bed struct {
	*receivertestbed.Bed
	receiver *julReceiver
}

// newBed starts a receiver, which ends with the test.
func newBed(t testing.TB, change func(c *Config)) *bed {
	t.Helper()
	b := unstartedBed(t, change)
	b.Start()
	return b
}

func unstartedBed(t testing.TB, change func(c *Config)) *bed {
	t.Helper()
	b := &bed{Bed: receivertestbed.New(t, metadata.Type)}
	config := createDefaultConfig()
	config.Endpoint = testkit.Address(t)
	config.Retry = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}
	config.CollectionInterval = 100 * time.Millisecond
	config.CommandTimeout = patience
	config.Limits.RegistrationTimeout = patience
	config.ShutdownTimeout = 2 * patience
	if change != nil {
		change(config)
	}
	require.NoError(t, config.Validate())
	r, err := newReceiver(b.Settings, config)
	require.NoError(t, err)
	b.Use(r)
	b.receiver = r.Protocol.(*julReceiver)
	b.receiver.checkPortFiles = 5 * time.Millisecond
	b.receiver.silence = time.Millisecond
	return b
}

// address returns the address for agents.
func (b *bed) address() string { return b.receiver.listener.Addr().String() }

// port returns the port of the address.
func (b *bed) port() int { return b.receiver.listener.Addr().(*net.TCPAddr).Port }

// awaitRecords waits for n log records of an event, and returns them.
func (b *bed) awaitRecords(event string, n int) []record {
	b.T.Helper()
	b.AwaitRecords(event, n)
	return b.records(event)
}

// record is a log record with its resource.
type record struct {
	event, body string
	severity    plog.SeverityNumber
	time        time.Time
	attributes  map[string]any
	resource    map[string]any
}

// records returns the delivered log records of an event in order; for "" all.
func (b *bed) records(event string) (records []record) {
	b.T.Helper()
	for _, r := range b.Records(event) {
		records = append(records, record{
			event: r.EventName(), body: r.Body().Str(), severity: r.SeverityNumber(), time: r.Timestamp().AsTime(),
			attributes: r.Attributes().AsRaw(), resource: r.Resource.Attributes().AsRaw(),
		})
	}
	return records
}

// loggersOf returns the names of the loggers in records.
func loggersOf(records []record) []string {
	names := make([]string, len(records))
	for i, r := range records {
		names[i] = r.attributes[attributeLogger].(string)
	}
	return names
}
