// Command fakenode speaks the protocol of the node agent and keeps what it is sent, without applying any of it. FAKE in the
// environment lists its faults.
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

	"wmco/applier/ownfile"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// Faults.
const (
	hangs    = "hangs"    // observe prints nothing and does not end
	dies     = "dies"     // apply begins to answer and is killed
	chatters = "chatters" // a byte order mark and CRLF
	refuses  = "refuses"  // apply is refused
	floods   = "floods"   // apply prints before it reads, more than any window holds
	drowsy   = "drowsy"   // verify does not end
)

// damaged is the exit status of the node agent if its own file does not match its name.
const damaged = 125

func main() {
	if err := ownfile.Check(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fakenode:", err)
		os.Exit(damaged)
	}
	n := node{root: os.Getenv("WMCO_NODE_ROOT"), fake: strings.Split(os.Getenv("FAKE"), ","), in: os.Stdin, out: os.Stdout}
	os.Exit(n.run(os.Args[1:], os.Stderr))
}

// hang does not end before the process that started it, or the machine, which its test removes. That process may have ended before this line.
func (n node) hang() {
	for parent := os.Getppid(); os.Getppid() == parent; {
		if _, err := os.Stat(n.root); err != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	os.Exit(2)
}

// status ends the program without a message.
type status int

func (s status) Error() string { return fmt.Sprint("status ", int(s)) }

func (n node) run(args []string, stderr io.Writer) int {
	err := n.command(args)
	var silent status
	if errors.As(err, &silent) {
		return int(silent)
	}
	if err != nil {
		fmt.Fprintln(stderr, "fakenode:", err)
		return 2
	}
	return 0
}

func (n node) command(args []string) error {
	if len(args) == 0 {
		return errors.New("no command")
	}
	if slices.Contains(args, "--text") {
		n.in = base64.NewDecoder(base64.StdEncoding, n.in)
	}
	switch args[0] {
	case "version":
		return n.version()
	case "facts":
		return n.answer(bundle.Facts{Schema: bundle.FactsSchema, HostName: "simulated", Addresses: []string{"127.0.0.1"}, OSBuild: "10.0.20348"})
	case "confirm":
		return os.WriteFile(filepath.Join(n.root, "confirmed"), []byte(args[1]), 0o600)
	case "verify":
		if n.is(drowsy) {
			n.hang()
		}
		return n.observe()
	case "observe":
		return n.observe()
	case "apply":
		return n.apply(slices.Contains(args, "--dry-run"))
	}
	return fmt.Errorf("no such command: %s", args[0])
}

func (n node) version() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	return n.answer(map[string]any{"version": "fake", "digest": "sha256:" + hex.EncodeToString(sum[:])})
}

func (n node) answer(v any) error {
	enc := json.NewEncoder(n.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

type node struct {
	root string
	fake []string
	in   io.Reader
	out  io.Writer
}

func (n node) is(what string) bool { return slices.Contains(n.fake, what) }

func (n node) applied() bundle.Digest {
	data, _ := os.ReadFile(filepath.Join(n.root, "applied"))
	return bundle.Digest(data)
}

func (n node) part(p archive.Part) string { return filepath.Join(n.root, "parts", p.Name()) }

func (n node) missing(r *archive.Reader) []protocol.Missing {
	known := map[bundle.Digest]archive.Content{}
	for _, c := range r.Contents() {
		known[c.Digest] = c
	}
	var all []protocol.Missing
	for _, d := range archive.Needs(r.Manifest) {
		c := known[d]
		m := protocol.Missing{Digest: d}
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

func (n node) observe() error {
	r, err := archive.NewReader(n.in)
	if err != nil {
		return err
	}
	if n.is(hangs) {
		n.hang()
	}
	o := protocol.Observation{
		Schema: protocol.Schema, Program: "fake", Bundle: r.Manifest.Digest, Applied: n.applied(),
		InSync: n.applied() == r.Manifest.Digest, Impact: bundle.ImpactNone, Actions: []protocol.Action{}, Missing: n.missing(r),
	}
	if n.is(chatters) {
		data, err := json.MarshalIndent(o, "", " ")
		fmt.Fprint(n.out, "\ufeff"+strings.ReplaceAll(string(data), "\n", "\r\n")+"\r\n")
		return err
	}
	if err := n.answer(o); err != nil {
		return err
	}
	if !o.InSync {
		return status(1)
	}
	return nil
}

func (n node) emit(e protocol.Event) {
	e.Schema, e.Time = protocol.Schema, time.Now().UTC()
	_ = json.NewEncoder(n.out).Encode(e)
}

func (n node) apply(dry bool) error {
	if n.is(floods) {
		for range 40000 {
			n.emit(protocol.Event{Event: protocol.EventNote, Message: strings.Repeat("x", 200)})
		}
	}
	r, err := archive.NewReader(n.in)
	if err != nil {
		return err
	}
	if n.is(refuses) {
		n.emit(protocol.Event{Event: protocol.EventResult, Result: protocol.ResultRefused, Message: "no"})
		return status(2)
	}
	if err := n.take(r); err != nil {
		return err
	}
	result := protocol.Event{Event: protocol.EventResult, Bundle: r.Manifest.Digest, Result: protocol.ResultApplied, Written: len(r.Contents())}
	switch missing := n.missing(r); {
	case dry:
		result.Result = protocol.ResultPlanned
	case len(missing) > 0:
		result.Result, result.Missing = protocol.ResultRefused, missing
	default:
		if err := os.WriteFile(filepath.Join(n.root, "applied"), []byte(r.Manifest.Digest), 0o600); err != nil {
			return err
		}
	}
	n.emit(result)
	if result.Result == protocol.ResultRefused {
		return status(2)
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
			n.emit(protocol.Event{Event: protocol.EventNote, Message: "its last words"})
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			n.hang()
		}
		if err := keep(n.part(p), data); err != nil {
			return err
		}
		n.emit(protocol.Event{Event: protocol.EventReceived, Content: bundle.Digest("sha256:" + p.SHA256)})
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
