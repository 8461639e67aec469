// Command kubelets prints what the kubelet of one minor version of Kubernetes knows, as JSON: its feature gates, its flags on Windows, and
// the fields of its configuration. The kubelet's own packages say so; hack/kubelets builds this program with the pins of the payload.
//
//	payload/kubernetes-1.36/go.mod --> this program --> render/kubelets/1.36.json
//
// It runs on Linux. hack/kubelets builds it with a copy of package options that has the files of a Windows build, so that the flags are those
// of Windows.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
)

// table is the file of one minor version.
type table struct {
	// Version is that of k8s.io/kubernetes, Pins the digest of the go.mod and go.sum that it was built with.
	Version string `json:"version"`
	Pins    string `json:"pins"`
	// Gates are "on" or "off" by default, and "locked on" or "locked off" where no other value is accepted.
	Gates map[string]string `json:"gates"`
	// Needs are the gates that must be on where a gate is on.
	Needs map[string][]string `json:"needs"`
	// Flags are those of a Windows build.
	Flags []string `json:"flags"`
	// Fields are the JSON paths of KubeletConfiguration.
	Fields []string `json:"fields"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "kubelets:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: kubelets DIGEST-OF-THE-PINS")
	}
	// The kubelet registers these when it starts (cmd/kubelet/app, init).
	if err := logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		return fmt.Errorf("registering the gates of logging: %w", err)
	}
	flags, err := windowsFlags()
	if err != nil {
		return err
	}
	t := table{Version: kubernetesVersion(), Pins: os.Args[1], Gates: map[string]string{}, Needs: needs(utilfeature.DefaultMutableFeatureGate), Flags: flags}
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		value := "off"
		if spec.Default {
			value = "on"
		}
		if spec.LockToDefault {
			value = "locked " + value
		}
		t.Gates[string(name)] = value
	}
	t.Fields = slices.Sorted(slices.Values(fields(reflect.TypeFor[kubeletv1beta1.KubeletConfiguration](), "", nil)))
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", " ")
	if err := e.Encode(t); err != nil {
		return err
	}
	_, err = os.Stdout.Write(out.Bytes())
	return err
}

func windowsFlags() ([]string, error) {
	server, err := options.NewKubeletServer()
	if err != nil {
		return nil, fmt.Errorf("preparing the kubelet's flags: %w", err)
	}
	set := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	server.AddFlags(set)
	options.AddGlobalFlags(set)
	names := []string{"help"}
	set.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	slices.Sort(names)
	if names = slices.Compact(names); !slices.Contains(names, "windows-service") || slices.Contains(names, "housekeeping-interval") {
		return nil, fmt.Errorf("the flags are not those of a Windows build: run hack/kubelets")
	}
	return names, nil
}

// needs returns the dependencies between gates. The kubelets before 1.35 have none.
func needs(gates featuregate.MutableVersionedFeatureGate) map[string][]string {
	out := map[string][]string{}
	g, ok := any(gates).(interface {
		Dependencies() map[featuregate.Feature][]featuregate.Feature
	})
	if !ok {
		return out
	}
	for name, list := range g.Dependencies() {
		for _, n := range list {
			out[string(name)] = append(out[string(name)], string(n))
		}
		slices.Sort(out[string(name)])
	}
	return out
}

// fields adds the JSON paths of a struct. Types that encode themselves, such as durations, are one field.
func fields(t reflect.Type, path string, above []reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	own := reflect.TypeFor[json.Marshaler]()
	if t.Kind() != reflect.Struct || t.Implements(own) || reflect.PointerTo(t).Implements(own) || slices.Contains(above, t) {
		return nil
	}
	var out []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			out = append(out, fields(f.Type, path, append(above, t))...)
		case name != "" && name != "-":
			out = append(out, path+name)
			out = append(out, fields(f.Type, path+name+".", append(above, t))...)
		}
	}
	return out
}

// kubernetesVersion is the version of k8s.io/kubernetes that this program was built with.
func kubernetesVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == "k8s.io/kubernetes" {
			return m.Version
		}
	}
	return ""
}
