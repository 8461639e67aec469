// Command olm-bundle writes the OLM bundle, the catalog, and the proposal to the community catalog, of a release.
// `make olm-bundle` runs it.
//
//	olm-bundle -version VERSION -image REGISTRY/NAME@sha256:DIGEST -maintainer 'NAME <ADDRESS>' [-bundle-image IMAGE]
//	  [-pause-image REGISTRY/NAME@sha256:DIGEST] [-created TIME] [-sources URL] [-repository URL] [-out DIR]
//
// Exit status: 0 done, 2 usage or bad input, 1 any other error.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"wmco/deploy/kustomize"
	"wmco/deploy/olm"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "olm-bundle:", err)
		if errors.Is(err, errUsage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

var errUsage = errors.New("bad input")

func run(args []string) error {
	var r olm.Release
	flags := flag.NewFlagSet("olm-bundle", flag.ContinueOnError)
	flags.StringVar(&r.Version, "version", "", "version of the release, without a leading v")
	flags.StringVar(&r.Image, "image", "", "image of the operator, by digest")
	flags.StringVar(
		&r.BundleImage, "bundle-image", "",
		"where the image of the bundle will be (default NAME-bundle:vVERSION beside the operator's)",
	)
	flags.StringVar(&r.PauseImage, "pause-image", "", "pause image of the nodes, by digest: that with which the operator was linked")
	flags.StringVar(&r.Repository, "repository", "", "URL of the repository of the sources")
	flags.StringVar(&r.Maintainer, "maintainer", "", "who makes the release, as NAME <ADDRESS>")
	created := flags.String("created", "1970-01-01T00:00:00Z", "time of the release, as in RFC 3339")
	sources := flags.String(
		"sources", "",
		"URL of the sources at the release, below which alerts have their runbooks (default: they have paths)",
	)
	source := flags.String("deploy", "deploy", "folder of the manifests")
	out := flags.String("out", "dist", "folder to write olm-bundle, olm-catalog and olm-community to")
	err := flags.Parse(args)
	if err == nil {
		r.Created, err = time.Parse(time.RFC3339, *created)
	}
	if err != nil || flags.NArg() > 0 {
		return errors.Join(errUsage, err)
	}
	if r.BundleImage == "" {
		name, _, _ := strings.Cut(r.Image, "@")
		r.BundleImage = name + "-bundle:v" + r.Version
	}
	objects, err := kustomize.Build(*source)
	if err != nil {
		return err
	}
	if err := kustomize.SetRunbooks(objects, *sources); err != nil {
		return errors.Join(errUsage, err)
	}
	bundle, err := olm.Bundle(objects, r)
	if err != nil {
		return errors.Join(errUsage, err)
	}
	catalog, err := olm.Catalog(bundle, r)
	if err != nil {
		return err
	}
	community, err := olm.Community(bundle, r)
	if err != nil {
		return err
	}
	return errors.Join(
		bundle.Write(filepath.Join(*out, "olm-bundle")), community.Write(filepath.Join(*out, "olm-community")),
		catalog.Write(filepath.Join(*out, "olm-catalog", olm.Package)),
	)
}
