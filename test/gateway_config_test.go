// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/test/kit"
)

// receiveTier is as much of the first tier's configuration as its way to the second has.
type receiveTier struct {
	Exporters struct {
		LoadBalancing struct {
			RoutingKey string `yaml:"routing_key"`
			Timeout    time.Duration
			Protocol   struct {
				OTLP struct {
					Timeout        time.Duration
					SendingQueue   struct{ Enabled *bool } `yaml:"sending_queue"`
					RetryOnFailure struct{ Enabled *bool } `yaml:"retry_on_failure"`
				} `yaml:"otlp"`
			}
			SendingQueue struct {
				Storage      string
				NumConsumers int `yaml:"num_consumers"`
			} `yaml:"sending_queue"`
			RetryOnFailure struct {
				Enabled             bool
				InitialInterval     time.Duration `yaml:"initial_interval"`
				RandomizationFactor float64       `yaml:"randomization_factor"`
				Multiplier          float64
				MaxInterval         time.Duration `yaml:"max_interval"`
			} `yaml:"retry_on_failure"`
		} `yaml:"load_balancing"`
	}
}

type pairTier struct {
	Receivers struct {
		OTLP struct {
			Protocols struct {
				GRPC struct {
					MaxMessageMiB int `yaml:"max_recv_msg_size_mib"`
				} `yaml:"grpc"`
			}
		} `yaml:"otlp"`
	}
	Connectors struct {
		StackPairing struct {
			Reorder struct {
				MaxWait time.Duration `yaml:"max_wait"`
			}
			IdleTimeout time.Duration `yaml:"idle_timeout"`
		} `yaml:"stack_pairing"`
	}
}

func readTier(t *testing.T, path string, tier any) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, tier))
}

// The second tier waits longer for a batch than the first tier can delay it: two of the longest
// pauses between tries, and a try that ends by its timeout.
func TestTheSecondTierWaitsLongerThanTheFirstRetries(t *testing.T) {
	var receive receiveTier
	var pair pairTier
	readTier(t, "../config/gateway-receive.yaml", &receive)
	readTier(t, "../config/gateway-pair.yaml", &pair)
	balancing, pairing := receive.Exporters.LoadBalancing, pair.Connectors.StackPairing
	assert.Equal(t, balancing.Timeout, balancing.Protocol.OTLP.Timeout, "the shorter one counts")
	assert.GreaterOrEqual(t, balancing.Timeout, 30*time.Second, "a second tier that is slow isn't sent everything again")
	retry := balancing.RetryOnFailure
	pause := time.Duration(float64(retry.MaxInterval) * (1 + retry.RandomizationFactor))
	assert.Greater(t, pairing.Reorder.MaxWait, 2*pause+balancing.Timeout, "a batch may be waiting for the first tier's retry")
	assert.GreaterOrEqual(t, pairing.IdleTimeout, 5*pairing.Reorder.MaxWait, "behind queues only minutes of silence are idleness")
	assert.GreaterOrEqual(t, pair.Receivers.OTLP.Protocols.GRPC.MaxMessageMiB, 2, "a hand-over has 1 MiB of batches, and some more")
}

// The waiting queue is on disk and in front of the routing. Everything behind the routing reports a
// failure immediately.
func TestTheFirstTierWaitsInFrontOfTheRouting(t *testing.T) {
	var receive receiveTier
	readTier(t, "../config/gateway-receive.yaml", &receive)
	balancing := receive.Exporters.LoadBalancing
	assert.Equal(t, "traceID", balancing.RoutingKey, "a batch carries its stream's trace ID")
	assert.Equal(t, "file_storage", balancing.SendingQueue.Storage)
	assert.Greater(t, balancing.SendingQueue.NumConsumers, 1, "a collector that doesn't answer delays some senders, not all")
	for name, enabled := range map[string]*bool{
		"sending_queue":    balancing.Protocol.OTLP.SendingQueue.Enabled,
		"retry_on_failure": balancing.Protocol.OTLP.RetryOnFailure.Enabled,
	} {
		if assert.NotNil(t, enabled, "%s behind the routing is on by default", name) {
			assert.False(t, *enabled, "%s behind the routing keeps batches for a collector that may be gone", name)
		}
	}
	retry := balancing.RetryOnFailure
	assert.True(t, retry.Enabled)
	for name, value := range map[string]float64{
		"initial_interval": retry.InitialInterval.Seconds(), "max_interval": retry.MaxInterval.Seconds(),
		"multiplier": retry.Multiplier - 1, "randomization_factor": retry.RandomizationFactor,
	} {
		assert.Positive(t, value, "load_balancing has no default %s, and without one it tries again immediately", name)
	}
}

// overlays are the configurations in a page of docs/ that a collector gets beside a shipped one.
func overlays(t *testing.T, page string) (found []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		found = append(found, block[1])
	}
	return found
}

// validateOverlay lets a distribution validate a shipped configuration with an overlay.
func validateOverlay(t *testing.T, collector, name, overlay string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "overlay.yaml")
	require.NoError(t, os.WriteFile(path, []byte(overlay), 0o600))
	output, err := exec.CommandContext(t.Context(), collector, "validate", "--config", "../config/"+name, "--config", path).CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.NotContains(t, string(output), "deprecated")
}

// No test runs a Kafka for the page on several collectors. This one checks that the settings for
// Kafka exist, keep batches whole and together, and lose none.
func TestTheConfigurationOfThePageForTiersIsValid(t *testing.T) {
	found := overlays(t, "scale.md")
	require.Len(t, found, 4, "the tiers on several machines, a queue on disk, and Kafka")
	for i, name := range []string{"gateway-pair.yaml", "gateway-receive.yaml", "gateway-pair.yaml", "gateway-receive.yaml"} {
		collector := kit.Binary(t)
		if name == "gateway-receive.yaml" {
			collector = kit.Gateway(t)
		}
		validateOverlay(t, collector, name, found[i])
	}
	checkKafka(t, found[3])
}

// checkKafka checks the overlay of the first tier that sends to Kafka.
func checkKafka(t *testing.T, overlay string) {
	t.Helper()

	var config collectorConfig
	require.NoError(t, yaml.Unmarshal([]byte(overlay), &config))
	var document struct{ Exporters map[string]yaml.Node }
	require.NoError(t, yaml.Unmarshal([]byte(overlay), &document))
	var kafka struct {
		ByTrace  bool `yaml:"partition_traces_by_id"`
		Producer struct {
			MaxMessageBytes int `yaml:"max_message_bytes"`
			RequiredAcks    int `yaml:"required_acks"`
		}
	}
	node := document.Exporters["kafka"]
	require.NoError(t, node.Decode(&kafka))
	assert.True(t, kafka.ByTrace, "all batches of a stream are in one partition")
	assert.GreaterOrEqual(t, kafka.Producer.MaxMessageBytes, 2<<20, "a hand-over has 1 MiB of batches, and some more")
	assert.Equal(t, -1, kafka.Producer.RequiredAcks, "all replicas have delivered data")
	for pipeline, p := range config.Service.Pipelines {
		assert.Equal(t, []string{"kafka"}, p.Exporters)
		assert.Empty(t, queueViolations(pipeline, p, config))
	}
}
