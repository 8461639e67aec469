// Command manifests prints the manifests of deploy with the image of a release, for kubectl apply -f. `make release`
// runs it.
//
//	manifests FOLDER REGISTRY/NAME@sha256:DIGEST [SOURCES]
//
// SOURCES is the URL of the sources at the release, below which alerts have their runbooks.
package main

import (
	"fmt"
	"os"
	"strings"

	"wmco/deploy/kustomize"
)

func main() {
	if len(os.Args) < 3 || len(os.Args) > 4 {
		fmt.Fprintln(os.Stderr, "usage: manifests FOLDER REGISTRY/NAME@sha256:DIGEST [SOURCES]")
		os.Exit(2)
	}
	data, err := kustomize.Manifests(os.Args[1], os.Args[2], strings.Join(os.Args[3:], ""))
	if err == nil {
		_, err = os.Stdout.Write(data)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}
