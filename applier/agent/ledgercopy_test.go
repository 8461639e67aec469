package agent

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

const ledgerCopy = `C:\k\` + bundle.LedgerCopy

// TestTheLedgerIsCopiedBesideTheLogs: after every comparison and every bundle; a failure is reported once and tried again.
func TestTheLedgerIsCopiedBesideTheLogs(t *testing.T) {
	w := newWorld(t)
	var log bytes.Buffer
	w.Log, w.Options.LedgerCopy = slog.New(slog.NewTextHandler(&log, nil)), ledgerCopy
	w.turn()
	first := w.file(ledgerCopy)
	if !strings.Contains(first, `C:\\k\\kubelet.conf`) {
		t.Fatalf("%s", first)
	}
	full := true
	writes := 0
	w.host.Faults.Before = func(o simulation.Operation) error {
		if o.Target != ledgerCopy {
			return nil
		}
		writes++
		if full {
			return &applier.FileError{Path: o.Target, Reason: applier.FileDiskFull, Err: errors.New("no space left")}
		}
		return nil
	}
	w.change(mirrors, "server = \"https://mirror\"\n")
	d := w.publish(bundle.ImpactRestart)
	w.turn()
	w.turn()
	if got := w.file(ledgerCopy); got != first || writes != 2 || strings.Count(log.String(), `msg="copying the ledger"`) != 1 {
		t.Errorf("%d writes\n%s\n%s", writes, log.String(), got)
	}
	full = false
	w.turn()
	w.turn()
	if got := w.file(ledgerCopy); !strings.Contains(got, string(d.Bundle)) || writes != 3 {
		t.Errorf("%d writes\n%s", writes, got)
	}
}

// TestTheCopyOfTheLedgerIsBesideLogsOfTheHostAlone: whoever runs the program by hand may log to any folder.
func TestTheCopyOfTheLedgerIsBesideLogsOfTheHostAlone(t *testing.T) {
	for dir, want := range map[string]string{`C:\var\log\wicd`: `C:\var\log\wicd\ledger.json`, "": "", "/tmp/logs": "", "logs": "", `\\server\logs`: ""} {
		if got := (Flags{LogDir: dir}).ParsedOptions().LedgerCopy; got != want {
			t.Errorf("%q: %q, want %q", dir, got, want)
		}
	}
}
