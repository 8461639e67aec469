package nodecli

import (
	"context"
	"io"
	"testing"
	"time"

	"wmco/applier"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/bundletest"
)

// memory is a host in memory.
type memory struct {
	Host

	host applier.Host
}

// Open implements Host.
func (m memory) Open() (applier.Host, error) { return m.host, nil }

// OpenLinked implements Host.
func (memory) OpenLinked(ctx context.Context, host applier.Host, path string) (io.ReadCloser, error) {
	return host.Open(ctx, path)
}

// ticking is the clock of this computer.
type ticking struct{}

func (ticking) Now() time.Time { return time.Now() }

func (ticking) SinceBoot() time.Duration { return time.Since(time.Time{}) }

func (ticking) After(d time.Duration) <-chan time.Time { return time.After(d) }

// TestTheEngineHasTheTable: no flag and no variable of the environment is between the program and its table.
func TestTheEngineHasTheTable(t *testing.T) {
	clock := hostsim.NewClock(hostsim.Epoch())
	e, err := (Program{Clock: clock, Host: memory{host: hostsim.NewMemory(hostsim.Facts(), clock)}}).engine("test")
	if err != nil {
		t.Fatal(err)
	}
	b := bundletest.New().Bundle(t)
	if err := e.Permits(b); err != nil {
		t.Error(err)
	}
	b.Cluster.Services[0].Name = "WinDefend"
	if e.Permits(b) == nil {
		t.Error("a foreign service is permitted")
	}
}
