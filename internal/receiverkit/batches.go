// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receiverkit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// BatchesConfig has the settings of receivers that send batches of call events. A receiver
// squashes it into its own Config, beside Config.
type BatchesConfig struct {
	// ExpectPairing says that stack_pairing follows in this collector. The receiver logs a
	// warning if batches go elsewhere.
	ExpectPairing bool `mapstructure:"expect_pairing"`
	// Batch says when a batch is closed.
	Batch BatchConfig `mapstructure:"batch"`
	// KeepaliveInterval is the interval of empty batches, which report that a traced program
	// is alive.
	KeepaliveInterval time.Duration `mapstructure:"keepalive_interval"`
}

// BatchConfig says when a batch is closed: at the size or at the delay.
type BatchConfig struct {
	MaxBytes int           `mapstructure:"max_bytes"`
	MaxDelay time.Duration `mapstructure:"max_delay"`
}

// MaxBatchNameWait and maxBatchRetry bound name_wait and retry.max_interval of receivers that
// send batches. stack_pairing waits 5 s for events by default. The bounds leave one second and
// two, because data takes some time on its way.
const (
	MaxBatchNameWait = 4 * time.Second
	maxBatchRetry    = 3 * time.Second
)

// DefaultBatchesConfig returns the defaults of receivers that send batches.
func DefaultBatchesConfig() BatchesConfig {
	return BatchesConfig{
		ExpectPairing:     true,
		Batch:             BatchConfig{MaxBytes: 256 << 10, MaxDelay: 200 * time.Millisecond},
		KeepaliveInterval: 10 * time.Second,
	}
}

// ValidateWith returns an error for each setting out of bounds, those of common included: the
// receiver doesn't call ValidateCommon. retryAdvice ends the error of retry; it may be empty.
func (c *BatchesConfig) ValidateWith(common *Config, retryAdvice string) error {
	retry := common.Retry.ValidateAs("retry", maxBatchRetry)
	if retry != nil {
		retry = fmt.Errorf("%w%s", retry, retryAdvice)
	}
	return errors.Join(
		common.validateWith(retry),
		setting.Between("batch.max_bytes", c.Batch.MaxBytes, callevent.MinBatchBytes, callevent.MaxBatchBytes),
		setting.Within("batch.max_delay", c.Batch.MaxDelay, time.Millisecond, time.Minute),
		setting.Within("keepalive_interval", c.KeepaliveInterval, 100*time.Millisecond, time.Hour),
	)
}

// NewBatches opens the hand-over of the batches of one peer; nil: no pipeline takes traces. It sets
// the common Settings, Next, the name and version of the scope, and Unpaired. The receiver sets the
// other fields.
//
// ctx is Run.Delivering, or a context derived from it that ends earlier for this peer. Its end drops
// the batches that no pipeline has accepted. The shutdown waits for the goroutines of the peer, and
// not for the hand-over. So with Hold, one of them calls Batches.Wait before it ends.
func NewBatches(ctx context.Context, r *Run, logger *zap.Logger, config *BatchesConfig, settings handover.BatchesSettings) *handover.Batches {
	if r.Next.Traces == nil {
		return nil
	}
	settings.Settings, settings.Next = r.HandoverSettings(), r.Next.Traces
	settings.Context, settings.Logger = ctx, logger
	settings.ScopeName, settings.ScopeVersion = r.scope, r.Settings.BuildInfo.Version
	if config.ExpectPairing {
		settings.Unpaired = r.warnUnpaired
	}
	return handover.NewBatches(settings)
}
