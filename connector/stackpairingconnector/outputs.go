// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// metricsOutput sends metrics. It holds one refused message. The points are cumulative, so a later
// message has what an earlier one had, except the last points of a stream that ended.
type metricsOutput struct {
	// next is nil without a pipeline of metrics.
	next consumer.Metrics
	// dropped receives each loss.
	dropped func(points int, reason dropReason, err error)

	held pmetric.Metrics
	// bytes is the size of the held message as protobuf; 0: there is none. why is the error that
	// refused it.
	bytes int
	why   error
}

// dropReason is why data was dropped. Its text is the metric's attribute.
type dropReason string

const (
	refusedForGood dropReason = "refused_for_good"
	refusedTwice   dropReason = "refused_twice"
	noRoom         dropReason = "no_room"
	atShutdown     dropReason = "shutdown"
)

// send sends a message, after the one that is held. If that is refused again, it is dropped.
func (o *metricsOutput) send(ctx context.Context, md pmetric.Metrics) {
	o.sendHeld(ctx)
	if md.DataPointCount() == 0 {
		return
	}
	if o.bytes > 0 {
		o.dropped(o.held.DataPointCount(), refusedTwice, o.why)
	}
	o.held, o.bytes = md, metricsSizer.MetricsSize(md)
	o.sendHeld(ctx)
}

var metricsSizer pmetric.ProtoMarshaler

// sendHeld sends the held message, if there is one. It stays if it is refused.
func (o *metricsOutput) sendHeld(ctx context.Context) {
	if o.bytes == 0 {
		return
	}
	md := o.held
	if o.next.Capabilities().MutatesData {
		md = pmetric.NewMetrics()
		o.held.CopyTo(md)
	}
	err := o.next.ConsumeMetrics(ctx, md)
	if err != nil && !consumererror.IsPermanent(err) {
		o.why = err
		return
	}
	if err != nil {
		o.dropped(o.held.DataPointCount(), refusedForGood, err)
	}
	o.held, o.bytes, o.why = pmetric.Metrics{}, 0, nil
}

// dropHeld drops the held message at a shutdown.
func (o *metricsOutput) dropHeld() {
	if o.bytes > 0 {
		o.dropped(o.held.DataPointCount(), atShutdown, o.why)
		o.held, o.bytes = pmetric.Metrics{}, 0
	}
}

// profilesOutput sends profiles. Each has what was added in an interval, so refused messages wait
// for the next interval, oldest first.
type profilesOutput struct {
	// next is nil without a pipeline of profiles.
	next xconsumer.Profiles
	// maxBytes bounds the messages that wait, as protobuf.
	maxBytes int
	// dropped receives each loss.
	dropped func(samples int, reason dropReason, err error)

	queue []pprofile.Profiles
	bytes int
	// why is the last error that refused a message.
	why error
}

var sizer pprofile.ProtoMarshaler

// enqueue puts a message behind those that wait. It drops the oldest ones if there is no room.
func (o *profilesOutput) enqueue(pd pprofile.Profiles) {
	o.queue = append(o.queue, pd)
	o.bytes += sizer.ProfilesSize(pd)
	for o.bytes > o.maxBytes && len(o.queue) > 1 {
		o.dropFirst(noRoom, o.why)
	}
}

// send sends all messages that wait, until one is refused.
func (o *profilesOutput) send(ctx context.Context) {
	for len(o.queue) > 0 {
		pd := o.queue[0]
		if o.next.Capabilities().MutatesData {
			pd = pprofile.NewProfiles()
			o.queue[0].CopyTo(pd)
		}
		switch err := o.next.ConsumeProfiles(ctx, pd); {
		case err == nil:
			o.removeFirst()
		case consumererror.IsPermanent(err):
			o.dropFirst(refusedForGood, err)
		default:
			o.why = err
			return
		}
	}
}

// dropAll drops all messages that wait.
func (o *profilesOutput) dropAll() {
	for len(o.queue) > 0 {
		o.dropFirst(atShutdown, o.why)
	}
}

func (o *profilesOutput) dropFirst(reason dropReason, err error) {
	o.dropped(o.queue[0].SampleCount(), reason, err)
	o.removeFirst()
}

func (o *profilesOutput) removeFirst() {
	o.bytes -= sizer.ProfilesSize(o.queue[0])
	o.queue[0] = pprofile.Profiles{}
	o.queue = o.queue[1:]
}
