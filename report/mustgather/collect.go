package mustgather

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/controller/fleet"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/windowsnode"
)

// DefaultDir is where `oc adm must-gather` fetches from.
const DefaultDir = "/must-gather"

// Files at the top of the folder.
const (
	// VersionFile is what `oc adm must-gather` shows: a name and a version, a line each.
	VersionFile = "version"
	// CollectedFile has the time of the collection: how long a node has been silent is judged by it.
	CollectedFile = "collected"
	// MissingFile lists what could not be collected, and why.
	MissingFile = "missing.txt"
)

// Folders of the objects, as `oc adm inspect` has them.
const (
	ofCluster    = "cluster-scoped-resources"
	ofNamespaces = "namespaces"
)

// What is kept of logs, in bytes.
const (
	// logLimit is how much of the end of a log is kept at most.
	logLimit = 10 << 20
	// leastLog is kept of the log of each node, however many there are.
	leastLog = 256 << 10
	// allLogs is what the logs of all nodes may have together.
	allLogs = 512 << 20
)

// parallelNodes are nodes that are asked for their logs at once: one that does not answer takes as long as the request
// may.
const parallelNodes = 20

const (
	modeFile   = 0o644
	modeFolder = 0o755
)

// Source is where everything comes from.
type Source struct {
	Objects objects.Reader
	// Logs returns the end of what the API server serves under a path, such as that of a kubelet's logs: at most so
	// many bytes. It is called for several at once.
	Logs func(ctx context.Context, path string, query map[string]string, limit int64) ([]byte, error)
	// Namespace is that of the operator; Version is that of this program.
	Namespace, Version string
	Now                time.Time
	// Since is the time of the oldest lines of the logs of Pods; zero is all. Of a node's files, a kubelet serves no
	// part by time.
	Since time.Time
}

// Summary is what was collected.
type Summary struct {
	Objects int `json:"objects"`
	Nodes   int `json:"nodes"`
	Logs    int `json:"logs"`
	// Missing is what could not be had, a line each.
	Missing []string `json:"missing,omitempty"`
}

// collection is one run.
type collection struct {
	Source
	dir     string
	nodes   []windowsnode.Node
	pods    []corev1.Pod
	layers  map[string]map[string][]byte
	mutex   sync.Mutex // of summary
	summary Summary
}

// Collect writes the folder. What cannot be had is missing, and listed; an error is a folder that cannot be written, or
// a cluster that does not answer.
func Collect(ctx context.Context, s Source, dir string) (Summary, error) {
	c := &collection{Source: s, dir: dir, layers: map[string]map[string][]byte{}}
	set, err := s.Objects.Read(ctx, wantedObjects(s.Namespace))
	if err != nil {
		return Summary{}, &gather.UnreachableError{Err: err}
	}
	// A folder with both is read as a must-gather: what hosts have sent is not taken for objects, also where one would be empty.
	for _, part := range []string{ofCluster, ofNamespaces} {
		if err := os.MkdirAll(filepath.Join(dir, part), modeFolder); err != nil {
			return Summary{}, fmt.Errorf("writing the folder: %w", err)
		}
	}
	for _, f := range set.Findings {
		c.addMissing("%s (fix: %s)", f.Message, f.Fix)
	}
	for _, read := range []func(objects.Object) error{c.noteObject, c.writeObject} {
		for _, o := range set.Objects {
			if err := read(o); err != nil {
				return Summary{}, err
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(parallelNodes)
	for _, n := range c.nodes {
		group.Go(func() error { return c.writeNode(ctx, n) })
	}
	if err := group.Wait(); err != nil {
		return Summary{}, err
	}
	for _, p := range c.pods {
		if err := c.podLogs(ctx, p); err != nil {
			return Summary{}, err
		}
	}
	c.summary.Nodes = len(c.nodes)
	if len(c.nodes) > 0 {
		c.addMissing(`journal and contents of the nodes (C:\ProgramData\wmco): only the host itself can read them (fix: wmco-node observe over SSH)`)
	}
	slices.Sort(c.summary.Missing)
	missing := strings.Join(c.summary.Missing, "\n") + "\n"
	return c.summary, errors.Join(
		c.writeFile(VersionFile, []byte("windows-machine-config-operator\n"+s.Version+"\n")),
		c.writeFile(CollectedFile, []byte(s.Now.UTC().Format(time.RFC3339)+"\n")),
		c.writeFile(MissingFile, []byte(strings.TrimPrefix(missing, "\n"))),
	)
}

// wantedObjects is everything that is collected: the inputs, the operator's status, and its own objects.
func wantedObjects(namespace string) []objects.Want {
	list := slices.Concat(gather.WantedObjects(namespace), fleet.Wants(namespace))
	own := func(group, kind string) objects.Want {
		return objects.Want{Group: group, Version: "v1", Kind: kind, Namespace: namespace, Optional: true}
	}
	return append(list,
		own("", "Secret"), own("", "ConfigMap"), boundedWant(own("", "Pod")), boundedWant(own("", "Event")), own("apps", "Deployment"),
		own("rbac.authorization.k8s.io", "Role"), own("rbac.authorization.k8s.io", "RoleBinding"), own("coordination.k8s.io", "Lease"),
		// Events about Nodes are in this namespace (client-go tools/record).
		boundedWant(objects.Want{Version: "v1", Kind: "Event", Namespace: "default"}),
	)
}

// boundedWant is a want of what every kubelet may make as much of as it likes.
func boundedWant(w objects.Want) objects.Want {
	w.Bounded = true
	return w
}

func (c *collection) addMissing(format string, args ...any) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.summary.Missing = append(c.summary.Missing, bundle.MaskText(fmt.Sprintf(format, args...)))
}

// writeObject writes one object without its secrets.
func (c *collection) writeObject(o objects.Object) error {
	var u unstructured.Unstructured
	if err := json.Unmarshal(o.JSON, &u.Object); err != nil {
		return fmt.Errorf("reading %s: %w", o.Ref, err)
	}
	if !c.isRelevant(u) {
		return nil
	}
	redactObject(&u)
	text, err := yaml.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("writing %s: %w", o.Ref, err)
	}
	c.summary.Objects++
	return c.writeFile(pathOf(o), text)
}

// noteObject keeps the parts of an object that are needed later.
func (c *collection) noteObject(o objects.Object) error {
	var err error
	switch {
	case o.Group != "":
	case o.Kind == "Node":
		n, err := fleet.DecodeNode(o)
		c.nodes = append(c.nodes, n)
		return err
	case o.Kind == "Pod":
		var p corev1.Pod
		err = json.Unmarshal(o.JSON, &p)
		// A kubelet may make a mirror pod of its own node in each namespace, and answers the request for its log as
		// slowly as it likes.
		if _, mirrors := p.Annotations[corev1.MirrorPodAnnotationKey]; !mirrors {
			c.pods = append(c.pods, p)
		}
	case o.Kind == "Secret":
		var s corev1.Secret
		err = json.Unmarshal(o.JSON, &s)
		c.addLayerPart(s)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", o.Ref, err)
	}
	return nil
}

// isRelevant reports whether an object is about Windows nodes. Of the Events outside of our namespace, those about them
// are, whoever sent them, and those that our programs sent about Nodes that are gone.
func (c *collection) isRelevant(u unstructured.Unstructured) bool {
	if u.GetKind() != "Event" || u.GetNamespace() == c.Namespace {
		return true
	}
	text := func(field ...string) string {
		value, _, _ := unstructured.NestedString(u.Object, field...)
		return value
	}
	if text("involvedObject", "kind") != "Node" {
		return false
	}
	isOurs := slices.ContainsFunc([]string{text("reportingComponent"), text("source", "component")}, func(by string) bool {
		return strings.Contains(by, "windows") || by == bundle.AgentProgram
	})
	about := text("involvedObject", "name")
	return isOurs || slices.ContainsFunc(c.nodes, func(n windowsnode.Node) bool { return n.Name == about })
}

// pathOf is the path of an object as `oc adm inspect` has it.
func pathOf(o objects.Object) string {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind})
	place := path.Join(cmp.Or(o.Group, "core"), plural.Resource, o.Name+".yaml")
	if o.Namespace == "" {
		return path.Join(ofCluster, place)
	}
	return path.Join(ofNamespaces, o.Namespace, place)
}

// writeFile writes a file below the folder.
func (c *collection) writeFile(name string, text []byte) error {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("writing %q: it is outside of the folder", name)
	}
	full := filepath.Join(c.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), modeFolder); err != nil {
		return fmt.Errorf("writing the folder: %w", err)
	}
	if err := os.WriteFile(full, text, modeFile); err != nil {
		return fmt.Errorf("writing the folder: %w", err)
	}
	return nil
}

// writeJSON writes a value.
func (c *collection) writeJSON(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	return c.writeFile(name, append([]byte(bundle.MaskText(string(text))), '\n'))
}

// Collected returns when a folder was collected; false if Collect did not write it. `oc adm must-gather` puts what an
// image writes into a folder of its own. The folder may be from anybody: no link leads out of it, and nothing but the
// beginning of a file is read.
func Collected(dir string) (time.Time, bool) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return time.Time{}, false
	}
	defer root.Close() //nolint:errcheck // only read from
	for _, pattern := range []string{CollectedFile, path.Join("*", CollectedFile)} {
		found, _ := fs.Glob(root.FS(), pattern)
		for _, name := range found {
			if at, err := time.Parse(time.RFC3339, strings.TrimSpace(beginningOf(root, name))); err == nil {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

// beginningOf returns as much of a file as a time may have; empty where it is no file.
func beginningOf(root *os.Root, name string) string {
	if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return "" // opening a pipe would wait for its writer
	}
	file, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // only read from
	text, _ := io.ReadAll(io.LimitReader(file, 1<<10))
	return string(text)
}

// ofLayer is the written form of a layer: its entries with their digests.
type ofLayer struct {
	Digest bundle.Digest `json:"digest"`
	// Missing is why there are no entries.
	Missing string        `json:"missing,omitempty"`
	Layer   *bundle.Layer `json:"layer,omitempty"`
}
