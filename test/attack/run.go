// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/callbraid/callbraid/test/kit"
)

// run is one attack while it lasts.
type run struct {
	t         testing.TB
	form      form
	row       *row
	places    places
	collector *kit.Collector
	memory    *memory
	// received returns the numbers of the backend.
	received func() (calls, requests, again int64)
	// steady is a program that runs all the time. starting has those that start during the attack,
	// and later those that start after it.
	steady, starting, later *honest
	attackers               []Attacker

	mu              sync.Mutex // of what follows
	asked, answered int64
	slowestAnswer   time.Duration
	unanswered      []string
}

// measure runs an attack:
//
//  1. A collector runs with its shipped configuration, and an honest program with it.
//  2. The attackers attack. Meanwhile other programs start, and clients look at pages and send
//     requests.
//  3. The attackers disconnect. measure waits until a new agent is served and memory is down.
//  4. The honest program ends. Then the backend must have all its calls.
//  5. The process gets SIGTERM.
func measure(t testing.TB, s scenario, f form) *row {
	m := &run{t: t, form: f, row: &row{scenario: s, recovered: -1}}
	m.begin()
	defer m.memory.stop()
	steady, end := context.WithCancel(t.Context())
	defer end()
	var honest sync.WaitGroup
	defer honest.Wait()
	defer end()
	honest.Go(func() { m.steady.life(steady, 0, 1000, patience) })
	pause(steady, f.seconds(5, 1))
	m.row.before, _ = m.memory.now()

	m.attack()
	if m.row.terminate > 0 || m.hasDied() {
		end()
		honest.Wait()
		m.finish()
		return m.row
	}
	m.recover()
	end()
	honest.Wait()
	m.awaitDelivery()
	m.terminate()
	m.finish()
	return m.row
}

// patience is the time that an honest agent waits for a collector.
const patience = 30 * time.Second

// begin starts the collector and its backend.
func (m *run) begin() {
	t := m.t
	configuration, p := shipped(t, m.row.configuration, m.row.settings...)
	m.places = p
	data := t.TempDir()
	spans := &spansFile{path: data + "/spans.json"}
	m.received = func() (int64, int64, int64) {
		require.NoError(t, spans.readLines())
		return spans.sums()
	}
	if backend := p.of[jaegerPort]; backend != "" {
		m.received = serveBackend(t, backend).sums
	}
	m.collector = kit.Start(t, configuration, "CALLBRAID_DATA="+data)
	p.of[healthPort] = m.collector.Health()
	m.memory = watch(m.collector)
	m.steady, m.starting, m.later = &honest{endpoint: p.at(bytefrogPort)}, &honest{endpoint: p.at(bytefrogPort)}, &honest{endpoint: p.at(bytefrogPort)}
	m.attackers = m.row.attackers(p, m.form)
}

// attack runs the attackers, and meanwhile the other programs and clients.
func (m *run) attack() {
	length := m.row.length(m.form)
	ctx, end := context.WithTimeout(m.t.Context(), length)
	defer end()
	go func() { // a collector that died needs no attack
		select {
		case <-m.collector.Exited():
			end()
		case <-ctx.Done():
		}
	}()
	began, logged := time.Now(), len(m.collector.Log())
	var hostile, others sync.WaitGroup
	left := make(chan struct{})
	for _, a := range m.attackers {
		hostile.Go(func() {
			if err := a.Attack(ctx); err != nil {
				m.t.Errorf("%s: an attacker can't attack: %v", m.row.name, err)
			}
		})
	}
	go func() {
		hostile.Wait()
		close(left)
	}()
	others.Go(func() { m.progress(left, began) })
	for port, path := range m.row.pages {
		others.Go(func() { m.askForPages(left, "http://"+m.places.at(port)+path) })
	}
	if m.row.requests {
		others.Go(func() { m.sendRequests(left) })
	}
	if m.row.starting != nil {
		n := m.row.starting(m.form)
		for i := range n {
			others.Go(func() {
				// They start one after the other, during the attack.
				if pause(ctx, length/10+length/2*time.Duration(i)/time.Duration(n)) {
					m.starting.life(m.t.Context(), 200, 1000, patience)
				}
			})
		}
	}
	if m.row.terminate > 0 {
		pause(ctx, time.Duration(float64(length)*m.row.terminate))
		m.terminate()
		end()
	}
	<-left
	others.Wait()
	m.row.readLog(m.collector.Log()[logged:], time.Since(began))
	for _, a := range m.attackers {
		m.row.sent = append(m.row.sent, a.Sent())
	}
}

// progress prints the state of the attack every 5 s.
func (m *run) progress(left <-chan struct{}, began time.Time) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-left:
			return
		case <-tick.C:
			resident, peak := m.memory.now()
			var sent []string
			for _, a := range m.attackers {
				sent = append(sent, a.Sent())
			}
			fmt.Printf("%s, %v: %d MiB, peak %d MiB; %s\n", m.row.name, time.Since(began).Round(time.Second), resident>>20, peak>>20, strings.Join(sent, "; "))
		}
	}
}

// client is the client of honest users. It opens a connection for each page.
var client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// askForPages requests a page every second until the attackers have disconnected.
func (m *run) askForPages(left <-chan struct{}, url string) {
	for {
		m.ask(url, func() error { return askForPage(url) })
		select {
		case <-left:
			return
		case <-time.After(time.Second):
		}
	}
}

// maxBusy is the number of times that an honest client repeats a request to a busy server.
const maxBusy = 2

// askForPage requests a page. It repeats the request after the time that a busy server names, as
// browsers and their users do.
func askForPage(url string) error {
	for try := 0; ; try++ {
		response, err := client.Get(url)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close() // all was read, or reading failed
		if err != nil || response.StatusCode == http.StatusOK {
			return err
		}
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if response.StatusCode != http.StatusServiceUnavailable || err != nil || try == maxBusy {
			return fmt.Errorf("got %s", response.Status)
		}
		time.Sleep(time.Duration(seconds) * time.Second)
	}
}

// sendRequests sends an honest span four times a second until the attackers have disconnected.
func (m *run) sendRequests(left <-chan struct{}) {
	client, end, err := otlpClient(m.places.at(otlpPort))
	require.NoError(m.t, err)
	defer end()
	for id := uint64(1); ; id++ {
		m.ask("OTLP", func() error {
			ctx, cancel := context.WithTimeout(m.t.Context(), 10*time.Second)
			defer cancel()
			traces := ptrace.NewTraces()
			addSpan(traces, "honest", honestRequest, id)
			_, err := client.Export(ctx, ptraceotlp.NewExportRequestFromTraces(traces))
			return err
		})
		select {
		case <-left:
			return
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// ask makes a request, and counts the request and its answer.
func (m *run) ask(what string, request func() error) {
	began := time.Now()
	err := request()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	m.slowestAnswer = max(m.slowestAnswer, time.Since(began))
	if err == nil {
		m.answered++
	} else if len(m.unanswered) < 3 {
		m.unanswered = append(m.unanswered, fmt.Sprintf("%s: %v", what, err))
	}
}

// lastPart is the last part of the time after an attack. The memory of its end is the least in this part: at one moment,
// the process may have as much garbage as live memory.
const lastPart = 10 * time.Second

// recover waits until a new agent is served and memory is down, and in the full form for the rest
// of 30 s.
func (m *run) recover() {
	began, b := time.Now(), boundOf(m.row.name)
	served := make(chan bool, 1)
	go func() { served <- m.later.life(m.t.Context(), 50, 1000, b.recovers) }()
	isServed := false
	for m.row.recovered < 0 && time.Since(began) < b.recovers && !m.hasDied() {
		select {
		case isServed = <-served:
		case <-time.After(100 * time.Millisecond):
		}
		resident, _ := m.memory.now()
		if isServed && (resident-m.row.before)>>20 <= b.leftover {
			m.row.recovered = time.Since(began)
		}
	}
	if !isServed && !m.hasDied() {
		<-served
	}
	if m.form.full {
		pause(m.t.Context(), b.recovers-lastPart-time.Since(began))
	}
	m.memory.restartLeast()
	if m.form.full {
		pause(m.t.Context(), b.recovers-time.Since(began))
	}
	m.row.after = m.memory.stays()
	if m.row.afterwards != nil && !m.hasDied() {
		m.row.afterwards(m.t, m.places, m.row)
	}
}

// awaitDelivery waits until the backend has all calls, or until patience is over.
func (m *run) awaitDelivery() {
	calls := int64(0)
	for _, of := range []*honest{m.steady, m.starting, m.later} {
		n, _, _, _, _ := of.sums()
		calls += n
	}
	m.row.calls = calls
	for began := time.Now(); time.Since(began) < patience && !m.hasDied(); pause(m.t.Context(), 100*time.Millisecond) {
		if m.row.delivered, _, _ = m.received(); m.row.delivered >= calls {
			break
		}
	}
	_, requests, again := m.received()
	if m.row.requests {
		m.row.notes = append(m.row.notes, fmt.Sprintf("%d honest OTLP spans delivered", requests))
	}
	if again > 0 {
		m.row.notes = append(m.row.notes, fmt.Sprintf("%d calls delivered again", again))
	}
}

// hasDied reports whether the process has ended by itself.
func (m *run) hasDied() bool {
	if m.row.ended > 0 || m.row.died != "" {
		return m.row.died != ""
	}
	select {
	case <-m.collector.Exited():
		m.row.died = fmt.Sprint(m.collector.Exit())
		if m.memory.isTooMuch() {
			m.row.died = fmt.Sprintf("the test ended it at %d GiB", tooMuch>>30)
		}
		log := m.collector.Log()
		if at := strings.Index(log, "fatal error:"); at >= 0 {
			line, _, _ := strings.Cut(log[at:], "\n")
			m.row.died += ", " + line
		}
		return true
	default:
		return false
	}
}

// terminate sends SIGTERM to the process, and waits for its end.
func (m *run) terminate() {
	if m.hasDied() {
		return
	}
	m.count()
	// On a busy machine other programs may be the reason that a row exceeds a bound.
	if ran, waited := processorTime(m.collector.PID()); waited > ran {
		m.row.notes = append(m.row.notes, fmt.Sprintf("its threads ran %v, and waited %v for a processor", ran.Round(time.Second), waited.Round(time.Second)))
	}
	m.collector.Terminate(m.t)
	began := time.Now()
	select {
	case <-m.collector.Exited():
		m.row.ended = time.Since(began)
		if err := m.collector.Exit(); err != nil {
			m.row.wrong = append(m.row.wrong, fmt.Sprintf("it ended with %v after SIGTERM", err))
		}
	case <-time.After(time.Minute):
		m.row.ended = time.Since(began)
		m.collector.Kill()
	}
}

// finish completes the row.
func (m *run) finish() {
	r := m.row
	_, r.peak = m.memory.now()
	_, r.started, r.traced, r.slowest, r.harmed = m.starting.sums()
	_, started, traced, _, harmed := m.steady.sums()
	if r.terminate == 0 && r.died == "" {
		r.started += started
		r.traced += traced
	}
	_, _, _, _, later := m.later.sums()
	for _, how := range append(harmed, later...) {
		// A program whose tracing ends because the collector ends continues to run.
		if r.terminate == 0 && r.died == "" || strings.HasPrefix(how, "hung") || strings.HasPrefix(how, "died") || strings.HasPrefix(how, "killed") {
			r.harmed = append(r.harmed, how)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r.asked, r.answered, r.slowestAnswer = m.asked, m.answered, m.slowestAnswer
	r.notes = append(r.notes, m.unanswered...)
}

// lossCounters matches the counters of refused, shed and dropped data.
var lossCounters = regexp.MustCompile(`^otelcol_[a-z_]*(refused|dropped|evict|shed|closed|late_|missing|discard|folded|forgotten|turned|ignored|truncated|overflow|unread|give_way|slot|given_up|cut|unheard|too_deep)[a-z_]*$`)

// count reads those counters.
func (m *run) count() {
	response, err := client.Get(m.collector.MetricsURL())
	if err != nil {
		m.row.notes = append(m.row.notes, fmt.Sprintf("its own metrics: %v", err))
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		m.row.notes = append(m.row.notes, fmt.Sprintf("its own metrics: %v", err))
		return
	}
	sums := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		name, labels, _ := strings.Cut(series, "{")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || n == 0 || !lossCounters.MatchString(name) {
			continue
		}
		name = strings.TrimPrefix(name, "otelcol_")
		for _, label := range strings.Split(labels, ",") {
			if key, of, _ := strings.Cut(label, "="); slices.Contains([]string{"reason", "cause", "kind", "holder"}, key) {
				name += " " + strings.Trim(of, `"`)
			}
		}
		sums[name] += n
	}
	for name, n := range sums {
		m.row.counters = append(m.row.counters, fmt.Sprintf("%s %.0f", name, n))
	}
	slices.Sort(m.row.counters)
}

// newcomerIsShown checks that the flame graphs show a new service within a minute.
func newcomerIsShown(t testing.TB, p places, r *row) {
	client, end, err := otlpClient(p.at(otlpPort))
	require.NoError(t, err)
	defer end()
	const newcomer, within = "a-newcomer", time.Minute
	for began, id := time.Now(), uint64(1<<40); time.Since(began) < within; id++ {
		traces := ptrace.NewTraces()
		addSpan(traces, newcomer, "newcomer", id)
		if _, err := client.Export(t.Context(), ptraceotlp.NewExportRequestFromTraces(traces)); err == nil && isShown(p, newcomer) {
			r.notes = append(r.notes, fmt.Sprintf("a new service is shown after %v", time.Since(began).Round(10*time.Millisecond)))
			return
		}
		pause(t.Context(), time.Second)
	}
	r.wrong = append(r.wrong, fmt.Sprintf("a new service is not shown within %v", within))
}

// isShown reports whether a service is on the first page of the flame graphs.
func isShown(p places, service string) bool {
	response, err := client.Get("http://" + p.at(flamesPort) + "/")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	return err == nil && strings.Contains(string(page), service)
}
