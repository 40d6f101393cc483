// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"fmt"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/logline"
)

// portFiles are all port files. They are looked after while the receiver runs: a session
// daemon that ends removes them, whoever wrote them.
type portFiles struct {
	env   *environment
	files []*watchedFile
	// watching is the goroutine that does so.
	watching sync.WaitGroup
}

// watchedFile is a port file, with what was said of it.
type watchedFile struct {
	*portFile
	// trouble is a burst of checks that found the file another daemon's, or no port file.
	trouble logline.Burst
	// restored is said seldom.
	restored logline.Seldom
}

// claimPortFiles writes the port of an address into all files of the configuration, or
// into none.
func claimPortFiles(env *environment, address net.Addr) (*portFiles, error) {
	p := &portFiles{env: env}
	tcp, ok := address.(*net.TCPAddr)
	if len(env.config.PortFiles) > 0 && (!ok || !tcp.IP.IsUnspecified() && tcp.IP.String() != agentHost) {
		return nil, fmt.Errorf("port_files are set, and endpoint is %s: agents connect to %s: set its host to localhost", address, agentHost)
	}
	for i, path := range env.config.PortFiles {
		file, err := newPortFile(path, tcp.Port)
		if err == nil {
			_, err = file.claim()
		}
		if err != nil {
			p.release()
			return nil, fmt.Errorf("port_files[%d]: %w", i, err)
		}
		p.files = append(p.files, &watchedFile{portFile: file})
	}
	return p, nil
}

// watch looks after the files until the receiver stops.
func (p *portFiles) watch() {
	if len(p.files) > 0 {
		p.watching.Go(p.run)
	}
}

func (p *portFiles) run() {
	ticker := time.NewTicker(p.env.checkPortFiles)
	defer ticker.Stop()
	for {
		select {
		case <-p.env.stopping:
			return
		case <-ticker.C:
		}
		for _, f := range p.files {
			p.check(f)
		}
	}
}

// check writes a file again that is gone or stale, and says it where another daemon has
// taken it.
func (p *portFiles) check(f *watchedFile) {
	written, err := f.claim()
	now := p.env.now()
	if written || err != nil {
		p.env.telemetry.portFileLost()
	}
	if err != nil {
		if since, say := f.trouble.Say(now); say {
			p.env.logger.Error("A port file is no longer this receiver's: agents that read it don't come here",
				zap.Error(err), zap.Int("since_last_line", since))
		}
		return
	}
	f.trouble.Over()
	if !written {
		return
	}
	if since, say := f.restored.Say(now); say {
		p.env.logger.Warn("A port file was gone, and is written again", zap.String("file", f.path), zap.Int("since_last_line", since))
	}
}

// release removes the files that are the receiver's. The receiver has stopped.
func (p *portFiles) release() {
	p.watching.Wait()
	for _, f := range p.files {
		if err := f.release(); err != nil {
			p.env.logger.Error("A port file cannot be removed", zap.String("file", f.path), zap.Error(err))
		}
	}
}

// paths are those of all files.
func (p *portFiles) paths() []string {
	paths := make([]string, len(p.files))
	for i, f := range p.files {
		paths[i] = f.path
	}
	return paths
}
