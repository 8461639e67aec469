// Command inputs writes what the payload steps of hack/windows-steps need beside what wmco writes:
//
//	inputs host FACTS                                     the name and the address of the first host of the facts
//	inputs certificates FOLDER NODE                       internal/test/winsteps/standin's certificates
//	inputs publish FOLDER FACTS PAYLOAD NODE PATH...      the bundle of a node as the operator publishes it: the objects are in the paths
//
// Exit status: 0 done; 1 not.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/inputs/desired"
	"wmco/controller/layers"
	"wmco/internal/test/winsteps/standin"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "inputs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "host":
		return printHost(args[1])
	case len(args) == 3 && args[0] == "certificates":
		if err := os.MkdirAll(args[1], 0o700); err != nil {
			return err
		}
		return standin.WriteCertificates(args[1], args[2], time.Now())
	case len(args) > 5 && args[0] == "publish":
		return publishBundle(ctx, source{folder: args[1], facts: args[2], payload: args[3], node: args[4], from: args[5:]})
	}
	return errors.New("usage: inputs host FACTS | inputs certificates FOLDER NODE | inputs publish FOLDER FACTS PAYLOAD NODE PATH, and more paths")
}

func printHost(path string) error {
	facts, err := gather.FactsFile(path)
	if err != nil {
		return err
	}
	if len(facts) == 0 || facts[0].HostName == "" || facts[0].DefaultRoute.Address == "" {
		return fmt.Errorf("%s: no host with a name and a default route", path)
	}
	fmt.Println(strings.ToLower(facts[0].HostName), facts[0].DefaultRoute.Address)
	return nil
}

// source is what a bundle is rendered from, and where it is written to.
type source struct {
	folder, facts, payload, node string
	from                         []string
}

func publishBundle(ctx context.Context, s source) error {
	w, err := s.wanted(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	text, err := w.DesiredAnnotation(gather.OperatorNamespace, bundle.ImpactRestart).Encode()
	if err != nil {
		return err
	}
	files := map[string][]byte{standin.FileDesired: []byte(text)}
	for _, p := range append(w.Cluster.Secrets, w.Own.Secrets...) {
		files[p.Name] = p.Data
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(s.folder, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// wanted renders the bundle as `wmco render` does.
func (s source) wanted(ctx context.Context) (layers.Wanted, error) {
	facts, err := gather.FactsFile(s.facts)
	if err != nil {
		return layers.Wanted{}, err
	}
	reader, complete, err := gather.OpenSources(s.from, strings.NewReader(""), gather.Kubeconfig{})
	if err != nil {
		return layers.Wanted{}, err
	}
	hosts, err := desired.ReadHosts(ctx, desired.Source{
		Objects: reader, Gather: gather.Options{Namespace: gather.OperatorNamespace, Complete: complete, Facts: facts},
		Payload: s.payload, Key: desired.UserKey(),
	})
	if err != nil {
		return layers.Wanted{}, err
	}
	nodes, err := hosts.SelectByNode(s.node)
	if err != nil {
		return layers.Wanted{}, err
	}
	all, findings, err := hosts.RenderBundles(nodes)
	if err != nil {
		return layers.Wanted{}, err
	}
	if findings.Refused() {
		return layers.Wanted{}, fmt.Errorf("the inputs are refused: %+v", findings)
	}
	return layers.PackBundle(s.node, all[0].Bundle.Bundle)
}
