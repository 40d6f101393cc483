// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/callbraid/callbraid/extension/memorybudgetextension/internal/metadata"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/componentkit/otlpsize"
)

const (
	// holder is the group of the budget that requests are in.
	holder = "otlp"
	// largest is the denominator of the part of the limit that one request may use. A larger one
	// never fits.
	largest = 4
	// large is the denominator of the part of the limit from which on a request may only use half of
	// the limit, so that small requests are accepted beside many large ones.
	large = 16
	// ofOneAddress is the share of the open requests that one address may have: one part of so
	// many.
	ofOneAddress = 2
)

// reason is an attribute of metrics and log lines, as metadata.yaml has them.
type reason string

const (
	reasonDepth     reason = "depth"
	reasonMalformed reason = "malformed"
	reasonMemory    reason = "memory"
	reasonOpen      reason = "open"
	reasonSize      reason = "size"
)

// refusal is why a request is not decoded.
type refusal struct {
	reason reason
	code   codes.Code
	text   string
}

func (r *refusal) status() *status.Status { return status.New(r.code, r.text) }

// requests judges requests before a receiver decodes them. It is for many goroutines.
type requests struct {
	config    RequestsConfig
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	account   *budget.Account
	lines     map[reason]*logline.Seldom

	mu   sync.Mutex
	open int
	// from is how many are open of each address.
	from map[string]int
}

func newRequests(config RequestsConfig, logger *zap.Logger, telemetry *metadata.TelemetryBuilder, b *budget.Budget) *requests {
	q := &requests{config: config, logger: logger, telemetry: telemetry, from: map[string]int{}, lines: map[reason]*logline.Seldom{}}
	for _, why := range []reason{reasonDepth, reasonMalformed, reasonMemory, reasonOpen, reasonSize} {
		q.lines[why] = &logline.Seldom{}
	}
	q.account = b.Group(holder).Open(budget.Settings{
		Limit: int64(config.LimitMiB) * mib, Setting: "requests.limit_mib of memory_budget",
		// A request ends by itself within moments. Until then Reserve refuses further ones.
		Shrink: func(int64) {},
	})
	return q
}

// judge walks a request, and reserves the memory of its decoded data, and beside bytes for copies
// of it. The caller releases taken bytes when the request has ended.
func (q *requests) judge(body []byte, beside int, walk func(body []byte, most int) (otlpsize.Size, error)) (taken int, r *refusal) {
	size, err := walk(body, q.config.MaxAttributeDepth)
	malformed := &otlpsize.MalformedError{}
	switch most := q.config.LimitMiB * mib / largest; {
	case errors.As(err, &malformed):
		return 0, &refusal{reasonMalformed, codes.InvalidArgument, "cannot read the request: " + err.Error()}
	case err != nil:
		return 0, &refusal{reasonDepth, codes.InvalidArgument, fmt.Sprintf(
			"expected attributes with at most %d levels of lists and maps (requests.max_attribute_depth of memory_budget), got more", q.config.MaxAttributeDepth)}
	case size.Bytes > most:
		return 0, &refusal{reasonSize, codes.InvalidArgument, fmt.Sprintf(
			"expected a request that takes at most %d bytes of memory (a quarter of requests.limit_mib of memory_budget), got %d bytes that take %d: send smaller requests",
			most, len(body), size.Bytes)}
	}
	return q.reserve(size.Bytes + beside)
}

// reserve reserves bytes.
func (q *requests) reserve(bytes int) (taken int, r *refusal) {
	reserve := q.account.Reserve
	if bytes > q.config.LimitMiB*mib/large {
		reserve = q.account.ReserveOfHalf
	}
	if err := reserve(bytes); err != nil {
		return 0, &refusal{reasonMemory, codes.Unavailable, "no memory for the request now, send it again later: " + err.Error()}
	}
	return bytes, nil
}

// enter counts a request that a peer has begun to send. The caller calls leave when it has ended.
func (q *requests) enter(peer string) (leave func(), r *refusal) {
	address, _, err := net.SplitHostPort(peer)
	if err != nil {
		address = peer
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if most := q.config.MaxOpen; q.open >= most || q.from[address] >= max(most/ofOneAddress, 1) {
		return nil, &refusal{reasonOpen, codes.Unavailable, fmt.Sprintf(
			"expected at most %d requests at the same time, half of them from one address (requests.max_open of memory_budget), got %d, %d of them from this address: send it again later",
			most, q.open+1, q.from[address]+1)}
	}
	q.open++
	q.from[address]++
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.open--
		if q.from[address]--; q.from[address] == 0 {
			delete(q.from, address)
		}
	}), nil
}

// The log lines of refusals.
const (
	requestRefused = "OTLP request refused before it was decoded"
	pageRefused    = "Page refused"
)

// report counts and logs a refusal.
func (q *requests) report(ctx context.Context, r *refusal, peer, line string) {
	q.telemetry.ExtensionMemoryBudgetRefusedRequests.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", string(r.reason)))))
	if since, due := q.lines[r.reason].Count(time.Now()); due {
		q.logger.Warn(line, zap.String("peer", peer), zap.String("reason", string(r.reason)),
			zap.String("error", r.text), zap.Int("requests", since))
	}
}
