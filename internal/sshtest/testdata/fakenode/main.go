// Command fakenode speaks the protocol of the node program and keeps what it is sent, without applying any of it. FAKE in
// the environment makes it misbehave.
package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"wmco/applier"
	"wmco/render/bundle"
	"wmco/render/bundle/archive"
)

// Misbehaviours.
const (
	hangs    = "hangs"    // observe says nothing and does not end
	dies     = "dies"     // apply ends in the middle, by a signal
	chatters = "chatters" // a byte order mark and CRLF
	refuses  = "refuses"  // apply is refused
	floods   = "floods"   // apply prints before it reads, more than any window holds
	slow     = "slow"     // observe takes a second
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fakenode:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("no command")
	}
	root := os.Getenv("WMCO_NODE_ROOT")
	fake := strings.Split(os.Getenv("FAKE"), ",")
	stdin := io.Reader(os.Stdin)
	if slices.Contains(args, "--text") {
		stdin = base64.NewDecoder(base64.StdEncoding, os.Stdin)
	}
	n := node{root: root, fake: fake}
	switch args[0] {
	case "version":
		return version()
	case "facts":
		return answer(bundle.Facts{Schema: bundle.FactsSchema, HostName: "simulated", Addresses: []string{"127.0.0.1"}, OSBuild: "10.0.20348"})
	case "confirm":
		return os.WriteFile(filepath.Join(root, "confirmed"), []byte(args[1]), 0o600)
	case "observe", "verify":
		return n.observe(stdin)
	case "apply":
		return n.apply(stdin, slices.Contains(args, "--dry-run"))
	}
	return fmt.Errorf("no such command: %s", args[0])
}

func version() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	return answer(map[string]any{"version": "fake", "digest": "sha256:" + hex.EncodeToString(sum[:])})
}

func answer(v any) error {
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

type node struct {
	root string
	fake []string
}

func (n node) is(what string) bool { return slices.Contains(n.fake, what) }

func (n node) applied() bundle.Digest {
	data, _ := os.ReadFile(filepath.Join(n.root, "applied"))
	return bundle.Digest(data)
}

func (n node) part(p archive.Part) string { return filepath.Join(n.root, "parts", p.Name()) }

func (n node) missing(r *archive.Reader) []applier.Missing {
	known := map[bundle.Digest]archive.Content{}
	for _, c := range r.Contents {
		known[c.Digest] = c
	}
	var all []applier.Missing
	for _, d := range archive.Needs(r.Manifest) {
		c := known[d]
		m := applier.Missing{Digest: d}
		for i := range c.Parts() {
			if _, err := os.Stat(n.part(c.Part(i + 1))); err == nil {
				m.Parts = append(m.Parts, i+1)
			}
		}
		if c.Parts() == 0 || len(m.Parts) < c.Parts() {
			all = append(all, m)
		}
	}
	return all
}

func (n node) observe(stdin io.Reader) error {
	r, err := archive.NewReader(stdin)
	if err != nil {
		return err
	}
	if n.is(hangs) {
		time.Sleep(time.Hour)
	}
	if n.is(slow) {
		time.Sleep(time.Second)
	}
	o := applier.Observation{
		Schema: applier.Schema, Program: "fake", Bundle: r.Manifest.Digest, Applied: n.applied(),
		InSync: n.applied() == r.Manifest.Digest, Impact: bundle.ImpactNone, Actions: []applier.Action{}, Missing: n.missing(r),
	}
	if n.is(chatters) {
		data, err := json.MarshalIndent(o, "", " ")
		fmt.Print("\ufeff" + strings.ReplaceAll(string(data), "\n", "\r\n") + "\r\n")
		return err
	}
	if err := answer(o); err != nil {
		return err
	}
	if !o.InSync {
		os.Exit(1)
	}
	return nil
}

func emit(e applier.Event) {
	e.Schema, e.Time = applier.Schema, time.Now().UTC()
	_ = json.NewEncoder(os.Stdout).Encode(e)
}

func (n node) apply(stdin io.Reader, dry bool) error {
	if n.is(floods) {
		for range 40000 {
			emit(applier.Event{Event: applier.EventNote, Message: strings.Repeat("x", 200)})
		}
	}
	r, err := archive.NewReader(stdin)
	if err != nil {
		return err
	}
	if n.is(refuses) {
		emit(applier.Event{Event: applier.EventResult, Result: applier.ResultRefused, Message: "no"})
		os.Exit(2)
	}
	if err := n.take(r); err != nil {
		return err
	}
	result := applier.Event{Event: applier.EventResult, Bundle: r.Manifest.Digest, Result: applier.ResultApplied, Written: len(r.Contents)}
	switch missing := n.missing(r); {
	case dry:
		result.Result = applier.ResultPlanned
	case len(missing) > 0:
		result.Result, result.Missing = applier.ResultRefused, missing
	default:
		if err := os.WriteFile(filepath.Join(n.root, "applied"), []byte(r.Manifest.Digest), 0o600); err != nil {
			return err
		}
	}
	emit(result)
	if result.Result == applier.ResultRefused {
		os.Exit(2)
	}
	return nil
}

// take keeps every part that came whole.
func (n node) take(r *archive.Reader) error {
	if err := os.MkdirAll(filepath.Join(n.root, "parts"), 0o700); err != nil {
		return err
	}
	for {
		p, data, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n.is(dies) {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			time.Sleep(time.Hour)
		}
		if err := keep(n.part(p), data); err != nil {
			return err
		}
		emit(applier.Event{Event: applier.EventReceived, Content: bundle.Digest("sha256:" + p.SHA256)})
	}
}

func keep(path string, data io.Reader) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
