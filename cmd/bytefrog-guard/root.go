// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/config/configtls"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog/guard"
	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
	"github.com/callbraid/callbraid/internal/componentkit/slots"
)

// settings are the values of the flags.
type settings struct {
	options         guard.Options
	listen, metrics string
	shutdownTimeout time.Duration
	// metricsConnections is how many connections there are for metrics.
	metricsConnections int
	useTLS             bool
	tls                configtls.ClientConfig
	verbose            bool
	log                *lines
}

// rootCommand returns the command, which logs its events.
func rootCommand(log *lines) *cobra.Command {
	s := &settings{log: log, options: guard.DefaultOptions(), tls: configtls.NewDefaultClientConfig()}
	command := &cobra.Command{
		Use:   "bytefrog-guard",
		Short: "Let traced programs survive their collector",
		Long: `bytefrog-guard runs beside programs that the Bytefrog tracer traces: their agents
connect to it, and it connects to the collector. An agent that loses its collector
hangs its program forever. The guard suspends the agent instead, tries to reach that
collector or another, and continues the trace there as a new run.

SIGINT and SIGTERM end it in order: programs run on untraced. A second signal ends it
immediately, at which programs can hang. SIGHUP does nothing.`,
		Example: `  bytefrog-guard --collector collector:8765
  bytefrog-guard --listen localhost:8764 --collector a:8765 --collector b:8765 --tls
  bytefrog-guard --collector collector:8765 --give-up 10m --metrics localhost:9464`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return s.run(c) },
	}
	command.CompletionOptions.HiddenDefaultCmd = true
	s.register(command)
	return command
}

func (s *settings) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	o := &s.options
	flags.StringVar(&s.listen, "listen", "localhost:8764", "address that agents connect to, host:port")
	flags.StringSliceVar(&o.Collectors, "collector", nil, "address of a collector, host:port; several are tried in turn")
	flags.DurationVar(&o.GiveUp, "give-up", o.GiveUp, "end tracing when no collector could be reached for this time (0: never)")
	flags.DurationVar(&o.StartTimeout, "start-timeout", o.StartTimeout, "how long a program waits for a collector before its main, then it runs untraced")
	flags.IntVar(&o.Queue, "queue", o.Queue, "bytes that wait for a data connection before the program waits for a slow collector; at most an eighth of --memory")
	flags.DurationVar(&o.MaxWait, "max-wait", o.MaxWait, "longest wait of the program for a collector that accepts nothing at all")
	flags.DurationVar(&o.MaxWaitPerSecond, "max-wait-per-second", o.MaxWaitPerSecond, "longest wait of the program in each second for a slow collector; 1s: as long as the collector is slow")
	flags.IntVar(&o.Memory, "memory", o.Memory, "bytes of an agent that may wait for a slow collector; at a quarter of it the guard suspends tracing")
	flags.IntVar(&o.TotalMemory, "total-memory", o.TotalMemory, "bytes of waiting data and names of all agents together; 0: a quarter of the memory that the process may use, at most 1 GiB")
	flags.IntVar(&o.NamesMemory, "names-memory", o.NamesMemory, "bytes of names of an agent that the guard keeps for the next collector")
	flags.DurationVar(&o.Silence, "silence", o.Silence, "disconnect a collector that accepts no waiting data for this time")
	flags.DurationVar(&o.Retry.InitialInterval, "retry-initial", o.Retry.InitialInterval, "first pause before collectors are tried again")
	flags.DurationVar(&o.Retry.MaxInterval, "retry-max", o.Retry.MaxInterval, "longest pause before collectors are tried again")
	flags.DurationVar(&o.ConnectTimeout, "connect-timeout", o.ConnectTimeout, "longest time in which a collector accepts a connection, and answers on it")
	flags.DurationVar(&o.HandshakeTimeout, "handshake-timeout", o.HandshakeTimeout, "longest time in which a new connection sends its hello")
	flags.IntVar(&o.MaxAgents, "max-agents", o.MaxAgents, "agents at the same time; others are refused")
	flags.IntVar(&o.MaxNewConnections, "max-new-connections", o.MaxNewConnections, "connections that belong to no agent yet or are being refused; beyond that a silent one is closed for a new one")
	flags.DurationVar(&s.shutdownTimeout, "shutdown-timeout", 15*time.Second, "longest time of an orderly end")
	flags.StringVar(&s.metrics, "metrics", "", "address, host:port, that serves metrics for Prometheus at /metrics (default: none)")
	flags.IntVar(&s.metricsConnections, "metrics-max-connections", 2048, "connections for metrics, of which one address has at most half")
	flags.BoolVarP(&s.verbose, "verbose", "v", false, "log the commands to agents and collectors")
	flags.BoolVar(&s.useTLS, "tls", false, "connect to collectors with TLS")
	flags.StringVar(&s.tls.CAFile, "tls-ca", "", "file with the certificates (PEM) that the collector's is checked against (default: the system's)")
	flags.StringVar(&s.tls.CertFile, "tls-cert", "", "file with the guard's own certificate (PEM)")
	flags.StringVar(&s.tls.KeyFile, "tls-key", "", "file with the key (PEM) of the guard's own certificate")
	flags.StringVar(&s.tls.ServerName, "tls-server-name", "", "name that the collector's certificate must have (default: its host)")
	flags.BoolVar(&s.tls.InsecureSkipVerify, "tls-insecure-skip-verify", false, "accept any certificate of the collector: for tests only")
	c.MarkFlagsRequiredTogether("tls-cert", "tls-key")
}

// check checks the flags, and completes the options.
func (s *settings) check(ctx context.Context) error {
	if err := setting.ListenAddress("listen", s.listen, "localhost:8764"); err != nil {
		return err
	}
	if err := setting.Within("shutdown-timeout", s.shutdownTimeout, time.Second, time.Hour); err != nil {
		return err
	}
	if err := setting.Between("metrics-max-connections", s.metricsConnections, 1, 100_000); err != nil {
		return err
	}
	if s.metrics != "" {
		if err := setting.ListenAddress("metrics", s.metrics, "localhost:9464"); err != nil {
			return err
		}
	}
	t := s.tls
	if !s.useTLS {
		if t.CAFile != "" || t.CertFile != "" || t.ServerName != "" || t.InsecureSkipVerify {
			return errors.New("--tls-…: expected --tls too")
		}
		return nil
	}
	config, err := t.LoadTLSConfig(ctx)
	if err != nil {
		return fmt.Errorf("--tls-…: %w", err)
	}
	s.options.TLS = config
	return nil
}

// run is the command.
func (s *settings) run(c *cobra.Command) error {
	if err := s.check(c.Context()); err != nil {
		return err
	}
	// A log without a reader, or a closed terminal, is no reason to end: programs would hang.
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
	level := zap.InfoLevel
	if s.verbose {
		level = zap.DebugLevel
	}
	logger := s.log.logger(level)
	s.options.Logger = logger
	guard, err := guard.New(s.options)
	if err != nil {
		return err
	}
	slots.WarnIfShort(logger, "--max-new-connections", s.options.MaxNewConnections)
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if s.metrics != "" {
		server, err := serveMetrics(s.metrics, s.metricsConnections, guard, logger, s.log)
		if err != nil {
			_ = listener.Close()
			return fmt.Errorf("--metrics: %w", err)
		}
		defer server.Close()
	}
	openlistener.Listener{
		Component: "bytefrog-guard --listen", Address: listener.Addr(), Remedy: "set --listen to localhost: the protocol has no names of agents",
	}.Warn(logger)
	logger.Info("Agents may connect", zap.Stringer("listen", listener.Addr()), zap.Strings("collectors", s.options.Collectors))
	return s.serve(guard, listener, logger)
}

// serve serves until the first signal, and then ends in order until the second, or until
// the time for that is over.
func (s *settings) serve(guard *guard.Guard, listener net.Listener, logger *zap.Logger) error {
	first, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- guard.Serve(listener) }()
	var failed error
	select {
	case <-first.Done():
	case failed = <-served:
	}
	stop()
	second, stopSecond := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stopSecond()
	logger.Info("Ending: the guard disconnects agents in order, and their programs run on untraced; another signal ends it immediately")
	ctx, cancel := context.WithTimeout(second, s.shutdownTimeout)
	defer cancel()
	if err := guard.Shutdown(ctx); err != nil {
		return errors.Join(failed, fmt.Errorf("agents were not disconnected in order: %w", err))
	}
	return failed
}

// metricsTimeout is the time in which a request for metrics must arrive, and its answer must be
// read.
const metricsTimeout = 10 * time.Second

// serveMetrics serves metrics until it is closed.
func serveMetrics(address string, connections int, guard *guard.Guard, logger *zap.Logger, log *lines) (*http.Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	openlistener.Listener{
		Component: "bytefrog-guard --metrics", Address: listener.Addr(), Remedy: "set --metrics to localhost",
	}.Warn(logger)
	server := &http.Server{
		Handler: metricsHandler(guard, log), ErrorLog: zap.NewStdLog(log.logger(zap.InfoLevel)),
		ReadHeaderTimeout: metricsTimeout, ReadTimeout: metricsTimeout, WriteTimeout: metricsTimeout, IdleTimeout: time.Minute,
	}
	_, listener = slots.Serve(server, listener, slots.Options{
		Max: connections, Setting: "--metrics-max-connections", Logger: log.logger(zap.InfoLevel),
		Closed: func(slots.Reason) { guard.Counts().Evicted.Add(1) },
	})
	go func() { _ = server.Serve(listener) }()
	return server, nil
}
